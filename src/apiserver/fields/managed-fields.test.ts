import { describe, expect, it } from "vitest";
import type { KubeObject } from "../../api/object.ts";
import {
  at,
  created,
  deployment,
  deployments,
  entries,
  owners,
  pool,
  pools,
  refusal,
  stored,
  times,
  who,
} from "./ownership.fixture.ts";

describe("who owns what after ordinary writes", () => {
  it("gives a creator everything it set, and nobody what identifies the object", () => {
    const object = deployment({ replicas: 1 }, { labels: { app: "web" }, uid: "u-1", generation: 1 });
    const web = deployments.update(undefined, object, who("kubectl-create"));
    expect(web.metadata.managedFields).toEqual([
      {
        manager: "kubectl-create",
        operation: "Update",
        apiVersion: "apps/v1",
        time: at(0),
        fieldsType: "FieldsV1",
        fieldsV1: {
          "f:metadata": { "f:labels": { ".": {}, "f:app": {} } },
          "f:spec": { "f:replicas": {} },
        },
      },
    ]);
    const main = pools.update(undefined, pool({ cidr: "10.0.0.0/8" }), who("kubectl-create"));
    expect(owners(main)).toEqual(['kubectl-create Update {"f:spec":{".":{},"f:cidr":{}}}']);
  });

  it("moves a changed field to the last writer and forgets a removed one", () => {
    const web = created({ replicas: 1, paused: true });
    const scaled = stored(deployments.update(web, { ...web, spec: { replicas: 3, paused: true } }, who("scaler", 1)));
    expect(owners(scaled)).toEqual([
      'kubectl-create Update {"f:spec":{"f:paused":{}}}',
      'scaler Update {"f:spec":{"f:replicas":{}}}',
    ]);
    const resumed = deployments.update(scaled, { ...scaled, spec: { replicas: 3 } }, who("resumer", 2));
    expect(owners(resumed)).toEqual(['scaler Update {"f:spec":{"f:replicas":{}}}']);
  });

  it("keeps a controller's status apart from what it writes through the main endpoint", () => {
    const web = created({ replicas: 1 }, "controller");
    const ready = { ...web, status: { readyReplicas: 1 } };
    const updated = stored(deployments.update(web, ready, who("controller", 1, { subresource: "status" })));
    expect(owners(updated)).toEqual([
      'controller Update {"f:spec":{"f:replicas":{}}}',
      'controller Update/status {"f:status":{".":{},"f:readyReplicas":{}}}',
    ]);
    const lied = { ...updated, status: { readyReplicas: 9 } };
    expect(owners(deployments.update(updated, lied, who("liar", 2)))).toEqual(owners(updated));
  });

  it("renews the time of a writer only when it changes something", () => {
    const web = created({ replicas: 1 });
    const scaled = stored(deployments.update(web, { ...web, spec: { replicas: 2 } }, who("kubectl-create", 5)));
    expect(times(scaled)).toEqual({ "kubectl-create": at(5) });
    expect(deployments.update(scaled, stored(scaled), who("kubectl-create", 9))).toBe(scaled);
  });

  it("tells writers apart by manager, version and subresource, appliers by manager and subresource", () => {
    const web = created({ replicas: 1, selector: { app: "web" } }, "tool");
    const beta = { ...web, apiVersion: "apps/v1beta1", spec: { replicas: 2, selector: { app: "web" } } };
    const updated = stored(deployments.update(web, beta, who("tool", 1, { apiVersion: "apps/v1beta1" })));
    const config = deployment({ paused: true });
    const applied = deployments.apply(updated, config, who("tool", 2), { force: false });
    expect(entries(applied).map((e) => `${e.manager} ${e.operation} ${e.apiVersion}`)).toEqual([
      "tool Apply apps/v1",
      "tool Update apps/v1",
      "tool Update apps/v1beta1",
    ]);
  });

  it("folds the oldest of more than ten writers into one", () => {
    let web = created({ replicas: 1 }, "m0");
    for (let n = 1; n <= 11; n++) {
      const labels = { ...web.metadata.labels, [`l${n}`]: "x" };
      web = stored(deployments.update(web, { ...web, metadata: { ...web.metadata, labels } }, who(`m${n}`, n)));
    }
    expect(entries(web)).toHaveLength(10);
    expect(owners(web).slice(0, 2)).toEqual([
      'ancient-changes Update {"f:metadata":{"f:labels":{".":{},"f:l1":{},"f:l2":{}}},"f:spec":{"f:replicas":{}}}',
      'm3 Update {"f:metadata":{"f:labels":{"f:l3":{}}}}',
    ]);
  });
});

describe("clients that touch managedFields themselves", () => {
  const web = created({ replicas: 1 });
  const withEntries = (managedFields: unknown, replicas = 2) =>
    ({ ...web, metadata: { ...web.metadata, managedFields }, spec: { replicas } }) as unknown as KubeObject;

  it.each([[[]], [[{}]]])("forgets all ownership when sent %j", (empty) => {
    const reset = stored(deployments.update(web, withEntries(empty), who("kubectl-edit", 1)));
    expect(reset.metadata.managedFields).toBeUndefined();
    const again = deployments.update(reset, { ...reset, spec: { replicas: 4 } }, who("kubectl-edit", 2));
    expect(again.metadata.managedFields).toBeUndefined();
  });

  it.each([
    ["left out", undefined],
    ["of no known operation", [{ manager: "x", operation: "Steal", apiVersion: "v1", fieldsType: "FieldsV1" }]],
    ["with broken fields", [{ ...entries(web)[0], fieldsV1: { nonsense: {} } }]],
  ])("keeps the old ones when they are %s", (_, given) => {
    expect(owners(deployments.update(web, withEntries(given), who("kubectl-edit", 1)))).toEqual([
      'kubectl-edit Update {"f:spec":{"f:replicas":{}}}',
    ]);
  });

  it("takes over entries a client edited, in canonical form", () => {
    const edited = [{ ...entries(web)[0], manager: "heir", fieldsV1: { "f:spec": { "f:replicas": {}, ".": {} } } }];
    const inherited = deployments.update(web, withEntries(edited, 1), who("kubectl-edit", 1));
    expect(owners(inherited)).toEqual(['heir Update {"f:spec":{".":{},"f:replicas":{}}}']);
  });

  it("refuses them in a configuration to apply", () => {
    const config = deployment({ replicas: 1 }, { managedFields: [] });
    const error = refusal(() => deployments.apply(web, config, who("gitops"), { force: false }));
    expect([error.code, error.message]).toEqual([400, "metadata.managedFields must be nil"]);
  });
});

import { describe, expect, it } from "vitest";
import type { KubeObject } from "../../api/object.ts";
import { type FieldOwnership, fieldOwnership, type Who } from "./managed-fields.ts";
import {
  created,
  deployment,
  deployments,
  entries,
  owners,
  pool,
  pools,
  refusal,
  stored,
  text,
  who,
} from "./ownership.fixture.ts";

describe("two managers applying a Deployment", () => {
  const container = (image: string) => ({ name: "web", image, ports: [{ containerPort: 80 }] });
  const apply = (live: KubeObject | undefined, config: KubeObject, by: Who, force = false) =>
    stored(deployments.apply(live, config, by, { force }));

  it("shares a field both set to the same value, and removes it only when both let go", () => {
    const first = apply(undefined, deployment({ replicas: 2, paused: true }), who("gitops"));
    const both = apply(first, deployment({ replicas: 2 }), who("autoscaler", 1));
    expect(owners(both)).toEqual([
      'gitops Apply {"f:spec":{"f:paused":{},"f:replicas":{}}}',
      'autoscaler Apply {"f:spec":{"f:replicas":{}}}',
    ]);
    const one = apply(both, deployment({ paused: true }), who("gitops", 2));
    expect(one["spec"]).toEqual({ replicas: 2, paused: true });
    expect(apply(one, deployment({}), who("autoscaler", 3))["spec"]).toEqual({ paused: true });
  });

  it("refuses to change what another set, naming it, and lets force take it", () => {
    const web = created({ replicas: 1 }, "kubectl-edit");
    const config = deployment({ replicas: 5 });
    const error = refusal(() => deployments.apply(web, config, who("gitops", 1), { force: false }));
    expect(error.status).toMatchObject({
      code: 409,
      reason: "Conflict",
      message: 'Apply failed with 1 conflict: conflict with "kubectl-edit" using apps/v1: .spec.replicas',
      details: {
        causes: [
          {
            reason: "FieldManagerConflict",
            message: 'conflict with "kubectl-edit" using apps/v1',
            field: ".spec.replicas",
          },
        ],
      },
    });
    const forced = apply(web, config, who("gitops", 1), true);
    expect(forced["spec"]).toEqual({ replicas: 5 });
    expect(owners(forced)).toEqual(['gitops Apply {"f:spec":{"f:replicas":{}}}']);
  });

  it("merges containers by name and ports by number and protocol", () => {
    const first = apply(undefined, deployment({ containers: [container("web:1")] }), who("gitops"));
    const sidecar = { name: "proxy", image: "proxy:1" };
    const second = apply(first, deployment({ containers: [sidecar] }), who("injector", 1));
    expect(second["spec"]).toEqual({ containers: [container("web:1"), sidecar] });
    const port = { name: "web", ports: [{ containerPort: 80, protocol: "TCP", name: "http" }] };
    const error = refusal(() =>
      deployments.apply(second, deployment({ containers: [{ ...port, image: "web:2" }] }), who("x", 2), {
        force: false,
      }),
    );
    expect(error.message).toBe(
      'Apply failed with 1 conflict: conflict with "gitops": .spec.containers[name="web"].image',
    );
    const named = apply(second, deployment({ containers: [port] }), who("namer", 2));
    expect((named["spec"] as { containers: unknown[] }).containers[0]).toEqual({
      ...container("web:1"),
      ports: [{ containerPort: 80, protocol: "TCP", name: "http" }],
    });
    expect(apply(named, deployment({}), who("gitops", 3))["spec"]).toEqual({
      containers: [{ name: "web", ports: [{ containerPort: 80, protocol: "TCP", name: "http" }] }, sidecar],
    });
  });

  it("returns the very object when an apply changes nothing", () => {
    const web = apply(undefined, deployment({ replicas: 2 }), who("gitops"));
    expect(deployments.apply(web, deployment({ replicas: 2 }), who("gitops", 7), { force: false })).toBe(web);
  });

  it("gives an object without history to before-first-apply", () => {
    const web = { ...deployment({ replicas: 1 }), metadata: { name: "web", namespace: "default", uid: "u" } };
    const error = refusal(() => deployments.apply(web, deployment({ replicas: 2 }), who("gitops"), { force: false }));
    expect(error.message).toBe(
      'Apply failed with 1 conflict: conflict with "before-first-apply" using apps/v1: .spec.replicas',
    );
    expect(owners(apply(web, deployment({ paused: true }), who("gitops", 1)))).toEqual([
      'gitops Apply {"f:spec":{"f:paused":{}}}',
      'before-first-apply Update {"f:spec":{"f:replicas":{}}}',
    ]);
  });

  it.each([
    ["an unknown field", { replica: 1 }, ".spec.replica: field not declared in schema"],
    ["a wrong type", { replicas: "two" }, '.spec.replicas: expected numeric (int or float), got "two"'],
    [
      "the same item twice",
      { containers: [container("a"), container("b")] },
      '.spec.containers: duplicate entries for key [name="web"]',
    ],
  ])("refuses a configuration with %s", (_, spec, says) => {
    const error = refusal(() => deployments.apply(undefined, deployment(spec), who("gitops"), { force: true }));
    expect([error.code, error.message]).toEqual([
      400,
      `failed to create typed patch object (default/web; apps/v1, Kind=Deployment): ${says}`,
    ]);
  });

  it("refuses a configuration of another version", () => {
    const config = { ...deployment({}), apiVersion: "apps/v1beta1" };
    expect(refusal(() => deployments.apply(undefined, config, who("gitops"), { force: false })).message).toBe(
      "Incorrect version specified in apply patch. Specified patch version: apps/v1beta1, expected: apps/v1",
    );
  });
});

describe("three managers on one Deployment", () => {
  it("lists every conflict under the manager it is with", () => {
    let web = created({ replicas: 1, paused: true }, "a");
    web = stored(deployments.apply(web, deployment({ selector: { app: "web" } }), who("b", 1), { force: false }));
    const status = { ...web, spec: { ...(web["spec"] as object), replicas: 2 } };
    web = stored(deployments.update(web, status, who("hpa", 2, { subresource: "scale" })));
    const config = deployment({ replicas: 3, paused: false, selector: { app: "api" } });
    const error = refusal(() => deployments.apply(web, config, who("gitops", 3), { force: false }));
    expect(error.message).toBe(
      [
        'Apply failed with 3 conflicts: conflicts with "a" using apps/v1:',
        "- .spec.paused",
        'conflicts with "b":',
        "- .spec.selector",
        'conflicts with "hpa" with subresource "scale" using apps/v1:',
        "- .spec.replicas",
      ].join("\n"),
    );
    expect(error.status.details?.causes?.map((cause) => cause.field)).toEqual([
      ".spec.paused",
      ".spec.selector",
      ".spec.replicas",
    ]);
  });

  it("keeps entries of another API group as they are", () => {
    const foreign = { ...entries(created({ replicas: 1 }))[0]!, manager: "old", apiVersion: "extensions/v1beta1" };
    const web = created({ replicas: 1 });
    web.metadata.managedFields!.push(foreign);
    const updated = deployments.update(web, { ...web, spec: { replicas: 2 } }, who("c", 1));
    expect(entries(updated).find((entry) => entry.manager === "old")).toEqual(foreign);
  });
});

describe("from client-side to server-side apply under kubectl's name", () => {
  const annotation = "kubectl.kubernetes.io/last-applied-configuration";
  const config = deployment({ replicas: 1, paused: false });
  const clientSide = () => {
    const annotations = { [annotation]: JSON.stringify(config) };
    const object = deployment({ replicas: 1, paused: false }, { annotations });
    return stored(deployments.update(undefined, object, who("kubectl-client-side-apply")));
  };

  it("takes over without a conflict, and keeps the annotation true", () => {
    const next = deployment({ replicas: 4, paused: false });
    const web = deployments.apply(clientSide(), next, who("kubectl", 1), { force: false });
    expect(web["spec"]).toEqual({ replicas: 4, paused: false });
    expect(JSON.parse(web.metadata.annotations![annotation]!)).toEqual(next);
  });

  it("still conflicts over what somebody else changed since", () => {
    const web = clientSide();
    const edited = stored(
      deployments.update(web, { ...web, spec: { replicas: 9, paused: false } }, who("kubectl-edit", 1)),
    );
    const next = deployment({ replicas: 4, paused: true });
    const error = refusal(() => deployments.apply(edited, next, who("kubectl", 2), { force: false }));
    expect(error.message).toBe(
      'Apply failed with 1 conflict: conflict with "kubectl-edit" using apps/v1: .spec.replicas',
    );
  });

  it("grants nothing to other managers", () => {
    const next = deployment({ replicas: 4 });
    expect(refusal(() => deployments.apply(clientSide(), next, who("gitops", 1), { force: false })).code).toBe(409);
  });
});

describe("three managers on a custom resource", () => {
  const by = (manager: string, minute = 0): Who => who(manager, minute, { apiVersion: "vendor.io/v3" });
  const apply = (ownership: FieldOwnership, live: KubeObject | undefined, spec: Record<string, unknown>, as: Who) =>
    stored(ownership.apply(live, pool(spec), as, { force: false }));

  it("merges sets, owns atomic lists whole, and owns fields without a schema one by one", () => {
    let main = apply(pools, undefined, { cidr: "10.0.0.0/8", zones: ["a", "b"], order: ["x"] }, by("one"));
    main = apply(pools, main, { zones: ["b", "c"], extra: { depth: { deep: 1 } } }, by("two", 1));
    main = apply(pools, main, { extra: { depth: { other: 2 } } }, by("three", 2));
    expect(main["spec"]).toEqual({
      cidr: "10.0.0.0/8",
      zones: ["a", "b", "c"],
      order: ["x"],
      extra: { depth: { deep: 1, other: 2 } },
    });
    expect(owners(main)).toEqual([
      'one Apply {"f:spec":{"f:cidr":{},"f:order":{},"f:zones":{"v:\\"a\\"":{},"v:\\"b\\"":{}}}}',
      'two Apply {"f:spec":{"f:extra":{"f:depth":{".":{},"f:deep":{}}},"f:zones":{"v:\\"b\\"":{},"v:\\"c\\"":{}}}}',
      'three Apply {"f:spec":{"f:extra":{"f:depth":{".":{},"f:other":{}}}}}',
    ]);
    const error = refusal(() => pools.apply(main, pool({ order: ["x", "y"] }), by("two", 3), { force: false }));
    expect(error.message).toBe('Apply failed with 1 conflict: conflict with "one": .spec.order');
    const less = apply(pools, main, { cidr: "10.0.0.0/8" }, by("one", 4));
    expect(less["spec"]).toEqual({ cidr: "10.0.0.0/8", zones: ["b", "c"], extra: { depth: { deep: 1, other: 2 } } });
  });

  it("treats finalizers as a set and owner references by uid", () => {
    const reference = (uid: string) => ({ apiVersion: "v1", kind: "Node", name: uid, uid });
    const first = { ...pool({}), metadata: { name: "main", finalizers: ["a"], ownerReferences: [reference("u1")] } };
    const second = { ...pool({}), metadata: { name: "main", finalizers: ["b"], ownerReferences: [reference("u2")] } };
    const main = stored(pools.apply(undefined, first, by("one"), { force: false }));
    const both = pools.apply(main, second, by("two", 1), { force: false });
    expect(both.metadata.finalizers).toEqual(["a", "b"]);
    expect(both.metadata.ownerReferences?.map((owner) => owner.uid)).toEqual(["u1", "u2"]);
  });

  it("follows a schema that makes a list atomic: owning an item becomes owning the list", () => {
    const main = apply(pools, undefined, { zones: ["a"] }, by("one"));
    const atomic = fieldOwnership({
      status: false,
      definitions: {},
      schema: {
        type: "object",
        properties: { spec: { type: "object", properties: { zones: { type: "array", items: text }, cidr: text } } },
      },
    });
    const error = refusal(() => atomic.apply(main, pool({ zones: ["a", "b"] }), by("two", 1), { force: false }));
    expect(error.message).toBe('Apply failed with 1 conflict: conflict with "one": .spec.zones');
  });
});

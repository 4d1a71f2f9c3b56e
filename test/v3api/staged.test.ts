import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { KubeObject } from "../../src/api/object.ts";
import { findKubectls, openKubectl } from "../support/kubectl.ts";
import { startV3Api, type V3Api } from "../support/v3-api.ts";

/** Staged policies in both APIs: what is filled in, kept, shown and refused. */

const V3 = "/apis/vendor.io/v3";
const STORED = "/apis/crd.vendor.io/v1";
const WITHIN = "namespaces/default";

let api: V3Api;
beforeAll(async () => {
  api = await startV3Api();
});
afterAll(() => api.close());

const staged = (kind: string, name: string, spec: object): KubeObject => ({
  ...{ apiVersion: "vendor.io/v3", kind, metadata: { name } },
  spec,
});
const causesOf = async (path: string, object: KubeObject) => {
  const { body } = await api.create(`${V3}/${path}`, object);
  return (body.details?.causes ?? []).map(({ field, message }: { field: string; message: string }) => [
    field,
    /\[(\w+)\]$/.exec(message)?.[1] ?? message,
  ]);
};

describe("a staged policy", () => {
  it.each([
    [
      `${WITHIN}/stagednetworkpolicies`,
      staged("StagedNetworkPolicy", "in", { ingress: [{ action: "Deny" }] }),
      { stagedAction: "Set", tier: "default", types: ["Ingress"], ingress: [{ action: "Deny" }] },
    ],
    [
      "stagedglobalnetworkpolicies",
      staged("StagedGlobalNetworkPolicy", "out", { egress: [{ action: "Allow" }] }),
      { stagedAction: "Set", tier: "default", types: ["Egress"], egress: [{ action: "Allow" }] },
    ],
    [
      `${WITHIN}/stagednetworkpolicies`,
      staged("StagedNetworkPolicy", "gone", { stagedAction: "Delete" }),
      { stagedAction: "Delete", tier: "default" },
    ],
    [
      `${WITHIN}/stagedkubernetesnetworkpolicies`,
      staged("StagedKubernetesNetworkPolicy", "knp", { podSelector: {} }),
      { stagedAction: "Set", podSelector: {} },
    ],
  ])("has what it leaves out filled in, as the enforced kind has: %s", async (path, given, spec) => {
    const made = await api.create(`${V3}/${path}`, given);
    expect([made.status, made.body.spec]).toEqual([201, spec]);
  });

  it("is kept with its tier, next to an enforced policy of the same name", async () => {
    const rules = { selector: "app == 'web'", ingress: [{ action: "Deny" }] };
    const enforced = { ...staged("NetworkPolicy", "web", rules) };
    expect((await api.create(`${V3}/${WITHIN}/networkpolicies`, enforced)).status).toBe(201);
    const same = staged("StagedNetworkPolicy", "web", { ...rules, stagedAction: "Learn" });
    expect((await api.create(`${V3}/${WITHIN}/stagednetworkpolicies`, same)).status).toBe(201);
    const kept = await api.call("GET", `${STORED}/${WITHIN}/stagednetworkpolicies/default.web`);
    expect(kept.body).toMatchObject({ kind: "StagedNetworkPolicy", spec: { stagedAction: "Learn", tier: "default" } });
    const missing = staged("StagedNetworkPolicy", "nowhere.web", rules);
    expect(await causesOf(`${WITHIN}/stagednetworkpolicies`, missing)).toEqual([["spec.tier", 'Not found: "nowhere"']]);
  });

  it("holds its tier, as the enforced ones do", async () => {
    await api.create(`${V3}/tiers`, staged("Tier", "held", { order: 5 }));
    await api.create(`${V3}/stagedglobalnetworkpolicies`, staged("StagedGlobalNetworkPolicy", "held.one", {}));
    const { body } = await api.call("DELETE", `${V3}/tiers/held`);
    expect([body.code, body.message]).toEqual([409, expect.stringContaining("StagedGlobalNetworkPolicy held.one")]);
  });
});

describe("what is wrong with a staged policy", () => {
  it.each([
    [
      `${WITHIN}/stagednetworkpolicies`,
      staged("StagedNetworkPolicy", "rules", { stagedAction: "Delete", selector: "all()" }),
      [["spec.selector", "STAGED_DELETE_FIELDS"]],
    ],
    [
      `${WITHIN}/stagednetworkpolicies`,
      staged("StagedNetworkPolicy", "sel", { selector: "role = 'db'" }),
      [["spec.selector", "SELECTOR_MALFORMED"]],
    ],
    [
      "stagedglobalnetworkpolicies",
      staged("StagedGlobalNetworkPolicy", "raw", { doNotTrack: true, applyOnForward: true }),
      [["spec.doNotTrack", "VALUE_WITHOUT_EFFECT"]],
    ],
    [
      "stagedglobalnetworkpolicies",
      staged("StagedGlobalNetworkPolicy", "pre", { preDNAT: true }),
      [["spec.applyOnForward", "POLICY_NEEDS_FORWARD"]],
    ],
    [
      `${WITHIN}/stagedkubernetesnetworkpolicies`,
      staged("StagedKubernetesNetworkPolicy", "bad", {
        podSelector: { matchExpressions: [{ key: "app", operator: "In" }] },
        ingress: [
          { from: [{}, { ipBlock: { cidr: "10.0.0.0/8", except: ["192.168.0.0/16"] } }] },
          { from: [{ ipBlock: { cidr: "10.0.0.300/8" } }], ports: [{ port: "http", endPort: 90 }, { port: 0 }] },
        ],
      }),
      [
        ["spec.podSelector.matchExpressions[0].values", "STAGED_REQUIREMENT"],
        ["spec.ingress[0].from[0]", "STAGED_PEER"],
        ["spec.ingress[0].from[1].ipBlock.except[0]", "STAGED_PEER"],
        ["spec.ingress[1].from[0].ipBlock.cidr", "CIDR_MALFORMED"],
        ["spec.ingress[1].ports[0].endPort", "STAGED_PORT"],
        ["spec.ingress[1].ports[1].port", "STAGED_PORT"],
      ],
    ],
  ])("is refused with a code to look up: %s", async (path, given, causes) => {
    expect(await causesOf(path, given)).toEqual(causes);
  });

  it("is an action that does not exist", async () => {
    const unknown = staged("StagedNetworkPolicy", "odd", { stagedAction: "Maybe" });
    const { body } = await api.create(`${V3}/${WITHIN}/stagednetworkpolicies`, unknown);
    expect(body).toMatchObject({ code: 422, details: { causes: [{ field: "spec.stagedAction" }] } });
  });
});

const [program] = findKubectls();

it("is shown by kubectl with what it would do first", async ({ skip }) => {
  if (!program) return skip("needs kubectl");
  const cluster = { name: "c", cluster: { server: api.url } };
  const context = { name: "c", context: { cluster: "c", user: "u" } };
  const users = [{ name: "u", user: {} }];
  const config = { apiVersion: "v1", kind: "Config", clusters: [cluster], contexts: [context], users };
  const kubectl = openKubectl(program, JSON.stringify({ ...config, "current-context": "c" }));
  try {
    const given = staged("StagedNetworkPolicy", "shown", {
      order: 10,
      selector: "app == 'web'",
      stagedAction: "Ignore",
    });
    await kubectl.ok("apply", "-f", kubectl.file("shown.json", JSON.stringify(given)));
    const table = (await kubectl.ok("get", "snp", "shown")).split("\n");
    expect(table[0]!.split(/\s+/)).toEqual(["NAME", "ACTION", "TIER", "ORDER", "SELECTOR", "AGE"]);
    expect(table[1]).toMatch(/^shown\s+Ignore\s+default\s+10\s+app == 'web'\s+\d+s$/);
  } finally {
    kubectl.close();
  }
});

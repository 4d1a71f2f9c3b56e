import { describe, expect, it } from "vitest";
import { calicoNames } from "../../../../api/names.ts";
import type { KubeObject } from "../../../../api/object.ts";
import type { Observation } from "../../../observation.ts";
import type { Plan } from "../../../plan.ts";
import { object, observed } from "../../../testing/observed.ts";
import { planMigrateEncapsulation } from "./migrate-encapsulation.ts";

const pool = (name: string, cidr: string, spec: object, group = "crd.vendor.io/v1"): KubeObject =>
  object("IPPool", name, { spec: { cidr, ...spec } }, group);
const IPIP = { ipipMode: "Always", vxlanMode: "Never" };
const reporting = { encapsulation: { tunnels: ["ipip"], pools: ["10.0.0.0/16 IPIP"] } };
const agentsThat = (report: object) =>
  ["a", "b"].map((node) => ({
    node,
    pod: node,
    phase: "Running",
    ready: "1/1",
    report,
  })) as unknown as Observation["service"]["agents"];
const nodeAgents = {
  ...object("DaemonSet", "vendor-node", {}, "apps/v1"),
  metadata: { name: "vendor-node", namespace: "vendor-system" },
};

function cluster(pools: readonly KubeObject[], service: object = {}): Observation {
  const common = {
    method: "operator",
    datastore: "api",
    version: "v3.31.3",
    nodeAgents,
    agents: agentsThat(reporting),
  };
  return observed({ service: { ...common, pools, ...service } as Partial<Observation["service"]> });
}

const planned = (seen: Observation, more: object = {}): Plan =>
  planMigrateEncapsulation(seen, { to: "vxlan", command: "vendorctl migrate encapsulation --to vxlan", ...more });
const patches = ({ steps }: Plan) =>
  steps.flatMap(({ id, inputs: { patch } }) => (patch === undefined ? [] : [`${id} ${JSON.stringify(patch)}`]));

const OLD = pool("old", "10.0.0.0/16", IPIP);
const PLAIN = pool("plain", "10.1.0.0/16", {});
const DONE = pool("done", "10.2.0.0/16", { vxlanMode: "Always" });

describe("where agents report how they send", () => {
  it("every node is ready for both before a pool changes, and until every node has changed", () => {
    const plan = planned(cluster([OLD, PLAIN, DONE]));
    const annotation = (text: string | null) =>
      JSON.stringify({ metadata: { annotations: { "vendor.io/ready-tunnels": text } } });
    const mode = JSON.stringify({ spec: { ipipMode: "Never", vxlanMode: "Always" } });
    expect(patches(plan)).toEqual([
      `prepare-old ${annotation("ipip,vxlan")}`,
      `prepare-plain ${annotation("ipip,vxlan")}`,
      `change-old ${mode}`,
      `change-plain ${mode}`,
      `settle-old ${annotation(null)}`,
      `settle-plain ${annotation(null)}`,
    ]);
    const [prepare, , change, , settle] = plan.steps;
    const ready = { encapsulation: { namespace: "vendor-system", tunnels: ["ipip", "vxlan"] } };
    expect(prepare?.inputs["afterApply"]).toEqual(ready);
    const sending = (word: string) => ({
      encapsulation: { namespace: "vendor-system", pools: [`10.0.0.0/16 ${word}`] },
    });
    expect([change?.inputs["afterApply"], change?.inputs["afterUndo"]]).toEqual([sending("VXLAN"), sending("IPIP")]);
    expect(settle?.inputs["afterUndo"]).toEqual(ready);
    expect(plan.steps.every(({ reversible }) => reversible)).toBe(true);
  });

  it("the Installation changes where it lists the pool, and nothing else of it", () => {
    const ipPools = [
      { cidr: "10.0.0.0/16", encapsulation: "IPIP", blockSize: 27 },
      { cidr: "10.2.0.0/16", encapsulation: "VXLAN" },
    ];
    const installation = object(
      "Installation",
      "default",
      { spec: { vendorNetwork: { mtu: 0, ipPools } } },
      "operator.vendor.io/v1",
    );
    const plan = planned(cluster([OLD, DONE], { installation }), { to: "vxlan-cross-subnet", pool: "old" });
    const changed = [{ ...ipPools[0], encapsulation: "VXLANCrossSubnet" }, ipPools[1]];
    expect(patches(plan)[1]).toBe(
      `change-installation ${JSON.stringify({ spec: { vendorNetwork: { ipPools: changed } } })}`,
    );
    expect(plan.steps.map(({ id }) => id)).toEqual(["prepare-old", "change-installation", "settle-old"]);
    expect(plan.notes.join(" ")).toContain("rp_filter");
  });

  it("nothing is done where every pool is as asked", () => {
    expect(planned(cluster([DONE]))).toMatchObject({ steps: [], title: "Every pool uses VXLAN already" });
  });
});

describe("on other releases", () => {
  const calico = (spec: object) => pool("default-ipv4-ippool", "10.0.0.0/16", spec, "crd.projectcalico.org/v1");

  it.each<[string, Observation]>([
    ["an older one of ours", cluster([OLD], { agents: agentsThat({}) })],
    ["the public system", { ...cluster([calico(IPIP)], { method: "manifest" }), names: calicoNames }],
  ])("%s: pools are patched, and the plan says first that this is not free of loss", (_what, seen) => {
    const plan = planned(seen);
    expect(plan.steps.map(({ id }) => id.replace(/-(?:old|default.*)$/, ""))).toEqual(["change", "agents-follow"]);
    expect(patches(plan)[0]).toContain('{"spec":{"ipipMode":"Never","vxlanMode":"Always"}}');
    expect(plan.notes.join(" ")).toContain("cannot be made free of loss");
  });
});

describe("what cannot be changed is refused", () => {
  it.each<[string, Observation, object, string]>([
    ["a pool that is not there", cluster([OLD]), { pool: "new" }, "there is no IPPool new"],
    ["nothing installed", cluster([], { method: "none" }), {}, "the service is not installed"],
    ["etcd", cluster([OLD], { datastore: "etcd" }), {}, "the pools are in etcd"],
  ])("%s", (_what, seen, more, sentence) => {
    expect(() => planned(seen, more)).toThrow(sentence);
  });
});

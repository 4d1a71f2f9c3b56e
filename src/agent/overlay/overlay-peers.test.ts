import { expect, it } from "vitest";
import type { KubeObject } from "../../api/object.ts";
import type { ClusterNode, Route } from "../../calc/model.ts";
import { ModelCopy } from "../../calc/model-copy.ts";
import { overlayPeers } from "./overlay-peers.ts";

const node = (at: number): ClusterNode => ({
  ...{ name: `node-${at}`, local: at === 1, addressV4: `10.0.0.${at}`, addressV6: `fd00::${at}` },
  ...{ subnetV4: null, subnetV6: null, addresses: [], dataplane: null },
  vtep: { mac: `02:00:00:00:00:0${at}`, addressV4: null, addressV6: null },
});
const route = (at: number, encapsulation: Route["encapsulation"]): Route => ({
  ...{ cidr: `10.244.${at}.0/26`, kind: "remote-workload", node: `node-${at}`, interfaceName: null, nextHop: null },
  ...{ encapsulation, sameSubnet: false, natOutgoing: true, inPool: true, tunnel: false },
});
const ready = (status: string) => ({ status: { conditions: [{ type: "Ready", status }] } });
const object = (kind: string, name: string, more: object = {}): KubeObject => ({
  ...{ apiVersion: "v1", kind, metadata: { name } },
  ...more,
});
const agentPod = (at: number, metadata: object = {}, status = "True"): KubeObject => ({
  ...object("Pod", `agent-${at}`, { spec: { nodeName: `node-${at}` }, ...ready(status) }),
  metadata: { name: `agent-${at}`, annotations: { "vendor.io/overlay": "unverified" }, ...metadata },
});

function peers(agentPods: KubeObject[], { bpf = false, underlay = "10.0.0.1", nodeStatus = {} } = {}): string[] {
  const copy = new ModelCopy();
  const model = {
    nodes: new Map([1, 2, 3].map((at) => [`node-${at}`, node(at)])),
    routes: new Map([route(2, "vxlan"), route(3, "none")].map((one) => [one.cidr, one])),
    settings: { ...copy.settings, dataplane: bpf ? ("BPF" as const) : ("Nftables" as const) },
  };
  const sources = { model, node: (name: string) => object("Node", name, nodeStatus), agentPods };
  return overlayPeers(sources, underlay).map(
    ({ node: name, address, used, answers }) => `${name} ${address}${used ? " used" : ""}${answers ? " answers" : ""}`,
  );
}

it("are used where routes lead through the overlay, and all of them with eBPF", () => {
  expect(peers([])).toEqual(["node-2 10.0.0.2 used", "node-3 10.0.0.3"]);
  expect(peers([], { bpf: true, underlay: "fd00::1" })).toEqual(["node-2 fd00::2 used", "node-3 fd00::3 used"]);
});

it("answer while their agent is ready, probes itself and its node is up", () => {
  const [answering, silent] = ["node-2 10.0.0.2 used answers", "node-2 10.0.0.2 used"];
  expect(peers([agentPod(2)])[0]).toBe(answering);
  expect(peers([agentPod(2)], { nodeStatus: ready("True") })[0]).toBe(answering);
  expect(peers([agentPod(2)], { nodeStatus: ready("Unknown") })[0]).toBe(silent);
  expect(peers([agentPod(2, {}, "False")])[0]).toBe(silent);
  expect(peers([agentPod(2, { annotations: {} })])[0]).toBe(silent);
  expect(peers([agentPod(2, { deletionTimestamp: "2026-01-31T12:00:00Z" })])[0]).toBe(silent);
});

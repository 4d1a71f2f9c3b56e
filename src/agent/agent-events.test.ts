import { expect, it } from "vitest";
import type { KubeObject } from "../api/object.ts";
import type { Events } from "../cluster/events.ts";
import { agentEvents } from "./agent-events.ts";

const object = (kind: string, name: string): KubeObject => ({ apiVersion: "v1", kind, metadata: { name } });

it("says what happens to the node and its pods of that object, and leaves to the status what concerns every node", () => {
  const said: string[] = [];
  const events: Events = {
    warn: () => {},
    changed: (about, { type, reason, message }) =>
      void said.push(`${about.kind} ${about.metadata.name}: ${type} ${reason} ${message}`),
  };
  const { dataplane, problem } = agentEvents(events, {
    node: () => object("Node", "n1"),
    pod: (key) => (key === "shop/web" ? object("Pod", "web") : undefined),
  });
  dataplane(undefined, "Nftables");
  dataplane("Nftables", "Nftables");
  expect(said).toEqual([]);
  dataplane("Nftables", "BPF");
  problem("endpoint shop/web", "EBPF_INTERFACE_ABSENT", "there is no interface");
  problem("interface wg0", "EBPF_INTERFACE_NOT_ETHERNET", "no Ethernet headers");
  problem("pod shop/gone", "WORKLOAD_CONNTRACK_LIMIT", "too many");
  problem("NetworkPolicy shop/all", "POLICY_INVALID", "of every node");
  expect(said).toEqual([
    "Node n1: Normal DataplaneChanged Policy and Services are carried by eBPF on this node",
    "Pod web: Warning EbpfInterfaceAbsent there is no interface",
    "Node n1: Warning EbpfInterfaceNotEthernet interface wg0: no Ethernet headers",
  ]);
});

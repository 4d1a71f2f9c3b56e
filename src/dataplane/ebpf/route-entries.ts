/** Owners of addresses, as the programs read them. Pure. */

import type { ClusterNode, DataplaneModel, Net, Route } from "../../calc/model.ts";
import { ROUTE_FLAG, ROUTE_KIND, routeKeyLayout, routeLayout } from "../../gen/bpf/layout.gen.ts";
import { macBytes, netBytes } from "./net-bytes.ts";

/** Pods of this node are in a map of their own; in this one they are only part of the cluster. */
const KINDS: Record<Route["kind"], number> = {
  "remote-workload": ROUTE_KIND.ROUTE_REMOTE_WORKLOAD,
  "remote-host": ROUTE_KIND.ROUTE_REMOTE_HOST,
  "local-host": ROUTE_KIND.ROUTE_LOCAL_HOST,
  "local-workload": ROUTE_KIND.ROUTE_POOL,
  blackhole: ROUTE_KIND.ROUTE_POOL,
  pool: ROUTE_KIND.ROUTE_POOL,
};

/** Addresses every machine has: no other node means this node by them. */
const NOT_REPORTED = /^(?:127\.|169\.254\.|::1\/|fe[89ab])/i;

/** `own`: the node's addresses as the kernel has them, each with the prefix length of its network. */
export function routeEntries(model: DataplaneModel, own: readonly Net[]): (readonly [Buffer, Buffer])[] {
  const entries = new Map<string, readonly [Buffer, Buffer]>();
  const put = (cidr: Net, value: { kind: number; node?: ClusterNode }) => {
    const { prefixLength, bytes } = netBytes(cidr);
    const key = routeKeyLayout.write({ prefixLength, address: bytes });
    entries.set(key.toString("hex"), [key, routeLayout.write({ kind: value.kind, ...overlayOf(value.node) })]);
  };
  // First: what the cluster itself says of the same prefix is right.
  for (const cidr of model.settings.externalNodes) put(cidr, { kind: ROUTE_KIND.ROUTE_REMOTE_HOST });
  for (const { cidr, kind, node } of model.routes.values()) {
    put(cidr, { kind: KINDS[kind], node: node === null ? undefined : model.nodes.get(node) });
  }
  for (const address of own) {
    if (!NOT_REPORTED.test(address)) put(alone(address), { kind: ROUTE_KIND.ROUTE_LOCAL_HOST });
  }
  return [...entries.values()];
}

function overlayOf(node: ClusterNode | undefined): { flags: number; mac: Uint8Array } {
  if (!node || node.local || !node.vtep.mac) return { flags: 0, mac: macBytes(null) };
  const takesClients = node.dataplane === "BPF" ? ROUTE_FLAG.ROUTE_PEER_EBPF : 0;
  return { flags: ROUTE_FLAG.ROUTE_OVERLAY | takesClients, mac: macBytes(node.vtep.mac) };
}

function alone(address: Net): Net {
  return address.replace(/\/\d+$/, address.includes(":") ? "/128" : "/32");
}

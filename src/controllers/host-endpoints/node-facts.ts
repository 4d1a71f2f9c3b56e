import { type NodeInterface, nodeInterfaces } from "../../api/protocol/node-interfaces.ts";
import { parseAddress } from "../../kit/ip.ts";
import type { Node } from "../orchestrator-objects.ts";

/** What a node's host endpoints are made from. */
export interface NodeFacts {
  name: string;
  labels: Readonly<Record<string, string>>;
  /** Every address of the node once, in a stable order: internal, external, of tunnels, of its interfaces. */
  addresses: string[];
  interfaces: NodeInterface[];
}

/** `tunnels` are those address management gave to the node. */
export function nodeFacts(node: Node, tunnels: readonly string[]): NodeFacts {
  const ofType = (type: string) =>
    (node.status?.addresses ?? []).filter((entry) => entry.type === type).map(({ address }) => address);
  const interfaces = nodeInterfaces(node);
  return {
    name: node.metadata.name,
    labels: node.metadata.labels ?? {},
    addresses: addressesOnce([
      ...ofType("InternalIP"),
      ...ofType("ExternalIP"),
      ...tunnels,
      ...interfaces.flatMap(({ addresses }) => addresses),
    ]),
    interfaces,
  };
}

/** The first of each, in order; what is not an address is left out. */
export function addressesOnce(addresses: readonly string[]): string[] {
  return [...new Set(addresses)].filter((address) => parseAddress(address) !== undefined);
}

import { createHash } from "node:crypto";
import type { KubeObject } from "../../api/object.ts";
import { nodeInterfaces } from "../../api/protocol/node-interfaces.ts";
import { readNodeNetwork } from "../../api/protocol/node-network.ts";
import { formatAddress, parseAddress, parseCidr } from "../../kit/ip.ts";
import type { ClusterNode, Net } from "../model.ts";
import { addressOf, isV4, toNet, toNets } from "../nets.ts";

/** What is known of a node in addition to the Node itself. */
export interface NodeFacts {
  local: boolean;
  /** Addresses it took from pools for its end of the overlay. */
  tunnelAddresses: readonly string[];
  dataplane: ClusterNode["dataplane"];
}

export function clusterNode(node: KubeObject, facts: NodeFacts): ClusterNode {
  const fromStatus = reportedAddresses(node);
  const reported = readNodeNetwork(node);
  const v4 = read(reported.addressV4, fromStatus.filter(isV4)[0]);
  const v6 = read(reported.addressV6, fromStatus.filter((text) => !isV4(text))[0]);
  const tunnels = facts.tunnelAddresses.map(canonical);
  const vtepV4 = annotated(reported.tunnelAddressV4) ?? tunnels.filter(isV4).sort()[0] ?? v4.address;
  const vtepV6 = annotated(reported.tunnelAddressV6) ?? tunnels.filter((text) => !isV4(text)).sort()[0] ?? v6.address;
  const { name } = node.metadata;
  return {
    name,
    local: facts.local,
    addressV4: v4.address,
    addressV6: v6.address,
    subnetV4: v4.subnet,
    subnetV6: v6.subnet,
    addresses: everyAddress(node, [v4.address, v6.address], fromStatus),
    vtep: {
      mac: reported.tunnelMac ?? derivedMac(name),
      addressV4: vtepV4,
      addressV6: vtepV6,
    },
    dataplane: facts.dataplane,
  };
}

/** Every address by which a Node is reached, its tunnel's included. */
export function nodeNets(node: KubeObject): Net[] {
  const { addresses, vtep } = clusterNode(node, { local: false, tunnelAddresses: [], dataplane: null });
  return toNets([...addresses, ...[vtep.addressV4, vtep.addressV6].flatMap((address) => address ?? [])]);
}

/** A unicast address of our own giving, the same wherever it is derived. */
function derivedMac(node: string): string {
  const bytes = createHash("sha256").update(`vxlan ${node}`).digest().subarray(0, 6);
  bytes[0] = (bytes[0]! & 0xfc) | 0x02;
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join(":");
}

/** The agent's word, with the length of its subnet, before the orchestrator's. */
function read(text: string | undefined, otherwise: string | undefined): { address: string | null; subnet: Net | null } {
  const cidr = text === undefined ? undefined : parseCidr(text);
  if (text !== undefined && cidr) return { address: canonical(addressOf(text)), subnet: toNet(text) ?? null };
  return { address: annotated(text) ?? otherwise ?? null, subnet: null };
}

function annotated(text: string | undefined): string | undefined {
  const address = parseAddress(text ?? "");
  return address && formatAddress(address);
}

/** Those other nodes reach it by first. */
function reportedAddresses(node: KubeObject): string[] {
  const { addresses = [] } = (node["status"] ?? {}) as { addresses?: { type: string; address: string }[] };
  const ranked = ["InternalIP", "ExternalIP"].flatMap((type) => addresses.filter((entry) => entry.type === type));
  return ranked.flatMap(({ address }) => (parseAddress(address) ? [canonical(address)] : []));
}

function everyAddress(node: KubeObject, own: (string | null)[], fromStatus: string[]): Net[] {
  const onInterfaces = nodeInterfaces(node).flatMap(({ addresses }) =>
    addresses.map((text) => text.replace(/\/.*$/, "")),
  );
  return toNets([...own.flatMap((address) => address ?? []), ...fromStatus, ...onInterfaces]);
}

function canonical(text: string): string {
  const address = parseAddress(text);
  return address ? formatAddress(address) : text;
}

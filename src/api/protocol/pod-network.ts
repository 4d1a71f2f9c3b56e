import { createHash } from "node:crypto";
import { formatCidr, parseAddress, parseCidr } from "../../kit/ip.ts";
import type { KubeObject } from "../object.ts";

/** Of a Pod, written by its node's agent when the pod's interface is made: for people, and for agents of older releases. */
const POD_NETWORK = {
  /** Its addresses, separated by commas: `10.244.0.5,fd00::5`. */
  addresses: "cni.vendor.io/podIPs",
  /** MAC of its interface. */
  mac: "cni.vendor.io/mac",
} as const;

/** Of a Pod or its Namespace, written by people: which addresses it is to get. Each is a list in JSON, `["10.0.0.7"]`. */
export const POD_REQUESTS = {
  /** Names or prefixes of pools to take from. */
  poolsV4: "cni.vendor.io/ipv4pools",
  poolsV6: "cni.vendor.io/ipv6pools",
  /** These very addresses, at most one of each family; of a Pod only. */
  addresses: "cni.vendor.io/ipAddrs",
} as const;

/** How the host side of a pod's interface is called: its name alone says whose it is, with no memory of who made it. */
export const POD_INTERFACE_PREFIX = "ven";

/** Whether a name is one of an interface that leads to a pod, made by us or by another CNI plugin. */
export function isPodInterface(name: string, prefixes: readonly string[]): boolean {
  return prefixes.some((prefix) => name.startsWith(prefix));
}

/** Whether we made it: routes to it and settings of it are ours then, and only then. */
export function isOurInterface(name: string): boolean {
  return isPodInterface(name, [POD_INTERFACE_PREFIX]);
}

export function podInterfaceName(namespace: string, pod: string): string {
  return `${POD_INTERFACE_PREFIX}${createHash("sha256").update(`${namespace}.${pod}`).digest("hex").slice(0, 11)}`;
}

export function podNetworkAnnotations(addresses: readonly string[], mac: string): Record<string, string> {
  return { [POD_NETWORK.addresses]: addresses.join(","), [POD_NETWORK.mac]: mac };
}

/** MAC in the annotation. A tenant may write it: it counts only where the node has no record of its own. */
export function podMac(pod: KubeObject): string | undefined {
  return pod.metadata.annotations?.[POD_NETWORK.mac]?.toLowerCase();
}

/** Addresses in a pod's status, as prefixes, ordered and each once. The orchestrator lets only kubelets write them. */
export function statusAddresses(pod: KubeObject): string[] {
  const status = (pod["status"] ?? {}) as { podIP?: string; podIPs?: { ip?: string }[] };
  return prefixes([...(status.podIPs ?? []).map(({ ip }) => ip ?? ""), status.podIP ?? ""]);
}

/** Addresses in the annotation. Whoever may write the pod may write it: for people to read, never to program. */
export function annotatedAddresses(pod: KubeObject): string[] {
  return prefixes((pod.metadata.annotations?.[POD_NETWORK.addresses] ?? "").split(","));
}

function prefixes(texts: readonly string[]): string[] {
  return [...new Set(texts.flatMap((text) => hostPrefix(text.trim())))].sort();
}

/** `10.0.0.1` and `10.0.0.1/32` as `10.0.0.1/32`; nothing for what is no single address. */
function hostPrefix(text: string): string[] {
  const address = parseAddress(text);
  if (address)
    return [formatCidr({ family: address.family, base: address.value, length: address.family.bits, masked: true })];
  const cidr = parseCidr(text);
  return cidr?.length === cidr?.family.bits && cidr ? [formatCidr(cidr)] : [];
}

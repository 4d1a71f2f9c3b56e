import type { InterfaceAddress, Link, Route } from "../../kernel/netlink/netlink-port.ts";
import { contains, parseAddress, parseCidr } from "../../kit/ip.ts";

/** What of the node decides which of its interfaces lead to other machines. */
export interface NodeLinks {
  links: readonly Link[];
  addresses: readonly InterfaceAddress[];
  /** Asked only if names and addresses do not decide: a node has a route for each of its pods. */
  routes: () => readonly Route[];
}

/** Names that drivers and systemd give to hardware: uplinks before they have an address. */
const USUAL_NAMES = /^(?:(?:en|wl|ww|sl)[a-zA-Z0-9]*|em\d+|p\d+p\d+|eth\d+|bond\d+|team\d+)$/;
/** Interfaces that lead to pods, containers and virtual machines of this node. `eni` and eleven digits: pods of the AWS CNI plugin. */
const NOT_UPLINKS =
  /^(?:lo$|docker\d*|podman\d*|cbr\d*|dummy\d*|virbr|vnet\d|tap|lxcbr|lxdbr|veth|lxc|ven|cali|azv|eni[0-9a-f]{11}$|vxlan|ipip|tunl|flannel|cni|br-|weave|kube-ipvs|nodelocaldns|cilium|geneve|wg)/;
const ONE_LINK_OR_MACHINE = ["fe80::/10", "::1/128", "169.254.0.0/16", "127.0.0.0/8"].flatMap(
  (text) => parseCidr(text) ?? [],
);

/** Whether an interface of this name leads to pods, containers or nowhere, and not to other machines. */
export function leadsInside(name: string): boolean {
  return NOT_UPLINKS.test(name);
}

/** Not of one link or one machine only. */
export function isGlobal(address: string): boolean {
  const parsed = parseAddress(address);
  return parsed !== undefined && !ONE_LINK_OR_MACHINE.some((cidr) => contains(cidr, parsed));
}

/**
 * The interfaces other machines are reached by: those that the pattern names (without one: hardware, by its usual names) and, whatever its
 * name, each that has a global address or a default route. A port of a bridge or a bond is none: its packets arrive at the bridge too.
 */
export function uplinks(node: NodeLinks, pattern: string | undefined): Link[] {
  const isNamed = ({ name }: Link) => (pattern ? new RegExp(pattern).test(name) : USUAL_NAMES.test(name));
  return topLinks(node).filter((link) => {
    if (!hasEthernet(link)) return false;
    if (pattern && isNamed(link)) return true;
    return !leadsInside(link.name) && (isNamed(link) || hasGlobalAddress(link, node) || hasDefaultRoute(link, node));
  });
}

/** Interfaces that have one of these addresses, and no Ethernet headers: those of a VPN, for example. */
export function withoutEthernet(node: NodeLinks, own: readonly string[]): { link: Link; address: string }[] {
  return topLinks(node).flatMap((link) => {
    const address = addressesOf(link, node).find((text) => own.includes(text));
    return address === undefined || hasEthernet(link) ? [] : [{ link, address }];
  });
}

/** Not the ports of bridges and bonds. A VRF is neither: packets arrive at its members. */
function topLinks({ links }: NodeLinks): Link[] {
  const kinds = new Map(links.map(({ index, kind }) => [index, kind]));
  return links.filter(({ master, kind }) => kind !== "vrf" && (!master || kinds.get(master) === "vrf"));
}

function hasGlobalAddress(link: Link, node: NodeLinks): boolean {
  return addressesOf(link, node).some(isGlobal);
}

function hasDefaultRoute({ index }: Link, { routes }: NodeLinks): boolean {
  const isDefault = (destination: string) => destination === "0.0.0.0/0" || destination === "::/0";
  return routes().some(({ device, type, destination }) => {
    return device === index && type === "unicast" && isDefault(destination);
  });
}

function addressesOf({ index }: Link, { addresses }: NodeLinks): string[] {
  return addresses.flatMap(({ device, address }) => (device === index ? (address.split("/")[0] ?? []) : []));
}

function hasEthernet({ mac }: Link): boolean {
  return mac !== undefined;
}

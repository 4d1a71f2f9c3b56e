import type { KubeObject } from "../../api/object.ts";
import { resolveHosts } from "../../cluster/api-server-hosts.ts";
import { isGlobal, leadsInside } from "../../dataplane/net/uplinks.ts";
import type { InterfaceAddress, Link, Route } from "../../kernel/netlink/netlink-port.ts";
import { contains, type Family, parseAddress, parseCidr } from "../../kit/ip.ts";

/** What of the node decides which of its addresses others reach it by. */
export interface NodeInterfaces {
  links: readonly Link[];
  addresses: readonly InterfaceAddress[];
  routes: readonly Route[];
  /** The Node, where it is known. */
  node: KubeObject | undefined;
}

/** The node's address with the length of its subnet, by the method the operator renders; undefined where there is none. */
export function detectAddress(method: string, family: Family, on: NodeInterfaces): string | undefined {
  const [how = "", what = ""] = split(method);
  const usable = candidates(family, on);
  switch (how) {
    case "orchestrator-internal-ip":
    case "kubernetes-internal-ip": {
      const told = internalAddress(on.node, family);
      return told && (usable.find(({ text }) => hostOf(text) === told)?.text ?? `${told}/${family.bits}`);
    }
    case "interface":
      return usable.find(({ link }) => named(what, link.name))?.text;
    case "skip-interface":
      return usable.find(({ link }) => !leadsInside(link.name) && !named(what, link.name))?.text;
    case "cidr":
      return usable.find(({ text }) => what.split(",").some((cidr) => isIn(cidr, text)))?.text;
    case "can-reach":
      return routeTo(what, family, on, usable);
    default:
      return usable.find(({ link }) => !leadsInside(link.name))?.text;
  }
}

/** With the addresses of a host name in its place; with the name where it does not resolve, which then leads nowhere. */
export async function resolvedMethod(method: string): Promise<string> {
  const [how, what] = split(method);
  if (how !== "can-reach" || parseAddress(what)) return method;
  const addresses = await resolveHosts([what]);
  return addresses.length > 0 ? `can-reach=${addresses.join(",")}` : method;
}

/** Lists are separated by commas. */
export function isDetectionMethod(method: string): boolean {
  const [how, what] = split(method);
  const each = what.split(",");
  switch (how) {
    case "first-found":
    case "orchestrator-internal-ip":
    case "kubernetes-internal-ip":
      return what === "";
    case "interface":
    case "skip-interface":
      return what !== "" && each.every(isPattern);
    case "cidr":
      return each.every((text) => parseCidr(text) !== undefined);
    case "can-reach":
      return what !== "";
    default:
      return false;
  }
}

function isPattern(text: string): boolean {
  try {
    new RegExp(text);
    return true;
  } catch {
    return false;
  }
}

interface Candidate {
  link: Link;
  text: string;
}

/** Of interfaces that are up, addresses others could use; in the order the kernel has them. */
function candidates(family: Family, { links, addresses }: NodeInterfaces): Candidate[] {
  const up = new Map(links.filter((link) => link.up).map((link) => [link.index, link]));
  return addresses.flatMap(({ device, address }) => {
    const link = up.get(device);
    const parsed = parseAddress(hostOf(address));
    return link && parsed?.family === family && isGlobal(hostOf(address)) ? [{ link, text: address }] : [];
  });
}

/** As the kernel would send: the longest prefix, the address it prefers or else the interface's first. */
function routeTo(target: string, family: Family, { routes }: NodeInterfaces, usable: Candidate[]): string | undefined {
  const parsed = target
    .split(",")
    .map(parseAddress)
    .find((one) => one?.family === family);
  if (!parsed) return undefined;
  const [best] = routes
    .filter(({ destination, type, device }) => {
      const cidr = parseCidr(destination);
      return type === "unicast" && device !== undefined && cidr !== undefined && contains(cidr, parsed);
    })
    .sort((a, b) => lengthOf(b) - lengthOf(a) || (a.metric ?? 0) - (b.metric ?? 0));
  const of = usable.filter(({ link }) => link.index === best?.device);
  return (of.find(({ text }) => hostOf(text) === best?.source) ?? of[0])?.text;
}

function lengthOf({ destination }: Route): number {
  return parseCidr(destination)?.length ?? 0;
}

function internalAddress(node: KubeObject | undefined, family: Family): string | undefined {
  const { addresses = [] } = (node?.["status"] ?? {}) as { addresses?: { type: string; address: string }[] };
  return addresses.find(({ type, address }) => type === "InternalIP" && parseAddress(address)?.family === family)
    ?.address;
}

/** Patterns separated by commas, each for a whole name. */
function named(patterns: string, name: string): boolean {
  return patterns.split(",").some((pattern) => new RegExp(`^(?:${pattern})$`).test(name));
}

function isIn(cidr: string, text: string): boolean {
  const [prefix, address] = [parseCidr(cidr), parseAddress(hostOf(text))];
  return prefix !== undefined && address !== undefined && contains(prefix, address);
}

function split(method: string): [string, string] {
  const at = method.indexOf("=");
  return at < 0 ? [method, ""] : [method.slice(0, at), method.slice(at + 1)];
}

function hostOf(text: string): string {
  return text.split("/")[0] as string;
}

import { LOAD_BALANCER_CLASS, SERVICE_REQUESTS } from "../../api/protocol/service-addresses.ts";
import type { Pool } from "../../ipam/ipam-kinds.ts";
import { isFor, mayUse, poolOf, selects } from "../../ipam/pools.ts";
import { formatAddress, parseAddress, parseCidr } from "../../kit/ip.ts";
import type { ServiceObject } from "../orchestrator-objects.ts";
import type { LoadBalancerSettings } from "../settings/effective-settings.ts";

/** What a Service is to have of one family. */
export interface FamilyRequest {
  family: FamilyName;
  /** Whether it keeps an address that it has. */
  keeps(address: string): boolean;
  /** Where a new one comes from. */
  pools: readonly Pool[];
  /** This one, and no other. */
  address: string | undefined;
}

export type FamilyName = "IPv4" | "IPv6";
type Labels = Readonly<Record<string, string>>;

/** Asked for by class, so that every other controller leaves the Service alone. */
export function hasOurClass({ spec }: ServiceObject): boolean {
  return spec?.loadBalancerClass === LOAD_BALANCER_CLASS;
}

/** Whether a Service gets its addresses from IP pools. */
export function isForPools(service: ServiceObject, { assignIPs }: LoadBalancerSettings): boolean {
  const { type, loadBalancerClass } = service.spec ?? {};
  if (type !== "LoadBalancer") return false;
  if (loadBalancerClass !== undefined) return loadBalancerClass === LOAD_BALANCER_CLASS;
  return assignIPs === "AllServices" || asks(service);
}

/** Whether it names pools or addresses. */
export function asks({ metadata: { annotations = {} } }: ServiceObject): boolean {
  return Object.values(SERVICE_REQUESTS).some((key) => Boolean(annotations[key]));
}

/**
 * What a Service is to have, by family; a sentence where that cannot be understood or no pool may give it. `pools` are all there are. A
 * pool that is disabled gives no more addresses, and takes none away.
 */
export function requestOf(
  service: ServiceObject,
  pools: readonly Pool[],
  namespaceLabels: Labels,
): FamilyRequest[] | string {
  const ours = pools.filter((pool) => isFor(pool, "LoadBalancer")).sort(byName);
  const addresses = listIn(service, SERVICE_REQUESTS.addresses);
  if (typeof addresses === "string") return addresses;
  if (addresses) return byAddress(service, addresses, ours);
  const requests: FamilyRequest[] = [];
  for (const family of familiesOf(service)) {
    const request = byPools(service, family, ours.filter(ofFamily(family)), namespaceLabels);
    if (typeof request === "string") return request;
    requests.push(request);
  }
  const able = requests.filter(({ pools: from }) => from.length > 0);
  const isEnough =
    service.spec?.ipFamilyPolicy === "PreferDualStack" ? able.length > 0 : able.length === requests.length;
  if (isEnough) return able;
  const lacking = requests.filter(({ pools: from }) => from.length === 0).map(({ family }) => family);
  return `no IPPool for load balancers may give this Service an ${lacking.join(" and an ")} address: see allowedUses, assignmentMode, namespaceSelector and disabled of the pools`;
}

function byAddress(service: ServiceObject, texts: readonly string[], pools: readonly Pool[]): FamilyRequest[] | string {
  const families = familiesOf(service);
  const requests: FamilyRequest[] = [];
  for (const text of texts) {
    const parsed = parseAddress(text);
    if (!parsed) return saying(SERVICE_REQUESTS.addresses, `${text} is not an address`);
    const address = formatAddress(parsed);
    const family = parsed.family.name;
    if (!families.includes(family)) return saying(SERVICE_REQUESTS.addresses, `the Service has no ${family} address`);
    if (requests.some((one) => one.family === family)) {
      return saying(SERVICE_REQUESTS.addresses, `a Service gets one ${family} address, and more are named`);
    }
    const pool = poolOf(pools, address);
    if (!pool) return saying(SERVICE_REQUESTS.addresses, `${address} is in no IPPool for load balancers`);
    const from = mayUse(pool, "LoadBalancer") ? [pool] : [];
    requests.push({ family, address, pools: from, keeps: (one) => one === address });
  }
  return requests;
}

function byPools(
  service: ServiceObject,
  family: FamilyName,
  pools: readonly Pool[],
  namespaceLabels: Labels,
): FamilyRequest | string {
  const key = family === "IPv4" ? SERVICE_REQUESTS.poolsV4 : SERVICE_REQUESTS.poolsV6;
  const wish = listIn(service, key);
  if (typeof wish === "string") return wish;
  const usable = (pool: Pool) => mayUse(pool, "LoadBalancer");
  if (!wish) {
    const automatic = pools.filter(({ spec }) => spec.assignmentMode !== "Manual");
    return {
      ...{ family, address: undefined },
      pools: automatic.filter((pool) => usable(pool) && selects(pool.spec.namespaceSelector, namespaceLabels)),
      keeps: (address) => poolOf(automatic, address) !== undefined,
    };
  }
  const named: Pool[] = [];
  for (const text of wish) {
    const pool = pools.find(({ metadata, spec }) => metadata.name === text || spec.cidr === text);
    if (!pool) return saying(key, `${text} is no ${family} IPPool for load balancers`);
    named.push(pool);
  }
  const keeps = (address: string) => poolOf(named, address) !== undefined;
  return { family, address: undefined, pools: named.filter(usable), keeps };
}

/** In the order of the Service: the first is what clients that know one address take. */
export function familiesOf({ spec }: ServiceObject): FamilyName[] {
  const said = (spec?.ipFamilies ?? []).filter((name): name is FamilyName => name === "IPv4" || name === "IPv6");
  if (said.length > 0) return said;
  const { clusterIPs, clusterIP } = spec ?? {};
  const families = (clusterIPs ?? [clusterIP ?? ""]).flatMap((text) => parseAddress(text)?.family.name ?? []);
  return families.length > 0 ? [...new Set(families)] : ["IPv4"];
}

function listIn({ metadata }: ServiceObject, key: string): string[] | string | undefined {
  const text = metadata.annotations?.[key];
  if (!text) return undefined;
  try {
    const list: unknown = JSON.parse(text);
    if (Array.isArray(list) && list.length > 0 && list.every((one) => typeof one === "string")) return list;
  } catch {
    // Said below.
  }
  return saying(key, `${text} is not a JSON list of strings, such as ["NAME"]`);
}

function saying(key: string, why: string): string {
  return `annotation ${key}: ${why}`;
}

function ofFamily(family: FamilyName): (pool: Pool) => boolean {
  return ({ spec }) => parseCidr(spec.cidr)?.family.name === family;
}

function byName(a: Pool, b: Pool): number {
  return a.metadata.name < b.metadata.name ? -1 : 1;
}

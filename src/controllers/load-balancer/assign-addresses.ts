import type { ServiceWithoutAddress } from "../../api/protocol/ipam-report.ts";
import { SERVICES } from "../../cluster/kinds.ts";
import type { Owner } from "../../ipam/block-edits.ts";
import { handleId } from "../../ipam/handles.ts";
import type { Ipam } from "../../ipam/ipam.ts";
import { isFor, poolOf } from "../../ipam/pools.ts";
import { CodedError } from "../../kit/errors.ts";
import { parseAddress } from "../../kit/ip.ts";
import type { ControllerContext } from "../controller-context.ts";
import { getIfThere } from "../ipam/live-checks.ts";
import type { ServiceObject } from "../orchestrator-objects.ts";
import { isRace } from "../race.ts";
import type { LoadBalancerSettings } from "../settings/effective-settings.ts";
import { foreignIngress, ingressOf, ingressPatch } from "./ingress.ts";
import {
  asks,
  type FamilyName,
  type FamilyRequest,
  familiesOf,
  hasOurClass,
  isForPools,
  requestOf,
} from "./service-request.ts";

export interface AssigningContext extends ControllerContext {
  ipam: Ipam;
}

/** A Service that gets addresses, and how far it is. */
interface Candidate {
  service: ServiceObject;
  requests: readonly FamilyRequest[];
  problem: string | undefined;
}

const FAMILIES: readonly FamilyName[] = ["IPv4", "IPv6"];
const MISSING = "LoadBalancerAddressMissing";
const OF_ANOTHER = "LoadBalancerOfAnother";
const REFUSALS = new Set(["IPAM_EXHAUSTED", "IPAM_ADDRESS_TAKEN"]);

/**
 * One look at all Services. What nobody may keep is given back first, then Services keep what their status says, and only then are new
 * addresses chosen: so a Service whose block was lost gets its own address again. What fails for one does not keep the others from going on.
 */
export async function assignAddresses(
  context: AssigningContext,
  settings: LoadBalancerSettings,
): Promise<readonly ServiceWithoutAddress[]> {
  const { informers, ipam, events } = context;
  const failures: unknown[] = [];
  const attempt = async (work: () => Promise<void>): Promise<void> => {
    await work().catch((error: unknown) => void failures.push(error));
  };
  const candidates = candidatesOf(context, settings);
  const wanted = wantedHandles(candidates);
  const left = new Set<string>();
  for (const [handle, held] of allocatedByHandle(ipam)) {
    const keeps = wanted.get(handle);
    if (keeps && held.addresses.every(keeps)) continue;
    await attempt(async () => {
      if (await giveBack(context, handle, held)) left.add(held.service);
    });
  }
  // Their status was written: what comes next is decided on what it is then.
  const settled = candidates.filter(({ service }) => !left.has(nameOf(service)));
  for (const candidate of settled) await attempt(() => keepStatus(context, candidate));
  for (const candidate of settled) await attempt(() => assignMissing(context, candidate));
  for (const candidate of settled) {
    await attempt(() => writeStatus(context, candidate.service));
    if (candidate.problem !== undefined)
      events.warn(candidate.service, MISSING, `Has no address: ${candidate.problem}`);
  }
  await attempt(() => ipam.giveBackOutside(informers.pools.list()));
  const worst = failures.find((error) => !isRace(error)) ?? failures[0];
  if (worst !== undefined) throw worst;
  return candidates.flatMap(({ service, problem }) =>
    problem === undefined ? [] : [{ service: nameOf(service), why: problem }],
  );
}

/** Services that get addresses of pools, but for those that another controller serves already. */
function candidatesOf({ informers, ipam, events }: AssigningContext, settings: LoadBalancerSettings): Candidate[] {
  const { services, pools, namespaces } = informers;
  const all = pools.list();
  const hasPools = all.some((pool) => isFor(pool, "LoadBalancer"));
  const allocated = new Set(ipam.allocated().map(({ address }) => address));
  return services.list().flatMap((service): Candidate[] => {
    if (!isForPools(service, settings)) return [];
    const isAsked = hasOurClass(service) || asks(service);
    // Without a pool for them, Services are another controller's business, unless one asks.
    if (!hasPools && !isAsked && allocated.size === 0) return [];
    const [foreign] = hasOurClass(service) ? [] : foreignIngress(service, all, allocated);
    if (foreign !== undefined) {
      const message = `Another controller has assigned ${foreign}. For an address of an IPPool create the Service with spec.loadBalancerClass: vendor.`;
      if (hasPools) events.warn(service, OF_ANOTHER, message);
      return [];
    }
    const { namespace = "" } = service.metadata;
    const requests = requestOf(service, all, namespaces.get(namespace)?.metadata.labels ?? {});
    if (typeof requests === "string") return [{ service, requests: [], problem: requests }];
    return [{ service, requests, problem: undefined }];
  });
}

/** Which addresses each handle may keep. A request that is not understood takes nothing away. */
function wantedHandles(candidates: readonly Candidate[]): Map<string, (address: string) => boolean> {
  const wanted = new Map<string, (address: string) => boolean>();
  for (const { service, requests, problem } of candidates) {
    for (const { family, keeps } of requests) wanted.set(handleOf(service, family), keeps);
    if (requests.length > 0 || problem === undefined) continue;
    for (const family of FAMILIES) wanted.set(handleOf(service, family), () => true);
  }
  return wanted;
}

interface Held {
  /** `NAMESPACE/NAME`. */
  service: string;
  addresses: string[];
}

function allocatedByHandle(ipam: Ipam): Map<string, Held> {
  const byHandle = new Map<string, Held>();
  for (const { handle, address, owner } of ipam.allocated()) {
    if (owner.kind !== "service") continue;
    const held = byHandle.get(handle) ?? { service: `${owner.namespace}/${owner.name}`, addresses: [] };
    held.addresses.push(address);
    byHandle.set(handle, held);
  }
  return byHandle;
}

/**
 * Only if the Service is on the API server as it was looked at. Out of the status first: killed in between, the address is still allocated, and
 * the next look goes on. Gives whether the status was written.
 */
async function giveBack(
  { client, informers, ipam, log }: AssigningContext,
  handle: string,
  { service, addresses }: Held,
): Promise<boolean> {
  const [namespace = "", name = ""] = service.split("/");
  const ref = { namespace, name };
  const live = await getIfThere<ServiceObject>(client, SERVICES, ref);
  if (live?.metadata.resourceVersion !== informers.services.get(service)?.metadata.resourceVersion) return false;
  const isOwner = live !== undefined && FAMILIES.some((family) => handleOf(live, family) === handle);
  const kept = live
    ? ingressOf(live).flatMap(({ ip }) => (ip === undefined || addresses.includes(ip) ? [] : [ip]))
    : [];
  const patch = isOwner && ingressPatch(live, kept);
  if (patch) await client.patch(SERVICES, ref, { type: "merge", patch }, { subresource: "status" });
  await ipam.release(handle, addresses);
  log.info({ service, addresses }, "released addresses of a Service");
  return Boolean(patch);
}

/** Blocks can be deleted, or come from a backup: the address of the status is in use. */
async function keepStatus({ informers, ipam }: AssigningContext, { service, requests }: Candidate): Promise<void> {
  for (const { family, keeps } of missingOf(ipam, service, requests)) {
    const address = ingressOf(service).flatMap(({ ip }) =>
      ip !== undefined && isOf(family, ip) && keeps(ip) ? [ip] : [],
    )[0];
    const pool = address !== undefined && poolOf(informers.pools.list(), address);
    if (!pool) continue;
    const request = { owner: ownerOf(service, family), v4: [pool], v6: [], addresses: [address] };
    // Another Service has it: this one gets a new one.
    await ipam.assign(request).catch(unlessRefused);
  }
}

async function assignMissing({ ipam, events }: AssigningContext, candidate: Candidate): Promise<void> {
  const { service, requests } = candidate;
  for (const { family, pools, address } of missingOf(ipam, service, requests)) {
    if (pools.length === 0) {
      candidate.problem = `the IPPool of ${address} is disabled`;
      continue;
    }
    const addresses = address === undefined ? [] : [address];
    const [v4, v6] = family === "IPv4" ? [pools, []] : [[], pools];
    const given = await ipam.assign({ owner: ownerOf(service, family), v4, v6, addresses }).catch(unlessRefused);
    if (given instanceof CodedError) candidate.problem = given.message;
    else {
      const message = `Assigned ${given.join(", ")} of IPPool ${poolOf(pools, given[0] as string)?.metadata.name}`;
      events.changed(service, { type: "Normal", reason: "LoadBalancerAddressAssigned", message });
    }
  }
}

/** What is said on the Service; all else is a failure, which is tried again. */
function unlessRefused(error: unknown): CodedError {
  if (error instanceof CodedError && REFUSALS.has(error.code)) return error;
  throw error;
}

async function writeStatus({ client, ipam }: AssigningContext, service: ServiceObject): Promise<void> {
  const allocated = ipam.allocated();
  const addresses = familiesOf(service).flatMap((family) => {
    const handle = handleOf(service, family);
    return allocated.filter((one) => one.handle === handle).map(({ address }) => address);
  });
  const patch = ingressPatch(service, addresses);
  if (patch) await client.patch(SERVICES, service.metadata, { type: "merge", patch }, { subresource: "status" });
}

function missingOf(ipam: Ipam, service: ServiceObject, requests: readonly FamilyRequest[]): FamilyRequest[] {
  const handles = new Set(ipam.allocated().map(({ handle }) => handle));
  return requests.filter(({ family }) => !handles.has(handleOf(service, family)));
}

/** One for each family, so that each is released by itself. With the uid: a Service of the same name is another one. */
function handleOf({ metadata: { namespace = "", name, uid = "" } }: ServiceObject, family: FamilyName): string {
  return handleId("service", namespace, name, uid, family.toLowerCase());
}

function ownerOf(service: ServiceObject, family: FamilyName): Owner {
  const { namespace = "", name } = service.metadata;
  return { handle: handleOf(service, family), facts: { namespace, service: name, type: "LoadBalancer" } };
}

function isOf(family: FamilyName, address: string): boolean {
  return parseAddress(address)?.family.name === family;
}

function nameOf({ metadata }: ServiceObject): string {
  return `${metadata.namespace}/${metadata.name}`;
}

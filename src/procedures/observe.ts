import type { Names } from "../api/names.ts";
import type { KubeObject } from "../api/object.ts";
import { StatusError } from "../api/status.ts";
import type { ClusterKind } from "../api/tables/cluster-kinds.ts";
import { detectClusterKind } from "../api/tables/detect-cluster-kind.ts";
import { VERSION } from "../api/tables/release.ts";
import type { Client } from "../cluster/client.ts";
import { statusError } from "../cluster/failures.ts";
import { CodedError } from "../kit/errors.ts";
import { clusterFacts, kindOf } from "./cluster-facts.ts";
import type { Observation, SeenKind, SeenV3 } from "./observation.ts";
import { type ClusterObjects, readCluster } from "./observe/cluster-objects.ts";
import { seeDefinition } from "./observe/definition-hash.ts";
import { errors } from "./observe/errors.ts";
import { readStored } from "./observe/read-stored.ts";
import { createReader } from "./observe/reader.ts";
import { hostAndPort, seeCandidates, seeNetworks } from "./observe/see-api-address.ts";
import { aggregatedApiAnswers, seeLeftovers } from "./observe/see-leftovers.ts";
import { seeLock } from "./observe/see-lock.ts";
import { seeNode } from "./observe/see-nodes.ts";
import { seeProxy } from "./observe/see-proxy.ts";
import { seeService } from "./observe/see-service.ts";
import { seeUnsupported } from "./observe/see-unsupported.ts";
import { ownedThroughV3 } from "./owned-through-v3.ts";
import { missingRights } from "./rights/missing-rights.ts";
import { observationRights, ownedRights } from "./rights/observation-rights.ts";
import { rightsMissing } from "./rights/require-rights.ts";
import type { Right } from "./rights/right.ts";

export interface ObserveOptions {
  /** The API server's address as the kubeconfig has it. */
  server: string;
  /** `--kind`. */
  kind?: ClusterKind;
  /** Also what is owned through v3 resources, which means reading the metadata of every kind there is. */
  owned?: boolean;
  /** Also every object of the service's own kinds, which an upgrade compares with what the new release has. */
  stored?: boolean;
  /** Also, where the datastore is etcd, whether that is locked, which means connecting to it. */
  etcd?: boolean;
  /** The words of the command that observes, for the role to ask an administrator for. */
  command?: string;
  signal?: AbortSignal;
}

/** Reads everything plans and checks are decided from, in a bounded number of requests however many nodes there are. */
export async function observe(client: Client, names: Names, options: ObserveOptions): Promise<Observation> {
  const reader = createReader(client, names.groups.served.group, options.signal);
  const [seen, version, owned] = await Promise.all([
    readCluster(reader, names),
    serverVersion(client, options.signal),
    options.owned ? ownedThroughV3(client, names, options) : undefined,
  ]).catch(async (error: unknown) => {
    throw (await everyMissingRight(client, names, options, error)) ?? error;
  });
  const server = { ...version, ...(hostAndPort(options.server) ?? { host: "", port: "" }) };
  const stored = options.stored ? await readStored(client, reader, seen, names, options.signal) : undefined;
  const described = describe(seen, names, server, options.kind);
  const lock = await seeLock(described, client, options);
  return { ...described, lock, ...(owned ? { owned } : {}), ...(stored ? { stored } : {}) };
}

/** Where one right is missing others may be: they are named together, not one after the other. */
async function everyMissingRight(
  client: Client,
  names: Names,
  { owned, command = "", signal }: ObserveOptions,
  error: unknown,
): Promise<Error | undefined> {
  const forbidden = error instanceof StatusError && error.code === 403;
  if (!forbidden && !(error instanceof CodedError && error.code === "OBSERVE_FORBIDDEN")) return undefined;
  const served = await client.resources();
  const isServed = ({ group, resource }: Right) =>
    resource === "*" || served.some((one) => one.group === group && one.plural === resource);
  const rights = [...observationRights(names), ...(owned ? ownedRights() : [])].filter(isServed);
  const missing = await missingRights(client, rights, signal);
  return missing.length === 0 ? undefined : rightsMissing(missing, command);
}

function describe(
  seen: ClusterObjects,
  names: Names,
  server: Observation["server"],
  given: ClusterKind | undefined,
): Omit<Observation, "lock"> {
  const kind = seeKind(seen, given);
  const nodes = seen.nodes.map((node) => seeNode(node, names));
  const service = seeService(seen, names);
  const proxy = seeProxy(seen, names);
  const ground = seeNetworks(seen);
  const facts = clusterFacts({ kind, nodes, service, proxy, apiAddress: ground });
  const { endpointMap } = service;
  return {
    names,
    tool: { version: VERSION },
    server,
    kind,
    nodes,
    service,
    proxy,
    apiAddress: { ...ground, candidates: seeCandidates(seen, facts, { kind, names, server, ground, endpointMap }) },
    crds: seen.definitions.filter(({ metadata }) => isOurs(metadata.name, names)).map(seeDefinition),
    v3: seeV3(seen, names),
    unsupported: seeUnsupported(seen, kindOf({ kind }), names),
    leftovers: seeLeftovers(seen, service, names),
    budgets: seen.budgets.filter(({ metadata }) => isSystem(metadata.namespace, names)),
    run: seeRun(seen.lease),
  };
}

function seeKind(seen: ClusterObjects, given: ClusterKind | undefined): SeenKind {
  const definitions = seen.definitions.map(({ metadata }) => metadata.name);
  const found = detectClusterKind({ definitions, configMaps: seen.configMaps, nodes: seen.nodes });
  if (found && given && found.kind !== given) throw errors.OBSERVE_KIND_CONTRADICTED(given, found.kind, found.seen);
  return { detected: found?.kind, evidence: found?.seen ?? "no platform was detected", given };
}

function isOurs(definition: string, { groups }: Names): boolean {
  return [groups.operator, groups.stored, groups.served].some(({ group }) => definition.endsWith(`.${group}`));
}

function isSystem(namespace: string | undefined, { namespaces }: Names): boolean {
  return Object.values(namespaces).includes(namespace ?? "");
}

function seeV3({ ours, definitions, apiServiceOfV3 }: ClusterObjects, names: Names): SeenV3 {
  const stored = definitions.some(({ metadata }) => metadata.name.endsWith(`.${names.groups.stored.group}`));
  const aggregated = aggregatedApiAnswers(apiServiceOfV3);
  return {
    served: aggregated ? "aggregated" : stored ? "stored" : "none",
    hostEndpoints: ours.hostEndpoint,
    globalNetworkPolicies: ours.globalNetworkPolicy,
    networkPolicies: ours.networkPolicy,
    tiers: ours.tier,
    profiles: ours.profile,
  };
}

function seeRun(lease: KubeObject | undefined): Observation["run"] {
  const spec = (lease?.["spec"] ?? {}) as {
    holderIdentity?: string;
    renewTime?: string;
    leaseDurationSeconds?: number;
  };
  if (!spec.holderIdentity) return undefined;
  return { holder: spec.holderIdentity, renewed: spec.renewTime, seconds: spec.leaseDurationSeconds ?? 0 };
}

async function serverVersion(
  client: Client,
  signal: AbortSignal | undefined,
): Promise<Pick<Observation["server"], "version" | "time">> {
  const response = await client.raw({ method: "GET", path: "/version", ...(signal ? { signal } : {}) });
  const text = await response.text();
  if (response.status !== 200) throw statusError(response.status, text);
  const date = Date.parse(response.headers["date"] ?? "");
  return { version: gitVersionIn(text) ?? "unknown", ...(Number.isFinite(date) ? { time: date } : {}) };
}

function gitVersionIn(text: string): string | undefined {
  try {
    const { gitVersion } = JSON.parse(text) as { gitVersion?: unknown };
    return typeof gitVersion === "string" ? gitVersion : undefined;
  } catch {
    return undefined;
  }
}

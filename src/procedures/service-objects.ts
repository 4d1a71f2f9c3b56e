import type { Names } from "../api/names.ts";
import { groupVersion, type KubeObject, type ResourceKind } from "../api/object.ts";
import type { Client } from "../cluster/client.ts";
import { isNotFound } from "../cluster/failures.ts";
import {
  API_SERVICES,
  CLUSTER_ROLE_BINDINGS,
  CLUSTER_ROLES,
  CONFIG_MAPS,
  CRDS,
  CSI_DRIVERS,
  DAEMON_SETS,
  DEPLOYMENTS,
  NAMESPACES,
  NETWORK_POLICIES,
  POD_DISRUPTION_BUDGETS,
  PRIORITY_CLASSES,
  ROLE_BINDINGS,
  ROLES,
  SECRETS,
  SERVICE_ACCOUNTS,
  SERVICES,
} from "../cluster/kinds.ts";
import { inParallel } from "../kit/in-parallel.ts";

/** The orchestrator's kinds the service has objects of, in the order to make them: what is needed comes before what needs it. */
const CLUSTER_WIDE: readonly ResourceKind[] = [
  CRDS,
  NAMESPACES,
  PRIORITY_CLASSES,
  CLUSTER_ROLES,
  CLUSTER_ROLE_BINDINGS,
  CSI_DRIVERS,
  API_SERVICES,
];
const IN_NAMESPACES: readonly ResourceKind[] = [
  SERVICE_ACCOUNTS,
  ROLES,
  ROLE_BINDINGS,
  SECRETS,
  CONFIG_MAPS,
  NETWORK_POLICIES,
  SERVICES,
  POD_DISRUPTION_BUDGETS,
  DAEMON_SETS,
  DEPLOYMENTS,
];

/** The same, for who needs to know what is listed. */
export const SERVICE_KINDS = { clusterWide: CLUSTER_WIDE, inNamespaces: IN_NAMESPACES } as const;

const LISTS_AT_ONCE = 8;

/**
 * Every object of the service there is: its definitions and all resources of its own groups, everything in its namespaces, and what
 * it has elsewhere under its names. Left out is what others make of these: pods, replica sets, revisions, slices, leases, events.
 * In an order to make them in; the reverse is one to remove them in.
 */
export async function serviceObjects(
  client: Client,
  names: Names,
  options: { signal?: AbortSignal } = {},
): Promise<KubeObject[]> {
  const { signal } = options;
  const list = async (kind: ResourceKind, namespace?: string): Promise<KubeObject[]> => {
    try {
      const { items } = await client.list<KubeObject>(kind, {
        ...(namespace === undefined ? {} : { namespace }),
        signal,
      });
      return items.filter((object) => isOfService(object, names));
    } catch (error) {
      // The kind, or the namespace, went away meanwhile: there is nothing of it.
      if (isNotFound(error)) return [];
      throw error;
    }
  };
  const places: [ResourceKind, string?][] = [
    ...[...CLUSTER_WIDE, ...(await ownKinds(client, names))].map((kind): [ResourceKind] => [kind]),
    ...IN_NAMESPACES.flatMap((kind) => namespacesOf(names).map((name): [ResourceKind, string] => [kind, name])),
  ];
  const found: KubeObject[][] = [];
  await inParallel(places, LISTS_AT_ONCE, async (place) => {
    found[places.indexOf(place)] = await list(...place);
  });
  return found.flat().sort((a, b) => rankOf(a) - rankOf(b));
}

/** What agents alone write as pods come and go: which address is whose. It is newer than any copy of it. */
export function isAddressBookkeeping({ apiVersion, kind }: KubeObject, { groups, kinds }: Names): boolean {
  const bookkeeping = [kinds.ipamBlock, kinds.ipamHandle, kinds.blockAffinity].map((one) => one.kind);
  return apiVersion === groupVersion(groups.stored) && bookkeeping.includes(kind);
}

/** Whether an object is the service's own: by its group, by where it is, or by its name. */
export function isOfService(object: KubeObject, names: Names): boolean {
  const { apiVersion, kind, metadata } = object;
  const { operator, stored, served } = names.groups;
  const groups = [operator.group, stored.group];
  if (groups.includes(apiVersion.split("/")[0] as string)) return true;
  if (kind === CRDS.kind) return groups.includes((object["spec"] as { group?: string } | undefined)?.group ?? "");
  if (kind === API_SERVICES.kind) return metadata.name === `${served.version}.${served.group}`;
  if (kind === CSI_DRIVERS.kind) return metadata.name === operator.group.replace(/^operator\./, "csi.");
  if (kind === NAMESPACES.kind) return ownNamespaces(names).includes(metadata.name);
  if (isMadeByOthers(object)) return false;
  if (ownNamespaces(names).includes(metadata.namespace ?? "")) return true;
  return hasOwnName(metadata.name, names);
}

/** What every namespace gets from the orchestrator. */
function isMadeByOthers({ kind, metadata }: KubeObject): boolean {
  return (
    (kind === CONFIG_MAPS.kind && metadata.name === "kube-root-ca.crt") ||
    (kind === SERVICE_ACCOUNTS.kind && metadata.name === "default")
  );
}

/** `vendor-node`, `vendor-apiserver-auth-reader`, …: begins with the word one of its workloads begins with. */
function hasOwnName(name: string, { workloads, manifests }: Names): boolean {
  const words = new Set(Object.values(workloads).map((workload) => workload.split("-")[0] as string));
  return name === manifests.configMap || words.has(name.split("-")[0] as string);
}

function ownNamespaces({ namespaces }: Names): string[] {
  return [namespaces.operator, namespaces.system, namespaces.apiServerBeforeV331];
}

function namespacesOf(names: Names): string[] {
  return [...ownNamespaces(names), names.namespaces.orchestratorSystem];
}

/** The kinds of our own groups that the cluster has: an older version has fewer of them. */
async function ownKinds(client: Client, { groups }: Names): Promise<ResourceKind[]> {
  const wanted = [groupVersion(groups.operator), groupVersion(groups.stored)];
  const found = (await client.resources()).filter(
    (resource) => wanted.includes(groupVersion(resource)) && resource.verbs.includes("list"),
  );
  return found.map(({ group, version, kind, plural, namespaced }) => ({ group, version, kind, plural, namespaced }));
}

/** Definitions, namespaces and rights; then resources of ours; then what runs; what announces an API last. */
function rankOf({ apiVersion, kind }: KubeObject): number {
  const matches = (one: ResourceKind) => one.kind === kind && groupVersion(one) === apiVersion;
  if (matches(API_SERVICES)) return 1000;
  const wide = CLUSTER_WIDE.findIndex(matches);
  if (wide >= 0) return wide;
  const inside = IN_NAMESPACES.findIndex(matches);
  if (inside < 0) return 50;
  return inside < IN_NAMESPACES.indexOf(NETWORK_POLICIES) ? 10 + inside : 100 + inside;
}

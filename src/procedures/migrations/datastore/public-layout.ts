import { calicoNames, type Names, type Noun } from "../../../api/names.ts";
import { groupVersion, type KubeObject, type ObjectMeta, type ResourceKind } from "../../../api/object.ts";
import { orchestratorTier } from "../../../api/resources/policy-names.ts";
import { v3Places } from "../../../api/resources/v3-places.ts";
import type { EtcdValue } from "../../../datastore/etcd/etcd-keys.ts";
import { errors } from "./errors.ts";
import type { Layout, MovedKind, StoredObject, Unplaced } from "./layout.ts";
import { IPAM_KINDS, type IpamKind, ipamFromKubernetes } from "./public/ipam-kinds.ts";
import { nodeData, nodeFromEtcd, nodeInKubernetes } from "./public/node-data.ts";
import { packed, unpacked, withUsersName } from "./public/stored-metadata.ts";
import { parsedJson, withoutNulls } from "./public/values.ts";
import { hasProfiles, isOfPod, outdatedProfiles, writeEndpoints } from "./public/workload-endpoints.ts";
import { storedObject } from "./stored-objects.ts";

/** A v3 resource in its folder of etcd. */
interface V3Kind extends MovedKind {
  folder: string;
  tiered: boolean;
}

/** Among which are those that controllers make of Kubernetes' policies. */
const OF_CONTROLLERS: readonly string[] = ["networkpolicies", "globalnetworkpolicies"];
const OF_IPAM: readonly Noun[] = IPAM_KINDS.map(({ noun }) => noun);
/** How long a call of the CNI plugin may take that read the flag before it was set. */
const QUIET_MS = 5000;

/**
 * The public system: v3 resources as JSON, IPAM in values of its own, nodes as annotations; endpoints of pods, profiles of namespaces and
 * policies of Kubernetes are read from Kubernetes itself there.
 */
export function publicLayout(names: Names): Layout {
  const root = `/${names.dialect}/`;
  const resources = `${root}resources/v3/${names.groups.served.group}/`;
  const kinds = v3Kinds(names, resources);
  const ipam = IPAM_KINDS.map((kind) => ipamKind(kind, names));
  return {
    root,
    kinds: [...kinds, ...ipam.map(({ moved }) => moved), nodeData],
    place(value) {
      if (value.key.startsWith(resources)) return placeResource(value, resources, kinds);
      if (!value.key.startsWith(`${root}ipam/`)) return undefined;
      if (/\/ipam\/v2\/host\/[^/]+$/.test(value.key)) return undefined;
      return placeIpam(value, ipam);
    },
    quietMs: QUIET_MS,
    hasCopies: hasProfiles,
    outdatedCopies: outdatedProfiles,
    writeDerived: writeEndpoints,
  };
}

function v3Kinds(names: Names, resources: string): V3Kind[] {
  return v3Places(names)
    .filter(({ noun }) => noun !== "profile" && !OF_IPAM.includes(noun))
    .map(({ stored: place, noun, tiered }) => v3Kind(place, resources, tiered, noun));
}

function v3Kind(served: ResourceKind, resources: string, tiered: boolean, noun: Noun): V3Kind {
  const folder = `${resources}${served.plural}/`;
  return {
    ...{ served, folder, tiered },
    keyOf: ({ metadata }) => `${folder}${served.namespaced ? `${metadata.namespace}/` : ""}${metadata.name}`,
    written: ({ metadata, ...object }) => {
      const { resourceVersion: _, ...kept } = metadata;
      const apiVersion = groupVersion(calicoNames.groups.served);
      return JSON.stringify({ ...object, kind: served.kind, apiVersion, metadata: kept });
    },
    fromKubernetes: (object) => withDefaults(noun, unpacked(object, tiered)),
    toKubernetes: (object) => packed(object, tiered),
  };
}

function ipamKind(kind: IpamKind, names: Names): { kind: IpamKind; moved: MovedKind } {
  const { noun } = kind;
  const { stored, ...place } = names.kinds[noun];
  const served = { ...names.groups.stored, ...(stored ?? place), namespaced: false };
  const moved: MovedKind = {
    served,
    keyOf: (object) => kind.keyOf(object["spec"]),
    written: (object) => JSON.stringify(kind.written(object["spec"])),
    fromKubernetes: (object) => ipamFromKubernetes(noun, unpacked(object, false)),
    toKubernetes: (object) => packed(object, false),
  };
  return { kind, moved };
}

function placeIpam(value: EtcdValue, kinds: readonly ReturnType<typeof ipamKind>[]): StoredObject {
  for (const { kind, moved } of kinds) {
    const read = kind.read(value);
    if (!read) continue;
    const { name, spec, labels } = read;
    const metadata = { name, resourceVersion: String(value.revision), ...(labels && { labels }) };
    return storedObject(moved, { apiVersion: "", kind: "", metadata, spec }, value.value);
  }
  throw errors.MIGRATE_DATASTORE_UNKNOWN_KEY(value.key);
}

function placeResource(value: EtcdValue, resources: string, kinds: readonly V3Kind[]): ReturnType<Layout["place"]> {
  const [plural = "", ...path] = value.key.slice(resources.length).split("/");
  const name = path.at(-1) ?? "";
  if (orchestratorTier(name) !== undefined && OF_CONTROLLERS.includes(plural)) return undefined;
  if (plural === "workloadendpoints" || plural === "profiles") return placeDerived(value, plural, path);
  if (plural === "nodes") return placeNode(value, name);
  const kind = kinds.find(({ folder }) => value.key.startsWith(folder));
  if (!kind || path.length !== (kind.served.namespaced ? 2 : 1)) throw errors.MIGRATE_DATASTORE_UNKNOWN_KEY(value.key);
  const object = readResource(value, kind.served.namespaced ? { name, namespace: path[0]! } : { name });
  const noun = nounOf(kind);
  return storedObject(kind, withDefaults(noun, kind.tiered ? withUsersName(object) : object), value.value);
}

const nounOf = ({ served }: MovedKind): Noun | undefined =>
  v3Places(calicoNames).find(({ stored }) => stored.plural === served.plural)?.noun;

/** An object is the one of its key, whatever its value says. */
function readResource({ key, value, revision }: EtcdValue, named: Pick<ObjectMeta, "name" | "namespace">): KubeObject {
  const { metadata: given, ...object } = withoutNulls(parsedJson(key, value)) as KubeObject;
  const { resourceVersion: _, managedFields: __, generation: ___, ...metadata } = (given ?? {}) as ObjectMeta;
  return { ...object, metadata: { ...metadata, ...named, resourceVersion: String(revision) } } as KubeObject;
}

function placeNode(value: EtcdValue, name: string): StoredObject | undefined {
  const object = readResource(value, { name });
  const called = nodeInKubernetes(object);
  if (called !== undefined && called !== name) throw errors.MIGRATE_DATASTORE_NODE_NAMES(name, called);
  const read = nodeFromEtcd(object);
  return read && storedObject(nodeData, read, value.value);
}

/** What Kubernetes' own objects say, if they do: users may have made others. */
function placeDerived(value: EtcdValue, plural: string, path: readonly string[]): Unplaced | undefined {
  const name = path.join("/");
  if (plural === "profiles") {
    const { allowAllProfile } = calicoNames.hostEndpoints;
    if (/^k(?:ns|sa)\./.test(name) || name === allowAllProfile) return undefined;
    const unplaced = "With the Kubernetes datastore, profiles are those of namespaces and service accounts only.";
    return { id: `Profile ${name}`, unplaced };
  }
  if (isOfPod(parsedJson(value.key, value.value))) return undefined;
  const unplaced = "With the Kubernetes datastore, workload endpoints are those of pods only.";
  return { id: `WorkloadEndpoint ${name}`, unplaced };
}

/** What the CRDs of v3.31 fill in. */
function withDefaults(noun: Noun | undefined, object: KubeObject): KubeObject {
  const spec = object["spec"] as Record<string, unknown> | undefined;
  if (noun === "bgpConfiguration") return { ...object, spec: { serviceLoadBalancerAggregation: "Enabled", ...spec } };
  if (noun !== "kubeControllersConfiguration") return object;
  const assigned = (settings: unknown) => {
    const { controllers, ...rest } = (settings ?? {}) as { controllers?: Record<string, object> };
    const balancer = controllers?.["loadBalancer"];
    if (!controllers || !balancer) return settings;
    return { ...rest, controllers: { ...controllers, loadBalancer: { assignIPs: "AllServices", ...balancer } } };
  };
  const status = object["status"] as { runningConfig?: unknown } | undefined;
  const running = status?.runningConfig === undefined ? {} : { runningConfig: assigned(status.runningConfig) };
  return { ...object, spec: assigned(spec), ...(status && { status: { ...status, ...running } }) };
}

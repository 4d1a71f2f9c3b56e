import { isDeepStrictEqual } from "node:util";
import { calicoNames } from "../../../../api/names.ts";
import type { KubeObject } from "../../../../api/object.ts";
import { NAMESPACES, NETWORK_POLICIES, PODS, SERVICE_ACCOUNTS } from "../../../../cluster/kinds.ts";
import type { EtcdConnection } from "../../../../datastore/etcd/etcd-connection.ts";
import { ABSENT, deleteKey, readFolder, readPage, writeKey } from "../../../../datastore/etcd/etcd-keys.ts";
import type { Access } from "../layout.ts";
import { ENDPOINTS, endpointOf, type PodFields } from "./pod-endpoint.ts";
import { parsedJson } from "./values.ts";

/** With etcd, the CNI plugin writes an endpoint for every pod and the controllers write profiles and policies; with Kubernetes, agents read pods. */
const { dialect, groups } = calicoNames;
const { group } = groups.served;
const RESOURCES = `/${dialect}/resources/v3/${group}/`;
const PROFILES = `${RESOURCES}profiles/`;
const POLICIES = `${RESOURCES}networkpolicies/`;

/** Endpoints of pods that started meanwhile are written, and those of pods that are gone removed; the others keep their bytes. */
export async function writeEndpoints(etcd: EtcdConnection, { client, signal }: Access): Promise<string> {
  const { items } = await client.list<PodFields>(PODS, { signal });
  const wanted = new Map(items.flatMap((pod) => endpointOf(pod) ?? []).map(({ key, object }) => [key, object]));
  const { values } = await readFolder(etcd, ENDPOINTS);
  const there = new Map(values.map((value) => [value.key, value]));
  let changed = 0;
  for (const [key, object] of wanted) {
    signal.throwIfAborted();
    const before = there.get(key);
    if (before && isOfSamePod(parsedJson(key, before.value), object)) continue;
    await writeKey(etcd, key, JSON.stringify(object), before?.revision ?? ABSENT);
    changed++;
  }
  for (const { key, value, revision } of values) {
    if (wanted.has(key) || !isOfPod(parsedJson(key, value))) continue;
    signal.throwIfAborted();
    await deleteKey(etcd, key, revision);
    changed++;
  }
  return `${changed} workload endpoints of ${wanted.size} pods`;
}

interface Endpoint {
  spec?: { orchestrator?: string; containerID?: string; ipNetworks?: string[] };
}

export const isOfPod = ({ spec }: Endpoint): boolean => (spec?.orchestrator ?? "k8s") === "k8s";

function isOfSamePod({ spec: before }: Endpoint, object: KubeObject): boolean {
  const { containerID, ipNetworks } = object["spec"] as NonNullable<Endpoint["spec"]>;
  const sameContainer = containerID === undefined || containerID === before?.containerID;
  return sameContainer && isDeepStrictEqual(before?.ipNetworks, ipNetworks);
}

/** Whether calico-kube-controllers write to this etcd. */
export async function hasProfiles(etcd: EtcdConnection): Promise<boolean> {
  return (await readPage(etcd, `${PROFILES}kns.`, { limit: 1 })).values.length > 0;
}

/** Profiles and policies that agents on etcd would miss, or have too many: by name, as what is in them is the controllers' own. */
export async function outdatedProfiles(etcd: EtcdConnection, { client, signal }: Access): Promise<Map<string, string>> {
  const names = async (kind: typeof PODS, nameOf: (metadata: KubeObject["metadata"]) => string) =>
    (await client.list<KubeObject>(kind, { signal })).items.map(
      ({ metadata }) => [nameOf(metadata), metadata.uid ?? ""] as const,
    );
  const wanted = new Map([
    ...(await names(NAMESPACES, ({ name }) => `${PROFILES}kns.${name}`)),
    ...(await names(SERVICE_ACCOUNTS, ({ name, namespace }) => `${PROFILES}ksa.${namespace}.${name}`)),
    ...(await names(NETWORK_POLICIES, ({ name, namespace }) => `${POLICIES}${namespace}/knp.default.${name}`)),
  ]);
  const found = [...(await readFolder(etcd, PROFILES)).values, ...(await readFolder(etcd, POLICIES)).values];
  const there = new Set(found.map(({ key }) => key).filter(isMadeByControllers));
  const missing = [...wanted].filter(([key]) => !there.has(key));
  return new Map([...missing, ...[...there].filter((key) => !wanted.has(key)).map((key) => [key, "gone"] as const)]);
}

const isMadeByControllers = (key: string): boolean =>
  /\/(?:profiles\/k(?:ns|sa)|networkpolicies\/[^/]+\/knp)\./.test(key);

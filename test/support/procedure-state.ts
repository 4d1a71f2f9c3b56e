import { isDeepStrictEqual } from "node:util";
import type { Condition, KubeObject } from "../../src/api/object.ts";
import type { Client } from "../../src/cluster/client.ts";
import { patience } from "../../src/kit/testing/patience.ts";
import { listEverything } from "./operator-snapshot.ts";

/** All objects of all kinds by `Kind namespace/name`, without what differs between two lives of the same cluster. */
export type ClusterState = ReadonlyMap<string, unknown>;

/** Follow from what is compared, under names or addresses that are new every time. */
const FOLLOWING = new Set(["ReplicaSet", "ControllerRevision", "EndpointSlice", "Endpoints", "ComponentStatus"]);

/** What people and programs have written in a cluster, to be compared object by object. A run's own journal and lease are no part of it. */
export async function clusterState(client: Client): Promise<ClusterState> {
  return stateOf(await listEverything(client));
}

function stateOf(objects: ReadonlyMap<string, KubeObject>): ClusterState {
  const state = new Map<string, unknown>();
  for (const [name, object] of objects) {
    if (FOLLOWING.has(object.kind) || isJournal(object)) continue;
    if (object.kind === "Pod") count(state, podName(object));
    else state.set(name, essence(object.kind === "Node" ? withoutHealth(object) : object));
  }
  return state;
}

/** The taints that follow from a node's conditions: a rollback does not remove the CNI that made it ready. */
function withoutHealth(node: KubeObject): KubeObject {
  const { taints = [], ...spec } = (node["spec"] ?? {}) as { taints?: { key: string }[] };
  const kept = taints.filter(({ key }) => !key.startsWith("node.kubernetes.io/"));
  return { ...node, spec: { ...spec, ...(kept.length > 0 ? { taints: kept } : {}) } };
}

/** Where two states differ, as `name: what field: this instead of that`; nothing where they are the same. */
export function stateDifferences(expected: ClusterState, found: ClusterState): string[] {
  const names = [...new Set([...expected.keys(), ...found.keys()])].sort();
  return names.flatMap((name) => {
    if (!found.has(name)) return [`${name}: missing`];
    if (!expected.has(name)) return [`${name}: should not be there`];
    return fieldDifferences(expected.get(name), found.get(name)).map((difference) => `${name}: ${difference}`);
  });
}

/** Looks until the cluster is as expected, because controllers take their time; gives back what still differs after that. */
export async function untilState(client: Client, expected: ClusterState, patienceMs = 20_000): Promise<string[]> {
  const began = Date.now();
  for (;;) {
    const differences = stateDifferences(expected, await clusterState(client));
    if (differences.length === 0 || Date.now() - began > patience(patienceMs)) return differences;
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

/**
 * The state once nothing has changed for a few looks and nothing is under way: on a busy machine, looks may all fall between one thing and what
 * follows from it. Where something never ends, the first is enough after a while.
 */
export async function settledState(client: Client, patienceMs = 20_000): Promise<ClusterState> {
  const began = Date.now();
  let before = await clusterState(client);
  for (let same = 0; same < LOOKS; ) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    const objects = await listEverything(client);
    const after = stateOf(objects);
    const rests = Date.now() - began > patience(patienceMs) || ![...objects.values()].some(isUnderWay);
    same = rests && stateDifferences(before, after).length === 0 ? same + 1 : 0;
    before = after;
  }
  return before;
}

/** A pod that is about to go, or pods of a Deployment's former template. */
function isUnderWay({ kind, metadata, status }: KubeObject): boolean {
  if (kind === "Pod") return metadata.deletionTimestamp !== undefined;
  if (kind !== "Deployment") return false;
  const { replicas = 0, updatedReplicas = 0 } = (status ?? {}) as { replicas?: number; updatedReplicas?: number };
  return replicas !== updatedReplicas;
}

const LOOK_MS = 100;
const LOOKS = 4;

function isJournal({ kind, metadata }: KubeObject): boolean {
  return kind === "Secret" && metadata.labels?.["app.kubernetes.io/managed-by"] === "vendorctl";
}

function count(state: Map<string, unknown>, name: string): void {
  state.set(name, Number(state.get(name) ?? 0) + 1);
}

/** Pods by whose they are and what they run: their own names are new every time. */
function podName({ metadata, ...pod }: KubeObject): string {
  const owner = metadata.ownerReferences?.[0];
  const whose = owner?.kind === "ReplicaSet" ? owner.name.replace(/-[^-]+$/, "") : (owner?.name ?? metadata.name);
  const { containers = [] } = (pod["spec"] ?? {}) as { containers?: { image?: string; env?: unknown }[] };
  const runs = containers.map(({ image, env }) => ({ image, env: clean(env) }));
  return `Pods of ${metadata.namespace}/${whose}: ${JSON.stringify(runs)}`;
}

const FLEETING_METADATA = ["uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"];
const FLEETING_ANNOTATIONS = /^deployment\.kubernetes\.io\/revision$|^deprecated\.daemonset\.template\.generation$/;

function essence(object: KubeObject): unknown {
  const { status, metadata, ...rest } = object;
  const meta: Record<string, unknown> = { ...metadata };
  for (const key of FLEETING_METADATA) delete meta[key];
  const annotations = Object.entries(metadata.annotations ?? {}).filter(([key]) => !FLEETING_ANNOTATIONS.test(key));
  if (annotations.length > 0) meta["annotations"] = Object.fromEntries(annotations);
  else delete meta["annotations"];
  if (Object.keys(metadata.labels ?? {}).length === 0) delete meta["labels"];
  if (metadata.finalizers) meta["finalizers"] = [...metadata.finalizers].sort();
  if (metadata.ownerReferences) meta["ownerReferences"] = metadata.ownerReferences.map(({ uid: _, ...owner }) => owner);
  return clean({ ...rest, metadata: meta, ...conditionsOf(object.kind, status) });
}

/** Of a status only what our own status resources say: the rest counts and dates. */
function conditionsOf(kind: string, status: unknown): object {
  if (kind !== "VendorStatus") return {};
  const { conditions = [] } = (status ?? {}) as { conditions?: Condition[] };
  return { conditions: conditions.map(({ type, status: is, reason }) => `${type}=${is} (${reason})`).sort() };
}

/** Sorted keys, and what is different every time told apart by its form: keys, certificates, addresses the server chose. */
function clean(value: unknown, key = ""): unknown {
  if (Array.isArray(value)) return value.map((item) => clean(item, key));
  if (typeof value === "string") return cleanText(value, key);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined);
  return Object.fromEntries(
    entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, inner]) => [name, clean(inner, name)]),
  );
}

const CHOSEN = new Set(["clusterIP", "clusterIPs", "nodePort", "healthCheckNodePort", "caBundle"]);

function cleanText(text: string, key: string): string {
  if (CHOSEN.has(key) && text !== "None") return "CHOSEN";
  const decoded = /^[A-Za-z0-9+/]{40,}={0,2}$/.test(text) ? Buffer.from(text, "base64").toString("latin1") : "";
  if (decoded.includes("-----BEGIN ")) return "PEM";
  return text
    .replace(/-----BEGIN [^-]+-----[^-]+-----END [^-]+-----\n?/g, "PEM")
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "TIME")
    .replace(/\b[0-9a-f]{16,}\b/g, "HASH")
    .replace(/eyJ[\w-]+\.[\w-]+\.[\w-]+/g, "TOKEN");
}

function fieldDifferences(expected: unknown, found: unknown, path = ""): string[] {
  if (isDeepStrictEqual(expected, found)) return [];
  const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;
  if (isObject(expected) && isObject(found) && Array.isArray(expected) === Array.isArray(found)) {
    const keys = [...new Set([...Object.keys(expected), ...Object.keys(found)])];
    return keys.flatMap((key) => fieldDifferences(expected[key], found[key], path ? `${path}.${key}` : key));
  }
  return [`${path}: ${brief(found)} instead of ${brief(expected)}`];
}

function brief(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}

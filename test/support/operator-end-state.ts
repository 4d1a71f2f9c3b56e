import type { KubeObject } from "../../src/api/object.ts";
import type { Contents } from "./operator-snapshot.ts";

/** What a cluster has come to, without what is different in every life of it: UIDs, versions, times, keys, addresses. */
export type EndState = ReadonlyMap<string, unknown>;

/** Made by the orchestrator out of what is compared already, under names that are different every time. */
const DERIVED = new Set(["ReplicaSet", "ControllerRevision", "EndpointSlice", "Endpoints", "Node"]);

export function endState(contents: Contents): EndState {
  const state = new Map<string, unknown>();
  for (const [name, object] of contents) {
    if (DERIVED.has(object.kind)) continue;
    if (object.kind === "Pod") countPod(state, object);
    else state.set(name, essence(object));
  }
  return state;
}

/** Where two end states differ, as `name: this instead of that`; nothing when they are the same. */
export function differentFrom(expected: EndState, found: EndState): string[] {
  const names = [...new Set([...expected.keys(), ...found.keys()])].sort();
  return names.flatMap((name) => {
    const [wanted, is] = [JSON.stringify(expected.get(name)), JSON.stringify(found.get(name))];
    return wanted === is ? [] : [`${name}: ${firstDifference(is, wanted)}`];
  });
}

const AROUND = 120;

function firstDifference(is = "nothing", wanted = "nothing"): string {
  let at = 0;
  while (at < is.length && is[at] === wanted[at]) at++;
  const from = Math.max(0, at - AROUND / 2);
  return `…${is.slice(from, at + AROUND)}… instead of …${wanted.slice(from, at + AROUND)}…`;
}

/** Pods by whose they are, how they do and what they run. */
function countPod(state: Map<string, unknown>, pod: KubeObject): void {
  const owner = pod.metadata.ownerReferences?.[0];
  const whose = owner?.kind === "ReplicaSet" ? owner.name.replace(/-[^-]+$/, "") : (owner?.name ?? pod.metadata.name);
  const { containers = [] } = (pod["spec"] ?? {}) as { containers?: { image?: string; env?: unknown }[] };
  const { phase } = (pod["status"] ?? {}) as { phase?: string };
  const runs = essence(containers.map(({ image, env }) => ({ image, env })));
  const name = `Pods of ${pod.metadata.namespace}/${whose}, ${phase}: ${JSON.stringify(runs)}`;
  state.set(name, Number(state.get(name) ?? 0) + 1);
}

const FLEETING = new Set([
  "uid",
  "resourceVersion",
  "creationTimestamp",
  "generation",
  "observedGeneration",
  "managedFields",
  "clusterIP",
  "clusterIPs",
  "deployment.kubernetes.io/revision",
  "deprecated.daemonset.template.generation",
]);

function essence(value: unknown, key = ""): unknown {
  if (Array.isArray(value)) return key === "finalizers" ? [...value].sort() : value.map((item) => essence(item));
  if (typeof value === "string") return fixed(value);
  if (typeof value !== "object" || value === null) return value;
  const secret = (value as { kind?: string }).kind === "Secret";
  const entries = Object.entries(value)
    .filter(([name]) => !FLEETING.has(name))
    .map(([name, inner]) => [name, secret && name === "data" ? Object.keys(inner as object) : essence(inner, name)]);
  return Object.fromEntries(entries.sort(([a], [b]) => (String(a) < String(b) ? -1 : 1)));
}

/** Times, certificates, hashes and the random ends of names are told apart from what matters by their form. */
function fixed(text: string): string {
  return text
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "TIME")
    .replace(/-----BEGIN [^-]+-----[^-]+-----END [^-]+-----\n?/g, "PEM ")
    .replace(/^[A-Za-z0-9+/=]{200,}$/, "BASE64")
    .replace(/\b[0-9a-f]{16,}\b/g, "HASH")
    .replace(/ReplicaSet "[^"]+"/g, "ReplicaSet");
}

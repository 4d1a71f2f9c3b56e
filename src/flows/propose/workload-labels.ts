import type { KubeObject } from "../../api/object.ts";
import type { FlowEnd } from "../../api/protocol/flow.ts";
import { workloadEnd } from "../../api/protocol/workload-end.ts";
import { orMake } from "../../calc/or-make.ts";
import type { ClusterObjects } from "../explain/cluster-objects.ts";
import type { Labels } from "../explain/rule-objects.ts";

/** Pods of a workload that have the same stable labels. */
export interface LabeledPods {
  workload: FlowEnd;
  labels: Labels;
}

/** By namespace. */
export type PodLabels = ReadonlyMap<string, readonly LabeledPods[]>;

/** What selects a workload and no other; or why nothing does: `like` are workloads that have all of its labels. */
export type WorkloadLabels = { labels: Labels } | { like: readonly string[] };

/** People know a workload by these, in this order. */
const PREFERRED = [
  "app.kubernetes.io/name",
  "app",
  "k8s-app",
  "app.kubernetes.io/component",
  "component",
  "app.kubernetes.io/instance",
  "name",
];
/** Some are no labels of a flow's end; these change with a release too. */
const UNSTABLE_KEY =
  /hash|checksum|revision|generation|^job-name$|^controller-uid$|^batch\.kubernetes\.io\/|^statefulset\.kubernetes\.io\/pod-name$|^apps\.kubernetes\.io\/pod-index$|(?:^|[/.-])(?:version|rev|chart|uid)$/i;
const SWITCH = /^(?:true|false|yes|no|on|off|enabled|disabled)?$/i;
/** More together say no more to who reads them: then all are used. */
const MOST_CHOSEN = 3;
/** Choosing goes through triples of them. */
const MOST_CANDIDATES = 16;
const PODS_BETWEEN_TURNS = 50;

/** Stable labels of the pods of some namespaces. Yields now and then, for others to get their turn. */
export function* podLabels(objects: ClusterObjects, namespaces: ReadonlySet<string>): Generator<void, PodLabels> {
  const found = new Map<string, Map<string, LabeledPods>>();
  for (const [index, pod] of (objects.get("pods") ?? []).entries()) {
    if (index % PODS_BETWEEN_TURNS === 0) yield;
    const { namespace = "" } = pod.metadata;
    // Policy selects no pod of the host's network.
    if (!namespaces.has(namespace) || isOnHost(pod)) continue;
    const workload = workloadEnd(pod);
    const labels = stableLabels(workload.labels ?? {});
    const same = JSON.stringify([workload.kind, workload.name, Object.entries(labels).sort()]);
    orMake(
      orMake(found, namespace, () => new Map()),
      same,
      () => ({ workload, labels }),
    );
  }
  return new Map([...found].map(([namespace, pods]) => [namespace, [...pods.values()]]));
}

function isOnHost(pod: KubeObject): boolean {
  return Boolean((pod["spec"] as { hostNetwork?: boolean } | undefined)?.hostNetwork);
}

/** The fewest labels that all pods of a workload have and no pod of another of its namespace has all of. Without pods, of labels that were recorded. */
export function labelsOf(pods: readonly LabeledPods[], end: Pick<FlowEnd, "name" | "kind" | "labels">): WorkloadLabels {
  const isOwn = ({ workload }: LabeledPods) =>
    workload.name === end.name && (end.kind === undefined || workload.kind === end.kind);
  const own = pods.filter(isOwn).map(({ labels }) => labels);
  const others = pods.filter((one) => !isOwn(one));
  const candidates = candidatesOf(own.length > 0 ? own : [stableLabels(end.labels ?? {})]);
  const telling = candidates.filter(([, value]) => !SWITCH.test(value));
  const chosen = fewest(telling, others) ?? fewest(candidates, others);
  if (chosen) return { labels: Object.fromEntries(chosen) };
  const like = others.filter(({ labels }) => candidates.every(([key, value]) => labels[key] === value));
  return { like: candidates.length === 0 ? [] : [...new Set(like.map(({ workload }) => workload.name))].sort() };
}

type Label = readonly [key: string, value: string];

/** Labels that all of them have, those that people know first. */
function candidatesOf([first = {}, ...others]: readonly Labels[]): Label[] {
  const rank = (key: string) => (PREFERRED.includes(key) ? PREFERRED.indexOf(key) : PREFERRED.length);
  return Object.entries(first)
    .filter(([key, value]) => others.every((labels) => labels[key] === value))
    .sort(([a], [b]) => rank(a) - rank(b) || (a < b ? -1 : 1))
    .slice(0, MOST_CANDIDATES);
}

function fewest(candidates: readonly Label[], others: readonly LabeledPods[]): readonly Label[] | undefined {
  if (candidates.length === 0) return undefined;
  // By label: which others have it, as far as they are not told apart yet.
  const having = new Map(
    candidates.map((label) => [label, new Set(others.filter(({ labels }) => labels[label[0]] === label[1]))]),
  );
  const search = (from: number, size: number, left: ReadonlySet<LabeledPods>): readonly Label[] | undefined => {
    for (let index = from; index <= candidates.length - size; index++) {
      const label = candidates[index]!;
      const rest = new Set([...left].filter((one) => having.get(label)!.has(one)));
      if (size === 1 && rest.size === 0) return [label];
      const more = size > 1 ? search(index + 1, size - 1, rest) : undefined;
      if (more) return [label, ...more];
    }
    return undefined;
  };
  const all = new Set(others.filter((one) => candidates.some((label) => having.get(label)!.has(one))));
  for (let size = 1; size <= Math.min(MOST_CHOSEN, candidates.length); size++) {
    const found = search(0, size, all);
    if (found) return found;
  }
  return others.some((one) => candidates.every((label) => having.get(label)!.has(one))) ? undefined : candidates;
}

function stableLabels(labels: Labels): Labels {
  return Object.fromEntries(
    Object.entries(labels).filter(([key, value]) => !UNSTABLE_KEY.test(key) && !looksLikeHash(value)),
  );
}

/** Of what is behind the last dash: "web-5d8f9c7b6d", a UUID, the minute that a Job is of. */
function looksLikeHash(value: string): boolean {
  if (/^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i.test(value)) return true;
  const last = value.slice(value.lastIndexOf("-") + 1);
  if (/^\d{8,}$/.test(last)) return true;
  const isMixed = /\d/.test(last) && /[a-z]/i.test(last);
  // Hexadecimal, or the letters that Kubernetes makes names of.
  return isMixed && /^(?:[0-9a-f]{7,}|[bcdfghjklmnpqrstvwxz2456789]{8,})$/i.test(last);
}

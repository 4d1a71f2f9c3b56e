import type { Condition, KubeObject } from "../../../api/object.ts";
import type { Client } from "../../../cluster/client.ts";
import type { DiscoveredResource } from "../../../cluster/discovery.ts";
import { isNotFound } from "../../../cluster/failures.ts";
import { NAMESPACES } from "../../../cluster/kinds.ts";
import type { ControllerContext, ControllerLoop } from "../controller-context.ts";
import { rawWrite } from "../raw-write.ts";
import { semanticEqual } from "../semantic-equal.ts";
import { timestamp } from "../timestamp.ts";
import type { Namespace } from "../workload-types.ts";
import { messageOf } from "../workloads/pod-control.ts";

const FINALIZER = "kubernetes";
const RECHECK_MS = 200;
/** Pods die in their own time; no use in asking for them more often. */
const RECHECK_WITH_PODS_MS = 1000;

/** A namespace that is going takes everything in it along; only then may it go itself. */
export function namespaceLoop(context: ControllerContext): ControllerLoop {
  const { informers, clock } = context;
  const client = context.clientFor("namespace-controller");
  return {
    name: "namespace",
    workers: 3,
    watch(enqueue) {
      informers.namespaces.onChange(({ key, object, type }) => {
        if (type !== "deleted" && object.metadata.deletionTimestamp) enqueue(key);
      });
    },
    async reconcile(key) {
      const namespace = informers.namespaces.get(key);
      if (!namespace?.metadata.deletionTimestamp || !namespace.spec?.finalizers?.includes(FINALIZER)) return undefined;
      const found = await emptyNamespace(client, key);
      const conditions = leavingConditions(namespace, found, clock.now());
      const written = await report(client, namespace, conditions);
      if (found.failures.length > 0 || found.remaining.length > 0) {
        return found.remaining.some(({ resource }) => resource.plural === "pods") ? RECHECK_WITH_PODS_MS : RECHECK_MS;
      }
      await finalize(client, written);
      return undefined;
    },
  };
}

interface Emptying {
  /** What could not be looked at, and why: the namespace must then stay. */
  failures: { kind: "DiscoveryFailed" | "ContentDeletionFailed"; message: string }[];
  remaining: { resource: DiscoveredResource; count: number; finalizers: string[] }[];
}

async function emptyNamespace(client: Client, namespace: string): Promise<Emptying> {
  const found: Emptying = { failures: [], remaining: [] };
  let resources: DiscoveredResource[];
  try {
    resources = await client.resources();
  } catch (error) {
    return { failures: [{ kind: "DiscoveryFailed", message: messageOf(error) }], remaining: [] };
  }
  const deletable = resources.filter(
    ({ namespaced, verbs, preferred }) => namespaced && preferred && verbs.includes("list") && verbs.includes("delete"),
  );
  await Promise.all(deletable.map((resource) => emptyResource(client, resource, namespace, found)));
  return found;
}

async function emptyResource(
  client: Client,
  resource: DiscoveredResource,
  namespace: string,
  found: Emptying,
): Promise<void> {
  try {
    const { items } = await client.list<KubeObject>(resource, { namespace });
    if (items.length === 0) return;
    await Promise.all(
      items
        .filter((item) => !item.metadata.deletionTimestamp)
        .map((item) => client.delete(resource, item.metadata, { propagationPolicy: "Background" }).catch(ignoreGone)),
    );
    const left = (await client.list<KubeObject>(resource, { namespace })).items;
    if (left.length === 0) return;
    const finalizers = left.flatMap((item) => item.metadata.finalizers ?? []);
    found.remaining.push({ resource, count: left.length, finalizers });
  } catch (error) {
    // A CRD that went in the meantime took its objects along.
    if (!isNotFound(error)) found.failures.push({ kind: "ContentDeletionFailed", message: messageOf(error) });
  }
}

function ignoreGone(error: unknown): void {
  if (!isNotFound(error)) throw error;
}

function leavingConditions(namespace: Namespace, { failures, remaining }: Emptying, now: number): Condition[] {
  const discovery = failures.filter(({ kind }) => kind === "DiscoveryFailed");
  const deletion = failures.filter(({ kind }) => kind === "ContentDeletionFailed");
  const content = remaining.map(
    ({ resource, count }) => `${resource.plural}.${resource.group} has ${count} resource instances`,
  );
  const finalizers = new Map<string, number>();
  for (const name of remaining.flatMap((left) => left.finalizers))
    finalizers.set(name, (finalizers.get(name) ?? 0) + 1);
  const waits = [...finalizers].map(([name, count]) => `${name} in ${count} resource instances`);
  const addCondition = (type: string, bad: readonly string[], reasons: [string, string], messages: [string, string]) =>
    condition(namespace, now, {
      type,
      status: bad.length > 0 ? "True" : "False",
      reason: bad.length > 0 ? reasons[0] : reasons[1],
      message: bad.length > 0 ? `${messages[0]}${bad.join(", ")}` : messages[1],
    });
  return [
    addCondition(
      "NamespaceDeletionDiscoveryFailure",
      discovery.map(({ message }) => message),
      ["DiscoveryFailed", "ResourcesDiscovered"],
      ["Discovery failed for some groups: ", "All resources successfully discovered"],
    ),
    addCondition(
      "NamespaceDeletionContentFailure",
      deletion.map(({ message }) => message),
      ["ContentDeletionFailed", "ContentDeleted"],
      ["Failed to delete all resource types: ", "All content successfully deleted, may be waiting on finalization"],
    ),
    addCondition(
      "NamespaceContentRemaining",
      content,
      ["SomeResourcesRemain", "ContentRemoved"],
      ["Some resources are remaining: ", "All content successfully removed"],
    ),
    addCondition(
      "NamespaceFinalizersRemaining",
      waits,
      ["SomeFinalizersRemain", "ContentHasNoFinalizers"],
      ["Some content in the namespace has finalizers remaining: ", "All content-preserving finalizers finished"],
    ),
  ];
}

function condition(namespace: Namespace, now: number, next: Condition): Condition {
  const before = namespace.status?.conditions?.find(({ type }) => type === next.type);
  return { ...next, lastTransitionTime: before?.status === next.status ? before.lastTransitionTime : timestamp(now) };
}

async function report(client: Client, namespace: Namespace, conditions: Condition[]): Promise<Namespace> {
  if (semanticEqual(namespace.status?.conditions ?? [], conditions)) return namespace;
  const status = { ...namespace.status, phase: "Terminating" as const, conditions };
  return await client.replace(NAMESPACES, { ...namespace, status }, { subresource: "status" });
}

async function finalize(client: Client, namespace: Namespace): Promise<void> {
  const finalizers = (namespace.spec?.finalizers ?? []).filter((name) => name !== FINALIZER);
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace.metadata.name)}/finalize`;
  await rawWrite(client, "PUT", path, { ...namespace, spec: { ...namespace.spec, finalizers } }).catch(ignoreGone);
}

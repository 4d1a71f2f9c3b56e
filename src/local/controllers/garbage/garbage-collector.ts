import type { KubeObject, OwnerReference } from "../../../api/object.ts";
import { StatusError } from "../../../api/status.ts";
import type { Client } from "../../../cluster/client.ts";
import { isNotFound } from "../../../cluster/failures.ts";
import { sleep } from "../../../kit/clock.ts";
import type { ControllerContext, ControllerLoop } from "../controller-context.ts";
import {
  blockers,
  FOREGROUND,
  GarbageGraph,
  type GraphItem,
  ORPHAN,
  type OwnerState,
  ownerVerdict,
} from "./garbage-graph.ts";
import { GarbageMonitors } from "./garbage-monitors.ts";

const REFRESH_MS = 30_000;
/** CRDs come in dozens: one look at discovery for all of them. */
const SETTLE_MS = 50;
const INCOMPLETE_RECHECK_MS = 100;
const UNKNOWN_RECHECK_MS = 5_000;
const MAX_ABSENT = 1_000;

/**
 * Deletes objects whose owners are gone. The graph only suggests candidates: before anything is deleted, the object and each of its
 * owners are read live, by name and UID. An owner of the same name with another UID is another object: its dependents go.
 * An owner that cannot be read (its API is missing, down, or forbids it) keeps its dependents.
 */
export function garbageCollectorLoop(context: ControllerContext): ControllerLoop {
  const { informers, clock } = context;
  const client = context.clientFor("generic-garbage-collector");
  const graph = new GarbageGraph();
  const absent = new Set<string>();
  const stopping = new AbortController();
  let enqueue: (key: string) => void = () => {};
  let primed = false;
  const announce = (keys: readonly string[]) => {
    // Before the graph is whole every object looks like an orphan.
    if (primed) for (const key of keys) enqueue(key);
  };
  const monitors = new GarbageMonitors(
    client,
    informers,
    {
      set: (item) => announce(graph.set(item)),
      remove: (key) => announce(graph.remove(key)),
      known: (resource) => graph.keysOf(resource),
      listed: () => lookAround(),
    },
    clock,
  );
  const lookAround = () => {
    primed ||= monitors.complete;
    if (primed) announce(graph.suspects());
  };
  const refresher = refreshing(context, monitors, stopping.signal, lookAround);

  const stateOf = async (item: GraphItem, owner: OwnerReference): Promise<OwnerState> => {
    const name = [owner.apiVersion, owner.kind, item.namespace ?? "", owner.name, owner.uid].join("|");
    if (absent.has(name)) return "absent";
    const state = await ownerState(client, monitors, item, owner);
    if (state === "absent") {
      if (absent.size >= MAX_ABSENT) absent.clear();
      absent.add(name);
    }
    return state;
  };

  const collect = async (item: GraphItem): Promise<number | undefined> => {
    if (!graph.needsCheck(item)) return undefined;
    const live = await readLive(client, item);
    if (!live || live.metadata.deletionTimestamp) return undefined;
    const owners = await Promise.all(
      (live.metadata.ownerReferences ?? []).map(async (owner) => {
        return { uid: owner.uid, state: await stateOf(item, owner) };
      }),
    );
    const verdict = ownerVerdict(owners, graph.dependents(item).length > 0);
    switch (verdict.do) {
      case "nothing":
        return owners.some(({ state }) => state === "unknown") ? UNKNOWN_RECHECK_MS : undefined;
      case "dropReferences":
        await dropReferences(client, item, live, verdict.uids);
        return undefined;
      case "delete":
        context.log.debug({ object: item.key, owners }, "collecting");
        await deleteLive(client, item, live, verdict.propagation);
        return undefined;
    }
  };

  const release = async (owner: GraphItem): Promise<number | undefined> => {
    if (!monitors.complete) return INCOMPLETE_RECHECK_MS;
    const dependents = graph.dependents(owner);
    if (owner.leaving === "orphan") {
      for (const dependent of dependents) {
        const live = await readLive(client, dependent);
        if (live) await dropReferences(client, dependent, live, [owner.uid]);
      }
      await dropFinalizer(client, owner, ORPHAN);
      return undefined;
    }
    const inTheWay = blockers(owner, dependents);
    if (inTheWay.length === 0) await dropFinalizer(client, owner, FOREGROUND);
    else for (const dependent of inTheWay) if (dependent.leaving === "no") enqueue(dependent.key);
    return undefined;
  };

  return {
    name: "garbage-collector",
    workers: 10,
    watch(add) {
      enqueue = add;
      informers.crds.onChange(refresher.soon);
      informers.apiServices.onChange(refresher.soon);
    },
    async reconcile(key) {
      const item = graph.get(key);
      if (!item) return undefined;
      return item.leaving === "foreground" || item.leaving === "orphan" ? await release(item) : await collect(item);
    },
    async stop() {
      stopping.abort();
      await refresher.ended;
      await monitors.stop();
    },
  };
}

/** Reads discovery now, whenever asked to, and every half minute. */
function refreshing(
  { clock, log, informers }: ControllerContext,
  monitors: GarbageMonitors,
  signal: AbortSignal,
  onRefreshed: () => void,
) {
  let wake: AbortController | undefined;
  let asked = false;
  const run = async () => {
    await Promise.race([informers.synced, aborted(signal)]);
    while (!signal.aborted) {
      asked = false;
      await monitors.refresh().catch((error: unknown) => log.warn({ error }, "discovery failed, will retry"));
      onRefreshed();
      wake = new AbortController();
      if (!asked) await sleep(clock, REFRESH_MS, AbortSignal.any([signal, wake.signal]));
      await sleep(clock, SETTLE_MS, signal);
    }
  };
  return {
    soon: () => {
      asked = true;
      wake?.abort();
    },
    ended: run(),
  };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

async function ownerState(
  client: Client,
  monitors: GarbageMonitors,
  item: GraphItem,
  owner: OwnerReference,
): Promise<OwnerState> {
  const resource = monitors.resourceFor(owner.apiVersion, owner.kind);
  if (!resource) return "unknown";
  // A namespaced owner cannot own something cluster-wide: the reference does not say in which namespace it would be.
  if (resource.namespaced && item.namespace === undefined) return "unknown";
  try {
    const ref = { name: owner.name, namespace: resource.namespaced ? item.namespace : undefined };
    const { metadata } = await client.get<KubeObject>(resource, ref);
    if (metadata.uid !== owner.uid) return "absent";
    return metadata.deletionTimestamp && metadata.finalizers?.includes(FOREGROUND) ? "waiting" : "present";
  } catch (error) {
    return isObjectMissing(error, owner.name) ? "absent" : "unknown";
  }
}

/** "There is no such object", as opposed to "there is no such resource": the second says nothing about the object. */
function isObjectMissing(error: unknown, name: string): boolean {
  return isNotFound(error) && error instanceof StatusError && error.status.details?.name === name;
}

/** The object as it is now; undefined when it is gone or another has taken its name. */
async function readLive(client: Client, item: GraphItem): Promise<KubeObject | undefined> {
  try {
    const live = await client.get<KubeObject>(item.resource, item);
    return live.metadata.uid === item.uid ? live : undefined;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

async function deleteLive(
  client: Client,
  item: GraphItem,
  live: KubeObject,
  propagation: "Background" | "Foreground",
): Promise<void> {
  const finalizers = live.metadata.finalizers ?? [];
  const propagationPolicy = finalizers.includes(ORPHAN)
    ? "Orphan"
    : finalizers.includes(FOREGROUND)
      ? "Foreground"
      : propagation;
  const { uid, resourceVersion } = live.metadata;
  await client
    .delete(item.resource, item, { propagationPolicy, preconditions: { uid, resourceVersion } })
    .catch(ignoreGone);
}

async function dropReferences(client: Client, item: GraphItem, live: KubeObject, uids: string[]): Promise<void> {
  const before = live.metadata.ownerReferences ?? [];
  const ownerReferences = before.filter(({ uid }) => !uids.includes(uid));
  if (ownerReferences.length === before.length) return;
  const { uid, resourceVersion } = live.metadata;
  const patch = { metadata: { uid, resourceVersion, ownerReferences } };
  await client.patch(item.resource, item, { type: "merge", patch }).catch(ignoreGone);
}

async function dropFinalizer(client: Client, item: GraphItem, finalizer: string): Promise<void> {
  const live = await readLive(client, item);
  if (!live?.metadata.finalizers?.includes(finalizer)) return;
  const finalizers = live.metadata.finalizers.filter((name) => name !== finalizer);
  const { uid, resourceVersion } = live.metadata;
  const patch = { metadata: { uid, resourceVersion, finalizers } };
  await client.patch(item.resource, item, { type: "merge", patch }).catch(ignoreGone);
}

function ignoreGone(error: unknown): void {
  if (!isNotFound(error)) throw error;
}

import type { Transport } from "../../api/transport.ts";
import { type Client, createClient } from "../../cluster/client.ts";
import { type Controller, runController, watching } from "../../cluster/controller.ts";
import { isAlreadyExists, isConflict, isNotFound } from "../../cluster/failures.ts";
import { createInformer, type Informer } from "../../cluster/informer.ts";
import { NODES, PODS } from "../../cluster/kinds.ts";
import { keyOf } from "../../cluster/object-cache.ts";
import { type Clock, systemClock } from "../../kit/clock.ts";
import { keyedQueue } from "../../kit/keyed-queue.ts";
import { type Log, silentLog } from "../../kit/log.ts";
import { createEventRecorder, type EventRecorder, eventLimit } from "../controllers/event-recorder.ts";
import { ObjectIndex } from "../controllers/object-index.ts";
import { isFinished } from "../controllers/pod-state.ts";
import { semanticEqual } from "../controllers/semantic-equal.ts";
import type { Node, Pod, PodStatus } from "../controllers/workload-types.ts";
import { NodeLeases } from "./node-leases.ts";
import { kubeletConditions, nodeObject, nodeStatus } from "./node-object.ts";
import type { NodeRuntime, NodeSpec } from "./node-runtime.ts";
import { PodWorker } from "./pod-worker.ts";

export interface KubeletOptions {
  transport: Transport;
  runtime: NodeRuntime;
  clock?: Clock;
  log?: Log;
}

/** The kubelets of all nodes of a cluster in one: one watch of pods, however many nodes. */
export interface Kubelet {
  /** Registers the node, or takes over one that is registered already, and runs the pods bound to it. */
  addNode(spec: NodeSpec): Promise<void>;
  /** Ends its pods and forgets it. The Node object is the caller's to delete. */
  removeNode(name: string): Promise<void>;
  /** The node falls silent: no heartbeats, no news of its pods. */
  powerOff(name: string): Promise<void>;
  powerOn(name: string): Promise<void>;
  readonly synced: Promise<void>;
  stop(): Promise<void>;
}

interface OwnNode {
  spec: NodeSpec;
  on: boolean;
}

export function startKubelet(options: KubeletOptions): Kubelet {
  const { transport, runtime, clock = systemClock, log = silentLog } = options;
  const client = createClient(transport, { userAgent: "kubelet", clock });
  const pods = createInformer<Pod>(client, PODS, { clock });
  const podsByNode = new ObjectIndex(pods, (pod) => (pod.spec.nodeName ? [pod.spec.nodeName] : []));
  const nodeObjects = createInformer<Node>(client, NODES, { clock });
  const nodes = new Map<string, OwnNode>();
  const leases = new NodeLeases(client, clock, log);
  const loop = podLoop({ client, pods, nodes, runtime, clock, log });
  const wakePods = (node: string) => {
    for (const pod of podsByNode.get(node)) loop.enqueue(keyOf(pod));
  };
  const healing = runController({
    name: "kubelet-nodes",
    log,
    queue: keyedQueue({ clock }),
    watches: [watching(nodeObjects, (node) => [node.metadata.name])],
    reconcile: async (name) => {
      const node = nodeObjects.get(name);
      if (node && nodes.get(name)?.on) await reportConditions(client, node, runtime.networkReady(name), clock);
    },
  });
  runtime.onNetworkChange(healing.enqueue);

  return {
    synced: Promise.all([pods.synced, nodeObjects.synced]).then(() => undefined),
    async addNode(spec) {
      const before = await client.get<Node>(NODES, { name: spec.name }).catch(undefinedIfGone);
      await runtime.addNode({ ...spec, cniConfigured: spec.cniConfigured || hadNetwork(before) });
      await register(client, spec, runtime.networkReady(spec.name), clock);
      nodes.set(spec.name, { spec, on: true });
      await leases.keep(spec.name);
      wakePods(spec.name);
    },
    async removeNode(name) {
      nodes.delete(name);
      leases.drop(name);
      loop.abandon(name);
      await runtime.removeNode(name);
    },
    async powerOff(name) {
      const node = nodes.get(name);
      if (node) node.on = false;
      leases.drop(name);
      loop.abandon(name);
    },
    async powerOn(name) {
      const node = nodes.get(name);
      if (!node) return;
      node.on = true;
      await leases.keep(name);
      const object = nodeObjects.get(name);
      if (object) await reportConditions(client, object, runtime.networkReady(name), clock);
      wakePods(name);
    },
    async stop() {
      await leases.stop();
      await Promise.all([loop.stop(), healing.stop()]);
      await Promise.all([pods.stop(), nodeObjects.stop()]);
    },
  };
}

function undefinedIfGone(error: unknown): undefined {
  if (!isNotFound(error)) throw error;
}

/** The disk of a node that comes back still has the CNI configuration, if it had one. */
function hadNetwork(node: Node | undefined): boolean {
  const ready = node?.status?.conditions?.find(({ type }) => type === "Ready");
  return ready !== undefined && ready.reason !== "KubeletNotReady";
}

async function register(client: Client, spec: NodeSpec, networkReady: boolean, clock: Clock): Promise<void> {
  const wanted = nodeObject(spec, networkReady, clock.now());
  try {
    await client.create(NODES, wanted);
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    const patch = { metadata: { labels: wanted.metadata.labels } };
    await client.patch(NODES, wanted.metadata, { type: "merge", patch });
  }
  const status = nodeStatus(spec, networkReady, clock.now());
  await client.patch(NODES, wanted.metadata, { type: "merge", patch: { status } }, { subresource: "status" });
}

/** Writes the kubelet's conditions where the Node differs; those of others stay. */
async function reportConditions(client: Client, node: Node, networkReady: boolean, clock: Clock): Promise<void> {
  const before = node.status?.conditions ?? [];
  const beforeOf = (type: string) => before.find((condition) => condition.type === type);
  const own = kubeletConditions(networkReady, clock.now());
  if (own.every(({ type, status, reason }) => beforeOf(type)?.status === status && beforeOf(type)?.reason === reason))
    return;
  const kept = own.map((condition) => {
    const last = beforeOf(condition.type);
    return last?.status === condition.status
      ? { ...condition, lastTransitionTime: last.lastTransitionTime ?? condition.lastTransitionTime }
      : condition;
  });
  const foreign = before.filter(({ type }) => !own.some((condition) => condition.type === type));
  const patch = { status: { conditions: [...kept, ...foreign] } };
  await client.patch(NODES, node.metadata, { type: "merge", patch }, { subresource: "status" });
}

interface PodLoopOptions {
  client: Client;
  pods: Informer<Pod>;
  nodes: ReadonlyMap<string, OwnNode>;
  runtime: NodeRuntime;
  clock: Clock;
  log: Log;
}

interface PodLoop {
  enqueue(key: string): void;
  /** Stops the pods of a node without any report, as a machine does that loses power. */
  abandon(node: string): void;
  stop(): Promise<void>;
}

interface Tended {
  worker: PodWorker;
  node: string;
}

/** A pod that is up by then is reported once, as running; a slower one as being created. */
const FIRST_REPORT_MS = 50;

function podLoop({ client, pods, nodes, runtime, clock, log }: PodLoopOptions): PodLoop {
  const tended = new Map<string, Tended>();
  const recorders = new Map<string, EventRecorder>();
  const limit = eventLimit(clock);
  const recorderFor = (host: string) => {
    const recorder = recorders.get(host) ?? createEventRecorder(client, { component: "kubelet", host }, clock, limit);
    recorders.set(host, recorder);
    return recorder;
  };

  const tend = (key: string, pod: Pod, { spec }: OwnNode) => {
    const worker = new PodWorker(pod, {
      runtime,
      recorder: recorderFor(spec.name),
      clock,
      node: spec.name,
      hostIPs: spec.internalIPs,
      changed: () => controller.enqueue(key),
    });
    tended.set(key, { worker, node: spec.name });
  };

  const report = async (worker: PodWorker) => {
    const status = worker.status();
    if (covers(worker.pod.status, status)) return;
    const { metadata } = worker.pod;
    const patch = { metadata: { uid: metadata.uid }, status };
    try {
      worker.update(await client.patch<Pod>(PODS, metadata, { type: "merge", patch }, { subresource: "status" }));
    } catch (error) {
      if (!isNotFound(error) && !isConflict(error)) throw error;
    }
  };

  const end = async (key: string, pod: Pod, entry: Tended | undefined) => {
    if (entry && !entry.worker.stopped) {
      entry.worker.stop(pod.metadata.deletionGracePeriodSeconds ?? 0);
      return;
    }
    tended.delete(key);
    const { uid } = pod.metadata;
    await client
      .delete(PODS, pod.metadata, { gracePeriodSeconds: 0, preconditions: { uid } })
      .catch((error: unknown) => {
        if (!isNotFound(error) && !isConflict(error)) throw error;
      });
  };

  const controller: Controller = runController({
    name: "kubelet",
    log,
    workers: 16,
    queue: keyedQueue({ clock }),
    watches: [watching(pods, (pod) => [keyOf(pod)])],
    reconcile: async (key) => {
      const pod = pods.get(key);
      let entry = tended.get(key);
      if (entry && entry.worker.uid !== pod?.metadata.uid) {
        entry.worker.stop(0);
        tended.delete(key);
        entry = undefined;
      }
      const node = nodes.get(pod?.spec.nodeName ?? "");
      if (!pod || !node?.on) return;
      if (pod.metadata.deletionTimestamp) return await end(key, pod, entry);
      if (!entry && isFinished(pod)) return;
      if (!entry) {
        tend(key, pod, node);
        return { requeueAfterMs: FIRST_REPORT_MS };
      }
      entry.worker.update(pod);
      await report(entry.worker);
    },
  });

  return {
    enqueue: controller.enqueue,
    abandon(node) {
      for (const [key, entry] of tended) {
        if (entry.node !== node) continue;
        tended.delete(key);
        entry.worker.halt();
      }
    },
    async stop() {
      await controller.stop();
      for (const { worker } of tended.values()) worker.halt();
      tended.clear();
    },
  };
}

/** Whether the pod already says all of this. */
function covers(has: PodStatus | undefined, wanted: PodStatus): boolean {
  if (!has) return false;
  return Object.entries(wanted).every(([field, value]) => semanticEqual(has[field as keyof PodStatus], value));
}

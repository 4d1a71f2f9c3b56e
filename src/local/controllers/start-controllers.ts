import type { Transport } from "../../api/transport.ts";
import { type Client, createClient } from "../../cluster/client.ts";
import { type Controller, runController } from "../../cluster/controller.ts";
import { isConflict } from "../../cluster/failures.ts";
import { type Clock, systemClock } from "../../kit/clock.ts";
import { keyedQueue } from "../../kit/keyed-queue.ts";
import { type Log, silentLog } from "../../kit/log.ts";
import type { ControllerContext, ControllerLoop } from "./controller-context.ts";
import { createEventRecorder, type EventRecorder, eventLimit } from "./event-recorder.ts";
import { garbageCollectorLoop } from "./garbage/garbage-collector.ts";
import { rootCaLoop, serviceAccountLoop } from "./garbage/namespace-contents.ts";
import { namespaceLoop } from "./garbage/namespace-life-cycle.ts";
import { nodeLifeCycleLoop } from "./nodes/node-life-cycle.ts";
import { schedulerLoop } from "./nodes/scheduler.ts";
import { taintEvictionLoop } from "./nodes/taint-eviction.ts";
import { endpointSliceLoop } from "./services/endpoint-slice.ts";
import { type LoadBalancerOptions, loadBalancerLoop } from "./services/load-balancer.ts";
import { openSharedInformers } from "./shared-informers.ts";
import { claimBinderLoop } from "./volumes/claim-binder.ts";
import { daemonSetLoop } from "./workloads/daemon-set.ts";
import { deploymentLoop } from "./workloads/deployment.ts";
import { disruptionLoop } from "./workloads/disruption.ts";
import { jobLoop } from "./workloads/job.ts";
import { replicaSetLoop } from "./workloads/replica-set.ts";

export interface ControllersOptions {
  transport: Transport;
  clock?: Clock;
  log?: Log;
  /** The certificate every namespace gets as `kube-root-ca.crt`; without it none does. */
  rootCa?: string;
  /** Only clusters whose platform has one give LoadBalancer services an address. */
  loadBalancer?: LoadBalancerOptions;
}

export interface Controllers {
  /** Resolves when every controller sees the cluster whole. */
  readonly synced: Promise<void>;
  /** Resolves when what was said so far is written as events. */
  flushEvents(): Promise<void>;
  stop(): Promise<void>;
}

/** Someone wrote in between: what we saw is old, the newer state is on its way. */
const CONFLICT_RECHECK_MS = 10;

/** A key that stands for many objects is looked at once for many of their changes: each look costs as much as they are. */
const PACE_MS = 0.25;
const MAX_PACE_MS = 250;

/** Everything kube-controller-manager and the scheduler do in a real cluster, as far as this one needs it. */
export function startControllers(options: ControllersOptions): Controllers {
  const { transport, clock = systemClock, log = silentLog } = options;
  const clients = new Map<string, Client>();
  const clientFor = (userAgent: string) => {
    const client = clients.get(userAgent) ?? createClient(transport, { userAgent, clock });
    clients.set(userAgent, client);
    return client;
  };
  const recorders: EventRecorder[] = [];
  const limit = eventLimit(clock);
  const informers = openSharedInformers(clientFor("kube-controller-manager"), { clock });
  const context: ControllerContext = {
    informers,
    clientFor,
    recorderFor: (source) => {
      const recorder = createEventRecorder(clientFor(source.component), source, clock, limit);
      recorders.push(recorder);
      return recorder;
    },
    clock,
    log,
  };
  const loops = loopsFor(context, options);
  const running = loops.map((loop) => run(loop, context));
  return {
    synced: informers.synced,
    flushEvents: async () => {
      await Promise.all(recorders.map((recorder) => recorder.flush()));
    },
    async stop() {
      await Promise.all(running.map((controller) => controller.stop()));
      await Promise.all(loops.map((loop) => loop.stop?.()));
      await informers.stop();
    },
  };
}

function loopsFor(context: ControllerContext, options: ControllersOptions): ControllerLoop[] {
  const loops = [
    namespaceLoop(context),
    serviceAccountLoop(context),
    schedulerLoop(context),
    deploymentLoop(context),
    replicaSetLoop(context),
    daemonSetLoop(context),
    jobLoop(context),
    endpointSliceLoop(context),
    disruptionLoop(context),
    claimBinderLoop(context),
    nodeLifeCycleLoop(context),
    taintEvictionLoop(context),
    garbageCollectorLoop(context),
  ];
  if (options.rootCa !== undefined) loops.push(rootCaLoop(context, options.rootCa));
  if (options.loadBalancer) loops.push(loadBalancerLoop(context, options.loadBalancer));
  return loops;
}

function run(loop: ControllerLoop, { informers, clock, log }: ControllerContext): Controller {
  const queue = keyedQueue({ clock, backoff: { initialMs: 10, maxMs: 30_000, jitter: 0.2 } });
  return runController({
    name: loop.name,
    workers: loop.workers,
    queue,
    log,
    watches: [
      {
        synced: informers.synced,
        start: (add) => {
          loop.watch((key) => {
            const wait = Math.min(MAX_PACE_MS, Math.floor((loop.weight?.(key) ?? 0) * PACE_MS));
            if (wait > 0) queue.addAfter(key, wait);
            else add(key);
          });
          return () => {};
        },
      },
    ],
    reconcile: async (key) => {
      try {
        const recheck = await loop.reconcile(key);
        return recheck === undefined ? undefined : { requeueAfterMs: recheck };
      } catch (error) {
        if (isConflict(error)) return { requeueAfterMs: CONFLICT_RECHECK_MS };
        throw error;
      }
    },
  });
}

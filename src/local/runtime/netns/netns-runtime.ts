import type { Kernel } from "../../../kernel/kernel.ts";
import type { Netns } from "../../../kernel/netns/netns-port.ts";
import { errors as runtimeErrors } from "../errors.ts";
import type { NodeRuntime, RealRuntime } from "../node-runtime.ts";
import { hasNetwork } from "./cni-runtime.ts";
import { dial } from "./dial.ts";
import { removeAll } from "./leftovers.ts";
import { type Machine, type MachineParts, startMachine } from "./machine.ts";
import type { NodePod, PodContext, PodMaker } from "./node-pod.ts";
import { createSandbox } from "./pod-sandbox.ts";
import { RealPod } from "./real-pod.ts";

export interface RealNodesOptions<P extends NodePod> extends MachineParts {
  kind: RealRuntime;
  kernel: Kernel;
  pods: PodMaker<P>;
}

/** Nodes that are network namespaces, whatever runs their pods. */
export interface RealNodes<P extends NodePod = NodePod> extends NodeRuntime {
  readonly kind: RealRuntime;
  machine(node: string): Machine;
  /** A host that is no part of the cluster. */
  readonly outside: Netns;
  pods(): Iterable<P>;
  /** As `kill -9` of every container of the pod. False if none runs. */
  kill(uid: string): boolean;
}

/** How often a container runtime looks at the directories of CNI configurations. */
const LOOK_MS = 250;

interface Entry<P> {
  starting: Promise<P>;
  ending?: Promise<void>;
}

/** Pods that are processes in namespaces of their own, connected by the node's own plugin. */
export function processPods(kernel: Kernel, context: () => PodContext): PodMaker<RealPod> {
  return {
    prepare: async () => async () => undefined,
    async start(pod, machine, stays) {
      const sandbox = pod.spec.hostNetwork ? undefined : await createSandbox(kernel, machine, pod, stays);
      return new RealPod(pod, machine, sandbox, context());
    },
  };
}

export function realNodes<P extends NodePod>(options: RealNodesOptions<P>): RealNodes<P> {
  const { kind, kernel, places, segment, pods } = options;
  const machines = new Map<string, Machine>();
  const unprepare = new Map<Machine, () => Promise<void>>();
  const entries = new Map<string, Entry<P>>();
  const running = new Map<string, P>();
  const connected = new Set<string>();
  const listeners: ((node: string) => void)[] = [];
  let closing = false;

  const look = () => {
    for (const [name, on] of machines) {
      const found = hasNetwork(on);
      if (found === connected.has(name)) continue;
      if (found) connected.add(name);
      else connected.delete(name);
      for (const listener of listeners) listener(name);
    }
  };
  const looking = setInterval(look, LOOK_MS).unref();

  const machine = (name: string): Machine => {
    const found = machines.get(name);
    if (!found) throw runtimeErrors.NODE_UNKNOWN(name);
    return found;
  };
  const find = (uid: string): P => {
    const found = running.get(uid);
    if (!found) throw runtimeErrors.POD_NOT_ON_NODE(uid);
    return found;
  };
  const stays = (on: Machine) => !closing && machines.get(on.spec.name) === on;
  const end = async (uid: string, graceSeconds: number): Promise<void> => {
    const entry = entries.get(uid);
    if (!entry) return;
    entry.ending ??= finish(uid, entry, graceSeconds);
    await entry.ending;
  };
  const finish = async (uid: string, entry: Entry<P>, graceSeconds: number): Promise<void> => {
    try {
      const started = await entry.starting.catch(() => undefined);
      await started?.stop(graceSeconds);
    } finally {
      entries.delete(uid);
      running.delete(uid);
    }
  };
  const endAll = (which: (pod: P) => boolean) =>
    Promise.allSettled([...running].filter(([, pod]) => which(pod)).map(([uid]) => end(uid, 0)));

  return {
    kind,
    machine,
    outside: segment.outside,
    pods: () => running.values(),
    async addNode(spec) {
      const made = await startMachine(spec, options);
      unprepare.set(made, await pods.prepare(made));
      machines.set(spec.name, made);
    },
    async removeNode(name) {
      const going = machine(name);
      machines.delete(name);
      connected.delete(name);
      await endAll((pod) => pod.machine === going);
      await unprepare.get(going)?.();
      await going.close();
    },
    networkReady: (name) => connected.has(name),
    onNetworkChange: (listener) => void listeners.push(listener),
    async startPod(pod, node) {
      const uid = pod.metadata.uid ?? "";
      await end(uid, 0);
      const on = machine(node);
      const starting = pods.start(pod, on, () => stays(on));
      entries.set(uid, { starting });
      try {
        const started = await starting;
        running.set(uid, started);
        return { podIPs: started.podIPs, run: (container, report) => started.run(container, report) };
      } catch (error) {
        if (!entries.get(uid)?.ending) entries.delete(uid);
        throw error;
      }
    },
    stopPod: end,
    logs: (uid, container, logOptions) => find(uid).logs(container, logOptions),
    exec: async (uid, container, command) => await find(uid).exec(container, command),
    async connect(uid, port) {
      const socket = dial(kernel, find(uid).netns, { host: "127.0.0.1", port });
      await new Promise((resolve, reject) => socket.once("connect", resolve).once("error", reject));
      return socket;
    },
    kill: (uid) => running.get(uid)?.kill() ?? false,
    async close() {
      closing = true;
      clearInterval(looking);
      await endAll(() => true);
      await Promise.allSettled([...entries.keys()].map((uid) => end(uid, 0)));
      await Promise.allSettled([...unprepare.values()].map((end) => end()));
      segment.close();
      for (const { netns } of machines.values()) netns.close();
      await removeAll(kernel, places);
    },
  };
}

import type { Kernel } from "../../../kernel/kernel.ts";
import type { Netns } from "../../../kernel/netns/netns-port.ts";
import type { Pod } from "../../controllers/workload-types.ts";
import { errors as runtimeErrors } from "../errors.ts";
import type { NodeRuntime } from "../node-runtime.ts";
import { hasNetwork } from "./cni-runtime.ts";
import { dial } from "./dial.ts";
import { errors } from "./errors.ts";
import { removeAll } from "./leftovers.ts";
import { type Machine, type MachineParts, startMachine } from "./machine.ts";
import { createSandbox } from "./pod-sandbox.ts";
import { type PodContext, RealPod } from "./real-pod.ts";

export interface NetnsRuntimeOptions extends MachineParts {
  kernel: Kernel;
  /** Known once there is an API server. */
  context(): PodContext;
}

export interface NetnsRuntime extends NodeRuntime {
  readonly kind: "netns";
  machine(node: string): Machine;
  /** A host that is no part of the cluster. */
  readonly outside: Netns;
  pods(): Iterable<RealPod>;
  /** As `kill -9` of every container of the pod. False if none runs. */
  kill(uid: string): boolean;
}

/** How often a container runtime looks at the directories of CNI configurations. */
const LOOK_MS = 250;

interface Entry {
  starting: Promise<RealPod>;
  ending?: Promise<void>;
}

/** Nodes that are network namespaces, pods that are processes in namespaces of their own, connected by the node's own plugin. */
export function netnsRuntime(options: NetnsRuntimeOptions): NetnsRuntime {
  const { kernel, places, segment } = options;
  const machines = new Map<string, Machine>();
  const entries = new Map<string, Entry>();
  const running = new Map<string, RealPod>();
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
  const find = (uid: string): RealPod => {
    const found = running.get(uid);
    if (!found) throw runtimeErrors.POD_NOT_ON_NODE(uid);
    return found;
  };
  const begin = async (pod: Pod, on: Machine): Promise<RealPod> => {
    const stays = () => !closing && machines.get(on.spec.name) === on;
    const sandbox = pod.spec.hostNetwork ? undefined : await createSandbox(kernel, on, pod, stays);
    return new RealPod(pod, on, sandbox, options.context());
  };
  const end = async (uid: string, graceSeconds: number): Promise<void> => {
    const entry = entries.get(uid);
    if (!entry) return;
    entry.ending ??= finish(uid, entry, graceSeconds);
    await entry.ending;
  };
  const finish = async (uid: string, entry: Entry, graceSeconds: number): Promise<void> => {
    try {
      const started = await entry.starting.catch(() => undefined);
      await started?.stop(graceSeconds);
    } finally {
      entries.delete(uid);
      running.delete(uid);
    }
  };
  const endAll = (which: (pod: RealPod) => boolean) =>
    Promise.allSettled([...running].filter(([, pod]) => which(pod)).map(([uid]) => end(uid, 0)));

  return {
    kind: "netns",
    machine,
    outside: segment.outside,
    pods: () => running.values(),
    async addNode(spec) {
      machines.set(spec.name, await startMachine(spec, options));
    },
    async removeNode(name) {
      const going = machine(name);
      machines.delete(name);
      connected.delete(name);
      await endAll((pod) => pod.machine === going);
      await going.close();
    },
    networkReady: (name) => connected.has(name),
    onNetworkChange: (listener) => void listeners.push(listener),
    async startPod(pod, node) {
      const uid = pod.metadata.uid ?? "";
      await end(uid, 0);
      const starting = begin(pod, machine(node));
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
    logs: (uid, container, logOptions) => find(uid).log(container).read(logOptions),
    async exec(uid, container, command) {
      const process = find(uid).container(container);
      if (!process) throw errors.CONTAINER_NOT_RUNNING(container);
      return process.exec(command);
    },
    async connect(uid, port) {
      const { sandbox, machine: on } = find(uid);
      const socket = dial(kernel, sandbox?.netns ?? on.netns, { host: "127.0.0.1", port });
      await new Promise((resolve, reject) => socket.once("connect", resolve).once("error", reject));
      return socket;
    },
    kill: (uid) => running.get(uid)?.kill() ?? false,
    async close() {
      closing = true;
      clearInterval(looking);
      await endAll(() => true);
      await Promise.allSettled([...entries.keys()].map((uid) => end(uid, 0)));
      segment.close();
      for (const { netns } of machines.values()) netns.close();
      await removeAll(kernel, places);
    },
  };
}

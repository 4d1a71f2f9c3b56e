import { createHash, randomBytes } from "node:crypto";
import { type Clock, systemClock } from "../../kit/clock.ts";
import { AddressPool } from "../controllers/services/address-pool.ts";
import type { Container, Pod } from "../controllers/workload-types.ts";
import { installsCni } from "./cni-configuration.ts";
import { ContainerLog } from "./container-log.ts";
import type { ContainerRunner, RunningContainer } from "./container-runner.ts";
import { errors } from "./errors.ts";
import { type ContainerEvent, type ContainerRun, ImageError, type NodeRuntime, type NodeSpec } from "./node-runtime.ts";
import { asksForTrouble, type Behaviour, behaviourOf, type ContainerRule } from "./simulated-behaviour.ts";

export interface SimulatedRuntimeOptions {
  clock?: Clock;
  rules?: readonly ContainerRule[];
  /** Asked first about every container: a container it runs is not simulated. */
  runner?: ContainerRunner;
}

interface SimulatedNode {
  spec: NodeSpec;
  pools: readonly AddressPool[];
  /** On its disk, so that it outlives the pod that installed it. */
  cniConfigured: boolean;
}

interface SimulatedPod {
  pod: Pod;
  node: string;
  podIPs: string[];
  /** By container. */
  logs: Map<string, ContainerLog>;
  /** By container: what really runs. */
  running: Map<string, RunningContainer>;
  cancels: (() => void)[];
  ended: boolean;
  ending?: Promise<void>;
}

/** Simulated nodes: pods get addresses and become ready by rule, and nothing runs. Needs no rights at all. */
export function simulatedRuntime(options: SimulatedRuntimeOptions = {}): NodeRuntime {
  const { clock = systemClock, rules = [], runner } = options;
  const nodes = new Map<string, SimulatedNode>();
  const pods = new Map<string, SimulatedPod>();
  const listeners: ((node: string) => void)[] = [];

  const configureCni = (node: SimulatedNode) => {
    if (node.cniConfigured) return;
    node.cniConfigured = true;
    for (const listener of listeners) listener(node.spec.name);
  };
  const find = (uid: string): SimulatedPod => {
    const found = pods.get(uid);
    if (!found) throw errors.POD_NOT_ON_NODE(uid);
    return found;
  };
  const end = async (uid: string, graceSeconds: number): Promise<void> => {
    const simulated = pods.get(uid);
    if (!simulated) return;
    simulated.ending ??= finish(uid, simulated, graceSeconds);
    await simulated.ending;
  };
  const finish = async (uid: string, simulated: SimulatedPod, graceSeconds: number): Promise<void> => {
    simulated.ended = true;
    for (const cancel of simulated.cancels) cancel();
    await Promise.all([...simulated.running.values()].map((running) => running.stop(graceSeconds)));
    if (pods.get(uid) === simulated) pods.delete(uid);
    for (const pool of nodes.get(simulated.node)?.pools ?? []) for (const ip of simulated.podIPs) pool.free(ip);
    for (const log of simulated.logs.values()) log.end();
  };
  const endAll = async (which: (simulated: SimulatedPod) => boolean) => {
    const uids = [...pods].filter(([, simulated]) => which(simulated)).map(([uid]) => uid);
    await Promise.all(uids.map((uid) => end(uid, 0)));
  };

  return {
    kind: "paper",
    async addNode(spec) {
      nodes.set(spec.name, {
        spec,
        pools: spec.podCIDRs.map(poolFor),
        cniConfigured: spec.cniConfigured ?? false,
      });
    },
    async removeNode(name) {
      await endAll((simulated) => simulated.node === name);
      nodes.delete(name);
    },
    networkReady: (name) => nodes.get(name)?.cniConfigured ?? false,
    onNetworkChange: (listener) => void listeners.push(listener),
    async startPod(pod, name) {
      const node = nodes.get(name);
      if (!node) throw errors.NODE_UNKNOWN(name);
      const uid = pod.metadata.uid ?? "";
      await end(uid, 0);
      const podIPs = pod.spec.hostNetwork ? [] : addressesFor(pod, node.pools);
      const simulated: SimulatedPod = {
        pod,
        node: name,
        podIPs,
        logs: new Map(),
        running: new Map(),
        cancels: [],
        ended: false,
      };
      pods.set(uid, simulated);
      const run = async (container: Container, heard: (event: ContainerEvent) => void) => {
        const report = installsCni(pod, container)
          ? (event: ContainerEvent) => {
              if (event.is === "ready" || (event.is === "exited" && event.exitCode === 0)) configureCni(node);
              heard(event);
            }
          : heard;
        const real =
          runner &&
          !asksForTrouble(pod) &&
          (await startForReal(runner, { simulated, node: node.spec, clock }, container, report));
        return real || simulate(simulated, container, rules, clock, report);
      };
      return { podIPs, run };
    },
    stopPod: end,
    logs: (uid, container, logOptions) => logOf(find(uid), container).read(logOptions),
    async exec(uid) {
      const { namespace, name } = find(uid).pod.metadata;
      throw errors.PAPER_NODE_CANNOT_EXEC(`${namespace}/${name}`);
    },
    async connect(uid) {
      const { namespace, name } = find(uid).pod.metadata;
      throw errors.PAPER_NODE_CANNOT_EXEC(`${namespace}/${name}`);
    },
    close: () => endAll(() => true),
  };
}

/** Undefined when the runner has nothing to run for it. */
async function startForReal(
  runner: ContainerRunner,
  { simulated, node, clock }: { simulated: SimulatedPod; node: NodeSpec; clock: Clock },
  container: Container,
  report: (event: ContainerEvent) => void,
): Promise<ContainerRun | undefined> {
  const { pod, running } = simulated;
  const log = logOf(simulated, container.name);
  let isFirstLine = true;
  const starting = runner.run({
    pod,
    container,
    node: node.name,
    hostIPs: node.internalIPs,
    podIPs: pod.spec.hostNetwork ? node.internalIPs : simulated.podIPs,
    write(line) {
      if (isFirstLine) log.startRun();
      isFirstLine = false;
      write(simulated, container, clock, line);
    },
    report(event) {
      if (event.is === "exited") running.delete(container.name);
      if (!simulated.ended) report(event);
    },
  });
  if (!starting) return undefined;
  const started = await starting;
  // The pod may have been deleted while its container was still being prepared.
  if (simulated.ended) await started.stop(0);
  else running.set(container.name, started);
  return containerRun(container);
}

function poolFor(cidr: string): AddressPool {
  const pool = new AddressPool(cidr);
  // The first address of a node's range is the node's own end of its pods' links.
  pool.allocateAny();
  return pool;
}

/** A pod that comes back after a restart keeps its published addresses. */
function addressesFor(pod: Pod, ranges: readonly AddressPool[]): string[] {
  const before = pod.status?.podIPs?.map(({ ip }) => ip) ?? [];
  return ranges.flatMap((pool) => {
    const kept = before.find((ip) => pool.covers(ip));
    const ip = kept !== undefined && pool.allocate(kept) ? kept : pool.allocateAny();
    return ip === undefined ? [] : [ip];
  });
}

function simulate(
  simulated: SimulatedPod,
  container: Container,
  rules: readonly ContainerRule[],
  clock: Clock,
  report: (event: ContainerEvent) => void,
): ContainerRun {
  const image = container.image ?? "";
  const behaviour = behaviourOf(simulated.pod, container, rules);
  if (behaviour.does === "failToPull") {
    throw new ImageError(`failed to pull and unpack image "${image}": not found`);
  }
  logOf(simulated, container.name).startRun();
  write(
    simulated,
    container,
    clock,
    `simulated node: ${container.name} (${image}) is reported as running, but no process runs`,
  );
  enact(simulated, container, behaviour, clock, report);
  return containerRun(container);
}

function containerRun({ image = "" }: Container): ContainerRun {
  return {
    containerID: `paper://${randomBytes(32).toString("hex")}`,
    imageID: `${image.split("@")[0]}@sha256:${createHash("sha256").update(image).digest("hex")}`,
  };
}

function enact(
  simulated: SimulatedPod,
  container: Container,
  behaviour: Behaviour,
  clock: Clock,
  report: (event: ContainerEvent) => void,
): void {
  const later = (ms: number, event: ContainerEvent, line: string) => {
    const act = () => {
      if (simulated.ended) return;
      write(simulated, container, clock, line);
      report(event);
    };
    if (ms === 0) queueMicrotask(act);
    else simulated.cancels.push(clock.setTimeout(act, ms));
  };
  // An init container has nothing to wait for: its simulated work is done as soon as it starts.
  const isInit = simulated.pod.spec.initContainers?.some((init) => init.name === container.name) ?? false;
  const finishes = isInit && container.restartPolicy !== "Always";
  switch (behaviour.does) {
    case "exit":
      later(0, { is: "exited", exitCode: behaviour.code }, `exits with ${behaviour.code}, as it was asked to`);
      return;
    case "runUnready":
      if (finishes) later(0, { is: "exited", exitCode: 0 }, "done");
      else write(simulated, container, clock, "never becomes ready, as it was asked to");
      return;
    case "readyAfter":
      if (finishes) later(behaviour.ms, { is: "exited", exitCode: 0 }, "done");
      else later(behaviour.ms, { is: "ready" }, `ready after ${behaviour.ms} ms, as it was asked to`);
      return;
    default:
      if (finishes) later(0, { is: "exited", exitCode: 0 }, "done");
      else later(0, { is: "ready" }, "ready");
  }
}

/** Every line is kept with its time; `kubectl logs` shows it when asked. */
function write(simulated: SimulatedPod, container: Container, clock: Clock, line: string): void {
  logOf(simulated, container.name).write(`${new Date(clock.now()).toISOString()} ${line}`);
}

function logOf(simulated: SimulatedPod, container: string): ContainerLog {
  const log = simulated.logs.get(container) ?? new ContainerLog();
  simulated.logs.set(container, log);
  return log;
}

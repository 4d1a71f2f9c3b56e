import { createHash, randomBytes } from "node:crypto";
import { type Clock, systemClock } from "../../kit/clock.ts";
import { AddressPool } from "../controllers/services/address-pool.ts";
import type { Container, Pod } from "../controllers/workload-types.ts";
import { ContainerLog } from "./container-log.ts";
import type { ContainerRunner, RunningContainer } from "./container-runner.ts";
import { errors } from "./errors.ts";
import { type ContainerEvent, type ContainerRun, ImageError, type NodeRuntime, type NodeSpec } from "./node-runtime.ts";
import { type Behaviour, behaviourOf, type ContainerRule } from "./simulated-behaviour.ts";

export interface SimulatedRuntimeOptions {
  clock?: Clock;
  rules?: readonly ContainerRule[];
  /** Asked first about every container: what it runs is not on paper. */
  runner?: ContainerRunner;
}

interface SimulatedNode {
  spec: NodeSpec;
  pools: readonly AddressPool[];
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

/** Nodes that exist on paper: pods get addresses and become ready by rule, and nothing runs. Needs no rights at all. */
export function simulatedRuntime(options: SimulatedRuntimeOptions = {}): NodeRuntime {
  const { clock = systemClock, rules = [], runner } = options;
  const nodes = new Map<string, SimulatedNode>();
  const pods = new Map<string, SimulatedPod>();

  const find = (uid: string): SimulatedPod => {
    const found = pods.get(uid);
    if (!found) throw errors.POD_NOT_ON_NODE(uid);
    return found;
  };
  const end = async (uid: string, graceSeconds: number): Promise<void> => {
    const paper = pods.get(uid);
    if (!paper) return;
    paper.ending ??= finish(uid, paper, graceSeconds);
    await paper.ending;
  };
  const finish = async (uid: string, paper: SimulatedPod, graceSeconds: number): Promise<void> => {
    paper.ended = true;
    for (const cancel of paper.cancels) cancel();
    await Promise.all([...paper.running.values()].map((running) => running.stop(graceSeconds)));
    if (pods.get(uid) === paper) pods.delete(uid);
    for (const pool of nodes.get(paper.node)?.pools ?? []) for (const ip of paper.podIPs) pool.free(ip);
    for (const log of paper.logs.values()) log.end();
  };
  const endAll = async (which: (paper: SimulatedPod) => boolean) => {
    const uids = [...pods].filter(([, paper]) => which(paper)).map(([uid]) => uid);
    await Promise.all(uids.map((uid) => end(uid, 0)));
  };

  return {
    kind: "paper",
    async addNode(spec) {
      nodes.set(spec.name, { spec, pools: spec.podCIDRs.map(poolFor) });
    },
    async removeNode(name) {
      await endAll((paper) => paper.node === name);
      nodes.delete(name);
    },
    async startPod(pod, name) {
      const node = nodes.get(name);
      if (!node) throw errors.NODE_UNKNOWN(name);
      const uid = pod.metadata.uid ?? "";
      await end(uid, 0);
      const podIPs = pod.spec.hostNetwork ? [] : addressesFor(pod, node.pools);
      const paper: SimulatedPod = {
        pod,
        node: name,
        podIPs,
        logs: new Map(),
        running: new Map(),
        cancels: [],
        ended: false,
      };
      pods.set(uid, paper);
      const run = async (container: Container, report: (event: ContainerEvent) => void) => {
        const real = runner && (await startForReal(runner, { paper, node: node.spec, clock }, container, report));
        return real ?? simulate(paper, container, rules, clock, report);
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
  { paper, node, clock }: { paper: SimulatedPod; node: NodeSpec; clock: Clock },
  container: Container,
  report: (event: ContainerEvent) => void,
): Promise<ContainerRun | undefined> {
  const { pod, running } = paper;
  const log = logOf(paper, container.name);
  let isFirstLine = true;
  const starting = runner.run({
    pod,
    container,
    node: node.name,
    hostIPs: node.internalIPs,
    podIPs: pod.spec.hostNetwork ? node.internalIPs : paper.podIPs,
    write(line) {
      if (isFirstLine) log.startRun();
      isFirstLine = false;
      write(paper, container, clock, line);
    },
    report(event) {
      if (event.is === "exited") running.delete(container.name);
      if (!paper.ended) report(event);
    },
  });
  if (!starting) return undefined;
  const started = await starting;
  // The pod may have been deleted while its container was still being prepared.
  if (paper.ended) await started.stop(0);
  else running.set(container.name, started);
  return containerRun(container);
}

function poolFor(cidr: string): AddressPool {
  const pool = new AddressPool(cidr);
  // The first address of a node's range is the node's own end of its pods' links.
  pool.allocateAny();
  return pool;
}

/** A pod that comes back after a restart keeps the addresses it told everybody. */
function addressesFor(pod: Pod, ranges: readonly AddressPool[]): string[] {
  const before = pod.status?.podIPs?.map(({ ip }) => ip) ?? [];
  return ranges.flatMap((pool) => {
    const kept = before.find((ip) => pool.covers(ip));
    const ip = kept !== undefined && pool.allocate(kept) ? kept : pool.allocateAny();
    return ip === undefined ? [] : [ip];
  });
}

function simulate(
  paper: SimulatedPod,
  container: Container,
  rules: readonly ContainerRule[],
  clock: Clock,
  report: (event: ContainerEvent) => void,
): ContainerRun {
  const image = container.image ?? "";
  const behaviour = behaviourOf(paper.pod, container, rules);
  if (behaviour.does === "failToPull") {
    throw new ImageError(`failed to pull and unpack image "${image}": not found`);
  }
  logOf(paper, container.name).startRun();
  write(
    paper,
    container,
    clock,
    `simulated node: ${container.name} (${image}) is reported as running, but no process runs`,
  );
  enact(paper, container, behaviour, clock, report);
  return containerRun(container);
}

function containerRun({ image = "" }: Container): ContainerRun {
  return {
    containerID: `paper://${randomBytes(32).toString("hex")}`,
    imageID: `${image.split("@")[0]}@sha256:${createHash("sha256").update(image).digest("hex")}`,
  };
}

function enact(
  paper: SimulatedPod,
  container: Container,
  behaviour: Behaviour,
  clock: Clock,
  report: (event: ContainerEvent) => void,
): void {
  const later = (ms: number, event: ContainerEvent, line: string) => {
    const act = () => {
      if (paper.ended) return;
      write(paper, container, clock, line);
      report(event);
    };
    if (ms === 0) queueMicrotask(act);
    else paper.cancels.push(clock.setTimeout(act, ms));
  };
  // An init container has nothing to wait for: on paper its work is done as soon as it starts.
  const isInit = paper.pod.spec.initContainers?.some((init) => init.name === container.name) ?? false;
  const finishes = isInit && container.restartPolicy !== "Always";
  switch (behaviour.does) {
    case "exit":
      later(0, { is: "exited", exitCode: behaviour.code }, `exits with ${behaviour.code}, as it was asked to`);
      return;
    case "runUnready":
      if (finishes) later(0, { is: "exited", exitCode: 0 }, "done");
      else write(paper, container, clock, "never becomes ready, as it was asked to");
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
function write(paper: SimulatedPod, container: Container, clock: Clock, line: string): void {
  logOf(paper, container.name).write(`${new Date(clock.now()).toISOString()} ${line}`);
}

function logOf(paper: SimulatedPod, container: string): ContainerLog {
  const log = paper.logs.get(container) ?? new ContainerLog();
  paper.logs.set(container, log);
  return log;
}

import { createHash, randomBytes } from "node:crypto";
import { type Clock, systemClock } from "../../kit/clock.ts";
import { AddressPool } from "../controllers/address-pool.ts";
import type { Container, Pod } from "../controllers/workload-types.ts";
import { errors } from "./errors.ts";
import {
  type ContainerEvent,
  type ContainerRun,
  ImageError,
  type LogOptions,
  type NodeRuntime,
} from "./node-runtime.ts";
import { type Behaviour, behaviourOf, type ImageRule } from "./paper-behaviour.ts";

export interface PaperRuntimeOptions {
  clock?: Clock;
  rules?: readonly ImageRule[];
}

interface PaperPod {
  pod: Pod;
  node: string;
  podIPs: string[];
  /** Lines per container, as they would be read from it. */
  logs: Map<string, string[]>;
  /** Woken when a line is added or the pod ends. */
  readers: Set<() => void>;
  cancels: (() => void)[];
  ended: boolean;
}

/** Nodes that exist on paper: pods get addresses and become ready by rule, and nothing runs. Needs no rights at all. */
export function paperRuntime(options: PaperRuntimeOptions = {}): NodeRuntime {
  const { clock = systemClock, rules = [] } = options;
  const pools = new Map<string, AddressPool[]>();
  const pods = new Map<string, PaperPod>();

  const find = (uid: string): PaperPod => {
    const found = pods.get(uid);
    if (!found) throw errors.POD_NOT_ON_NODE(uid);
    return found;
  };
  const end = (uid: string) => {
    const paper = pods.get(uid);
    if (!paper) return;
    pods.delete(uid);
    paper.ended = true;
    for (const cancel of paper.cancels) cancel();
    for (const pool of pools.get(paper.node) ?? []) for (const ip of paper.podIPs) pool.free(ip);
    for (const wake of paper.readers) wake();
  };

  return {
    kind: "paper",
    async addNode({ name, podCIDRs }) {
      pools.set(name, podCIDRs.map(poolFor));
    },
    async removeNode(name) {
      for (const [uid, paper] of pods) if (paper.node === name) end(uid);
      pools.delete(name);
    },
    async startPod(pod, node) {
      const ranges = pools.get(node);
      if (!ranges) throw errors.NODE_UNKNOWN(node);
      const uid = pod.metadata.uid ?? "";
      end(uid);
      const podIPs = pod.spec.hostNetwork ? [] : addressesFor(pod, ranges);
      const paper: PaperPod = { pod, node, podIPs, logs: new Map(), readers: new Set(), cancels: [], ended: false };
      pods.set(uid, paper);
      return { podIPs, run: async (container, report) => runOnPaper(paper, container, rules, clock, report) };
    },
    async stopPod(uid) {
      end(uid);
    },
    logs: (uid, container, logOptions) => readLogs(find(uid), container, logOptions),
    async exec(uid) {
      const { namespace, name } = find(uid).pod.metadata;
      throw errors.PAPER_NODE_CANNOT_EXEC(`${namespace}/${name}`);
    },
    async close() {
      for (const uid of [...pods.keys()]) end(uid);
    },
  };
}

function poolFor(cidr: string): AddressPool {
  const pool = new AddressPool(cidr);
  // The first address of a node's range is the node's own end of its pods' links.
  pool.takeAny();
  return pool;
}

/** A pod that comes back after a restart keeps the addresses it told everybody. */
function addressesFor(pod: Pod, ranges: readonly AddressPool[]): string[] {
  const before = pod.status?.podIPs?.map(({ ip }) => ip) ?? [];
  return ranges.flatMap((pool) => {
    const kept = before.find((ip) => pool.covers(ip));
    const ip = kept !== undefined && pool.take(kept) ? kept : pool.takeAny();
    return ip === undefined ? [] : [ip];
  });
}

function runOnPaper(
  paper: PaperPod,
  container: Container,
  rules: readonly ImageRule[],
  clock: Clock,
  report: (event: ContainerEvent) => void,
): ContainerRun {
  const image = container.image ?? "";
  const behaviour = behaviourOf(paper.pod, image, rules);
  if (behaviour.does === "failToPull") {
    throw new ImageError(`failed to pull and unpack image "${image}": not found`);
  }
  write(paper, container, clock, `this is a paper node: ${container.name} (${image}) is said to run, nothing does`);
  enact(paper, container, behaviour, clock, report);
  return {
    containerID: `paper://${randomBytes(32).toString("hex")}`,
    imageID: `${image.split("@")[0]}@sha256:${createHash("sha256").update(image).digest("hex")}`,
  };
}

function enact(
  paper: PaperPod,
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

function write(paper: PaperPod, container: Container, clock: Clock, line: string): void {
  const lines = paper.logs.get(container.name) ?? [];
  lines.push(`${new Date(clock.now()).toISOString()} ${line}`);
  paper.logs.set(container.name, lines);
  for (const wake of paper.readers) wake();
}

async function* readLogs(paper: PaperPod, container: string, options: LogOptions): AsyncGenerator<string> {
  const lines = paper.logs.get(container) ?? [];
  let at = options.tailLines === undefined ? 0 : Math.max(0, lines.length - options.tailLines);
  for (;;) {
    const now = paper.logs.get(container) ?? [];
    while (at < now.length) yield now[at++] as string;
    if (!options.follow || paper.ended || options.signal?.aborted) return;
    await new Promise<void>((resolve) => {
      const wake = () => {
        paper.readers.delete(wake);
        options.signal?.removeEventListener("abort", wake);
        resolve();
      };
      paper.readers.add(wake);
      options.signal?.addEventListener("abort", wake, { once: true });
    });
  }
}

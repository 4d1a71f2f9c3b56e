import { typeOf } from "../../src/agent/stored-kinds.ts";
import type { Dataplane } from "../../src/api/dataplane.ts";
import { vendorNames } from "../../src/api/names.ts";
import { dataplaneConfiguration } from "../../src/api/resources/dataplane-configuration.ts";
import { placesOf } from "../../src/api/resources/resource.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import { patience } from "../../src/kit/testing/patience.ts";
import {
  descriptors,
  type KernelObjects,
  kernelObjects,
  type ProcessFigures,
  processFigures,
} from "./churn-figures.ts";
import { ChurnObjects, podIn } from "./churn-objects.ts";
import { type LabNode, type LabPod, type NodeLab, nodeLab } from "./node-lab.ts";

const SETTINGS = placesOf(dataplaneConfiguration, vendorNames).stored;
const SAMPLE_MS = 2_000;
const COUNT_MS = 30_000;
/** How long nodes may take until they hold what they held at first. */
const SETTLE_MS = 120_000;

export interface ChurnPlan {
  /** It lasts so long and has so many rounds: on a busy machine it takes longer. */
  minutes: number;
  rounds: number;
  podsPerNode: number;
  policies: number;
  services: number;
  /** Pods replaced on each node, and policies changed, in each round. */
  podsPerRound: number;
  policiesPerRound: number;
}

/** Of each data plane one node whose agent is killed again and again, and one whose agent is never killed. */
export interface ChurnNode {
  node: LabNode;
  dataplane: Dataplane;
  isKilled: boolean;
  pods: LabPod[];
  nextSlot: number;
}

export interface PartFigures extends ProcessFigures {
  mostFds: number;
}

interface Sample extends ProcessFigures {
  at: number;
}

/** What a node holds while all pods are connected and all policies are as at first. */
export interface Checkpoint {
  kernel: KernelObjects;
  descriptors: Record<string, number>;
}

/** What an agent held when it was about to be killed, and the one that is never killed at the same time. */
export interface Life {
  dataplane: Dataplane;
  killed: ProcessFigures;
  kept: ProcessFigures;
}

export class ChurnRun {
  readonly plan: ChurnPlan;
  readonly lab: NodeLab;
  readonly nodes: ChurnNode[];
  readonly objects: ChurnObjects;
  /** By name of the node: at its first state, when the measured part begins, and at the end. */
  readonly checkpoints: Record<string, Checkpoint>[] = [];
  readonly lives: Life[] = [];
  readonly #counted: { at: number; byNode: Record<string, KernelObjects> }[] = [];
  readonly #samples = new Map<string, Sample[]>();
  rounds = 0;
  podsReplaced = 0;
  /** When the measured part began and how long all of it took, from the first round. */
  #measuredFromMs = 0;
  #lastedMs = 0;

  private constructor(plan: ChurnPlan, lab: NodeLab) {
    this.plan = plan;
    this.lab = lab;
    const { policies, services } = plan;
    this.objects = new ChurnObjects(lab.client, { policies, services });
    this.nodes = lab.nodes.map((node, at) => ({
      ...{ node, dataplane: at < 2 ? "Nftables" : "BPF", isKilled: at % 2 === 0, pods: [], nextSlot: 0 },
    }));
  }

  static async create(plan: ChurnPlan): Promise<ChurnRun> {
    const groups = realKernel().cgroup.root();
    const lab = await nodeLab({
      bpf: false,
      nodes: 4,
      // A block has more addresses than a node has pods and lately released ones: each node has one, at any time.
      pools: [{ cidr: "10.88.0.0/16", vxlanMode: "Always", blockSize: 23 }],
      env: () => ({ LOG_LEVEL: "info" }),
      ...(groups === undefined ? {} : { groups }),
    });
    return new ChurnRun(plan, lab);
  }

  async run(): Promise<void> {
    const started = Date.now();
    await this.#setUp();
    console.log(`all pods are connected after ${Math.round((Date.now() - started) / 1000)} s`);
    await this.#checkpoint();
    const began = Date.now();
    const elapsed = () => Date.now() - began;
    const sampling = setInterval(() => this.#sample(elapsed()), SAMPLE_MS);
    try {
      await this.#rounds(elapsed);
    } finally {
      clearInterval(sampling);
    }
    this.#lastedMs = elapsed();
    await this.#checkpoint();
  }

  /** An agent is killed nine times, a tenth of the way apart; a third of the way is for settling. */
  async #rounds(elapsed: () => number): Promise<void> {
    const { minutes, rounds } = this.plan;
    const progress = () => Math.min(elapsed() / (minutes * 60_000), this.rounds / rounds);
    let killsDue = 0;
    while (progress() < 1) {
      const isDue = Math.floor(progress() * 10) > killsDue;
      if (isDue) killsDue = Math.floor(progress() * 10);
      await this.#round(isDue);
      await this.#count(elapsed());
      if (this.#measuredFromMs === 0 && progress() > 1 / 3) {
        await this.#checkpoint();
        this.#measuredFromMs = elapsed();
      }
    }
  }

  /** A minute each in a full run; a short one is divided into enough of them to compare. */
  get parts(): number {
    return Math.max(12, Math.round(this.#lastedMs / 60_000));
  }

  /** The two halves of what was measured, as numbers of parts. */
  get measuredHalves(): [earlier: number[], later: number[]] {
    const first = Math.ceil((this.#measuredFromMs * this.parts) / this.#lastedMs);
    const measured = Array.from({ length: this.parts - first }, (_, at) => first + at);
    const half = Math.floor(measured.length / 2);
    return [measured.slice(0, half), measured.slice(half)];
  }

  /** Of one part: the least memory, since what garbage is not collected yet says nothing, and the least and most descriptors. */
  part(name: string, part: number): PartFigures | undefined {
    const samples = this.#samplesOf(name).filter(({ at }) => this.#partAt(at) === part);
    if (samples.length === 0) return undefined;
    const each = (field: keyof ProcessFigures) => samples.map((sample) => sample[field]);
    return {
      rssMiB: Math.min(...each("rssMiB")),
      threads: Math.max(...each("threads")),
      fds: Math.min(...each("fds")),
      mostFds: Math.max(...each("fds")),
    };
  }

  /** What was counted in the kernel last in a part. */
  kernelIn(name: string, part: number): KernelObjects {
    return this.#counted.findLast(({ at }) => this.#partAt(at) === part)?.byNode[name] ?? {};
  }

  #partAt(at: number): number {
    return Math.min(Math.floor((at * this.parts) / this.#lastedMs), this.parts - 1);
  }

  async close(): Promise<void> {
    await this.lab.close();
  }

  async #setUp(): Promise<void> {
    for (const { node, dataplane } of this.nodes) {
      const metadata = { name: `node.${node.name}` };
      const spec = { bpfEnabled: dataplane === "BPF" };
      await this.lab.client.create(SETTINGS, { ...typeOf(SETTINGS), metadata, spec });
    }
    await this.objects.createAll();
    await Promise.all(this.nodes.map(({ node }) => node.start()));
    await Promise.all(
      this.nodes.map(async (one) => {
        for (let slot = 0; slot < this.plan.podsPerNode; slot++) one.pods[slot] = await this.#addPod(one, slot);
      }),
    );
  }

  /** Pods go, also where no agent runs just then, policies change meanwhile, agents start again, and as many pods come. */
  async #round(kills: boolean): Promise<void> {
    const { podsPerRound, podsPerNode, policiesPerRound } = this.plan;
    if (kills) {
      this.#recordLives();
      for (const { node, isKilled } of this.nodes) if (isKilled) await node.kill();
    }
    const changing = this.objects.change(policiesPerRound);
    const replacing = this.nodes.map(async (one) => {
      const slots = Array.from({ length: podsPerRound }, () => one.nextSlot++ % podsPerNode);
      for (const slot of slots) await this.lab.removePod(one.pods[slot] as LabPod);
      if (kills && one.isKilled) await one.node.start();
      for (const slot of slots) one.pods[slot] = await this.#addPod(one, slot);
      this.podsReplaced += slots.length;
    });
    await Promise.all([changing, ...replacing]);
    this.rounds++;
  }

  #addPod({ node, nextSlot }: ChurnNode, slot: number): Promise<LabPod> {
    const { namespace, labels } = podIn(slot);
    return this.lab.addPod(`${node.name}-${slot}-${nextSlot}`, node, labels, {}, namespace);
  }

  #samplesOf(name: string): Sample[] {
    const samples = this.#samples.get(name) ?? [];
    this.#samples.set(name, samples);
    return samples;
  }

  #sample(at: number): void {
    for (const { node } of this.nodes) {
      const figures = processFigures(node.pid());
      if (figures) this.#samplesOf(node.name).push({ at, ...figures });
    }
  }

  /** The least of the last samples: garbage that is not collected yet, and sockets in flight, say nothing. */
  #recordLives(): void {
    const lately = ({ node }: ChurnNode): ProcessFigures | undefined => {
      const last = this.#samplesOf(node.name).slice(-10);
      if (last.length === 0) return undefined;
      const least = (field: keyof ProcessFigures) => Math.min(...last.map((sample) => sample[field]));
      return { rssMiB: least("rssMiB"), threads: least("threads"), fds: least("fds") };
    };
    for (const dataplane of ["Nftables", "BPF"] as const) {
      const [killed, kept] = [true, false].map((isKilled) => {
        const found = this.nodes.find((one) => one.dataplane === dataplane && one.isKilled === isKilled);
        return found && lately(found);
      });
      if (killed && kept) this.lives.push({ dataplane, killed, kept });
    }
  }

  async #count(at: number): Promise<void> {
    if (at - (this.#counted.at(-1)?.at ?? -COUNT_MS) < COUNT_MS) return;
    const byNode: Record<string, KernelObjects> = {};
    for (const { node } of this.nodes) byNode[node.name] = await kernelObjects(node);
    this.#counted.push({ at, byNode });
  }

  /** Waits until every node is as at the first checkpoint; what is still different then is found by whoever compares them. */
  async #checkpoint(): Promise<void> {
    await this.objects.returnToFirst();
    const first = this.checkpoints[0];
    const began = Date.now();
    let last = "";
    for (;;) {
      const now: Record<string, Checkpoint> = {};
      for (const { node } of this.nodes) {
        now[node.name] = { kernel: await kernelObjects(node), descriptors: descriptors(node.pid()) };
      }
      const text = settledPart(now);
      const isSettled = text === (first ? settledPart(first) : last);
      if (isSettled || Date.now() - began > patience(SETTLE_MS)) {
        this.checkpoints.push(now);
        const seconds = Math.round((Date.now() - began) / 1000);
        console.log(`checkpoint ${this.checkpoints.length}: ${isSettled ? "" : "not "}settled after ${seconds} s`);
        return;
      }
      last = text;
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
  }
}

/** Sockets are left out: some are open for a moment only. */
function settledPart(checkpoint: Record<string, Checkpoint>): string {
  return JSON.stringify(checkpoint, (key, value: unknown) => (key === "socket" ? undefined : value));
}

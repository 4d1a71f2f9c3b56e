import { Assembler, R0 } from "../../src/kernel/bpf/asm.ts";
import type { BpfProgram } from "../../src/kernel/bpf/bpf-port.ts";
import { type PacketLab, packetContext, VERDICTS } from "../../test/ebpf/packet-lab.ts";
import { median } from "../run.ts";
import { CONVERSATIONS, type Conversation, type Step } from "./conversations.ts";
import type { ProgramSet } from "./program-set.ts";
import { measureStages, STAGES, type StageName } from "./stages.ts";

export interface ProfilePlan {
  rounds: number;
  /** Connections in a round, each with a port of its own. */
  connections: number;
  /** How often a packet of a known connection is repeated in place, and in how many runs. */
  repeats: number;
  runs: number;
}

/** Nanoseconds. */
export interface StepTimes {
  conversation: string;
  step: string;
  /** The median of each round. */
  once: number[];
  /** Of each run of each round. */
  repeated: number[];
}

export interface Profile {
  steps: StepTimes[];
  stages: Record<StageName, number[]>;
}

const FIRST_PORT = 10_000;
const PORTS = 50_000;

/** Sets of programs over the maps of one lab. */
export class Measurement {
  /** One for each set. */
  readonly profiles: readonly Profile[];
  private readonly lab: PacketLab;
  private readonly sets: readonly ProgramSet[];
  private readonly empty: BpfProgram;
  private ports = 0;
  private rounds = 0;

  constructor(lab: PacketLab, sets: readonly ProgramSet[]) {
    this.lab = lab;
    this.sets = sets;
    this.empty = lab.kernel.bpf.loadProgram({
      ...{ name: "empty", type: "schedCls", license: "GPL" },
      instructions: new Assembler().mov(R0, 0).exit().build(),
    });
    this.profiles = sets.map(emptyProfile);
  }

  round(plan: ProfilePlan): void {
    for (const conversation of CONVERSATIONS) {
      this.eachSet((set, profile) => this.converse(conversation, set, plan, profile));
    }
    this.eachSet((set, profile) => {
      const stages = measureStages(this.lab, set, (step, port) => this.once(set, step, port), plan.connections);
      for (const stage of STAGES) profile.stages[stage].push(stages[stage]);
    });
    this.rounds++;
  }

  close(): void {
    this.empty.close();
  }

  /** Right after each other, and another one first in each round: the machine is not as busy in one moment as in the next. */
  private eachSet(measure: (set: ProgramSet, profile: Profile) => void): void {
    for (let at = 0; at < this.sets.length; at++) {
      const which = (at + this.rounds) % this.sets.length;
      this.sets[which]!.activate();
      measure(this.sets[which]!, this.profiles[which]!);
    }
  }

  private converse(conversation: Conversation, set: ProgramSet, plan: ProfilePlan, profile: Profile): void {
    const times = conversation.steps.map(() => [] as number[]);
    let port = 0;
    for (let index = 0; index < plan.connections; index++) {
      port = FIRST_PORT + (this.ports++ % PORTS);
      conversation.steps.forEach((step, at) => void times[at]!.push(this.once(set, step, port)));
    }
    conversation.steps.forEach((step, at) => {
      const into = profile.steps.find((one) => one.conversation === conversation.name && one.step === step.name)!;
      into.once.push(median(times[at]!));
      for (let run = 0; step.known && run < plan.runs; run++) {
        into.repeated.push(this.run(set.at(step.at, step.direction), step, port, plan.repeats));
      }
    });
  }

  /** The time of one run, without that of a program that does nothing. */
  private once(set: ProgramSet, step: Step, port: number): number {
    return this.run(set.at(step.at, step.direction), step, port) - this.run(this.empty, step, port, 1, false);
  }

  private run(program: BpfProgram, step: Step, port: number, repeat = 1, checked = true): number {
    const packet = step.frame(port);
    const context = packetContext({
      ifindex: this.lab.ifindex(step.at),
      from: step.from && this.lab.ifindex(step.from),
    });
    const run = () => program.testRun({ packet, context, repeat });
    const { nanoseconds, verdict } = this.lab.kernel.netns.run(this.lab.netns, run);
    if (checked && VERDICTS[verdict] !== step.verdict && verdict !== 0) {
      throw new Error(`${step.name} at ${step.at}: ${VERDICTS[verdict] ?? verdict} instead of ${step.verdict}`);
    }
    return nanoseconds;
  }
}

function emptyProfile(): Profile {
  return {
    steps: CONVERSATIONS.flatMap(({ name, steps }) =>
      steps.map((step) => ({ conversation: name, step: step.name, once: [], repeated: [] })),
    ),
    stages: Object.fromEntries(STAGES.map((stage) => [stage, [] as number[]])) as Profile["stages"],
  };
}

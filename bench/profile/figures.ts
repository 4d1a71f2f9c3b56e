import { median, type Row } from "../run.ts";
import { CONVERSATIONS } from "./conversations.ts";
import type { Flame } from "./flame-graph.ts";
import type { Profile, StepTimes } from "./measure.ts";
import type { ProgramSet } from "./program-set.ts";
import { STAGES } from "./stages.ts";

/** What others on the machine take is only ever added: the quietest tenth is nearest to what the program takes. */
const QUIET = 0.1;
/** Packets that open a TCP connection end with the client's first acknowledgement. */
const OPENING = /^(?:SYN|SYN-ACK|ACK)(?:,|$)/;

export interface StepFigures {
  conversation: string;
  step: string;
  once: number;
  /** The medians of the quietest and the noisiest round. */
  spread: readonly [least: number, most: number];
  repeated?: { quiet: number; median: number };
}

export function figuresOf({ steps }: Profile): StepFigures[] {
  return steps.map(({ conversation, step, once, repeated }) => ({
    ...{ conversation, step, once: median(once) },
    spread: [Math.min(...once), Math.max(...once)],
    ...(repeated.length > 0 ? { repeated: { quiet: quantile(repeated, QUIET), median: median(repeated) } } : {}),
  }));
}

export function rowsOf(own: Profile, other: Profile | undefined, set: ProgramSet): Row[] {
  const [figures, others] = [figuresOf(own), other && figuresOf(other)];
  const beside = (value: number | undefined) => (value === undefined ? {} : { beside: { name: "others", value } });
  const packets = figures.flatMap(({ conversation, step, once, repeated }, at): Row[] => {
    const name = `${conversation}: ${step}`;
    const row = { name: `${name}, once`, value: once, unit: "ns", ...beside(others?.[at]?.once) };
    if (!repeated) return [row];
    const again = { name: `${name}, repeated`, value: repeated.quiet, unit: "ns" };
    return [row, { ...again, ...beside(others?.[at]?.repeated?.quiet) }];
  });
  const sums = openingSums(figures);
  const otherSums = others && openingSums(others);
  const opened = [...sums].map(([name, value]): Row => {
    return { name: `${name}: connection opened, sum`, value, unit: "ns", ...beside(otherSums?.get(name)) };
  });
  const stages = STAGES.map((stage): Row => {
    const value = median(own.stages[stage]);
    return { name: `SYN until: ${stage}`, value, unit: "ns", ...beside(other && median(other.stages[stage])) };
  });
  const sizes = [...set.sizes()].flatMap(([name, { instructions, nativeBytes }]): Row[] => [
    { name: `${name}: instructions`, value: instructions, unit: "" },
    { name: `${name}: native code`, value: nativeBytes / 1024, unit: "KiB" },
  ]);
  return [...packets, ...opened, ...stages, ...sizes];
}

/** Of all programs at all hooks, until the client has acknowledged. */
function openingSums(figures: readonly StepFigures[]): Map<string, number> {
  const opening = CONVERSATIONS.filter(({ steps }) => steps.some(({ name }) => name.startsWith("SYN-ACK")));
  return new Map(
    opening.map(({ name }) => {
      const packets = figures.filter(({ conversation, step }) => conversation === name && OPENING.test(step));
      return [name, packets.reduce((sum, { once }) => sum + once, 0)];
    }),
  );
}

/** A new connection between two pods, and a packet of it once it is known; widths are nanoseconds. */
export function flamesOf(profile: Profile): Flame {
  const between = CONVERSATIONS[0]!.name;
  const once = (step: string) => median(timesOf(profile.steps, between, step).once);
  const until = Object.fromEntries(STAGES.map((stage) => [stage, median(profile.stages[stage])]));
  const syn = parts([
    ["enter", until["off"]!],
    ["state, interface, frame", until["not IP"]!],
    ["headers, source, conntrack", until["conntrack"]!],
    ["Service, path, nf_conntrack", until["path"]!],
    ["policy of the sender", until["policy of the sender"]!],
    ["its verdict", until["verdict of the sender"]!],
    ["policy of the receiver, entries, forwarding", once("SYN")],
  ]);
  const packets = [
    { name: "SYN", value: once("SYN"), parts: syn },
    ...["SYN-ACK", "ACK"].map((name) => ({ name, value: once(name), parts: [] })),
  ];
  const value = packets.reduce((sum, packet) => sum + packet.value, 0);
  return { name: `${between}: a new connection`, value, parts: packets };
}

/** From times that include those before to what each adds. */
function parts(until: readonly (readonly [name: string, value: number])[]): Flame[] {
  return until.map(([name, value], at) => {
    const before = Math.max(0, ...until.slice(0, at).map(([, earlier]) => earlier));
    return { name, value: Math.max(0, value - before), parts: [] };
  });
}

function timesOf(steps: readonly StepTimes[], conversation: string, step: string): StepTimes {
  return steps.find((one) => one.conversation === conversation && one.step === step)!;
}

function quantile(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * share)]!;
}

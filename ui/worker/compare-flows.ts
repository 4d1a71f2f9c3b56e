import type { FlowEnd } from "../../src/api/protocol/flow.ts";
import type { Flow } from "../api/flow.ts";

/** In the order that they are shown in. */
export const DIFFERENCE_ORDER = ["changed", "new", "gone", "same"] as const;
export type Difference = (typeof DIFFERENCE_ORDER)[number];

/** What became of all between two ends on a port, in one time. */
export interface PairSide {
  /** Partly: some were denied. */
  verdict: "allow" | "deny" | "partly";
  connections: number;
  packets: number;
  bytes: number;
}

export interface ComparedPair {
  from: Pick<FlowEnd, "namespace" | "name">;
  to: Pick<FlowEnd, "namespace" | "name">;
  port: number;
  protocol: string;
  difference: Difference;
  /** Absent: there was none. */
  before?: PairSide;
  after?: PairSide;
}

/** Pairs of ends and ports of two times, side by side; of each difference those of most connections first. */
export function compareFlows(before: readonly Flow[], after: readonly Flow[]): ComparedPair[] {
  const [first, second] = [pairsOf(before), pairsOf(after)];
  const pairs = [...new Set([...first.keys(), ...second.keys()])].map((key): ComparedPair => {
    const [{ from, to, port, protocol }] = (second.get(key) ?? first.get(key)) as [Flow];
    const sides = { before: sideOf(first.get(key)), after: sideOf(second.get(key)) };
    return {
      ...{ from: endOf(from), to: endOf(to), port, protocol },
      difference: differenceOf(sides.before, sides.after),
      ...(sides.before && { before: sides.before }),
      ...(sides.after && { after: sides.after }),
    };
  });
  return pairs.sort(
    (a, b) =>
      DIFFERENCE_ORDER.indexOf(a.difference) - DIFFERENCE_ORDER.indexOf(b.difference) ||
      weightOf(b) - weightOf(a) ||
      (keyOf(a) < keyOf(b) ? -1 : 1),
  );
}

export function countsOf(pairs: readonly ComparedPair[]): Record<Difference, number> {
  const counts = { changed: 0, new: 0, gone: 0, same: 0 };
  for (const { difference } of pairs) counts[difference]++;
  return counts;
}

export function mostOfEach(pairs: readonly ComparedPair[], most: number): ComparedPair[] {
  return DIFFERENCE_ORDER.flatMap((difference) =>
    pairs.filter((pair) => pair.difference === difference).slice(0, most),
  );
}

function differenceOf(before: PairSide | undefined, after: PairSide | undefined): Difference {
  if (!before) return "new";
  if (!after) return "gone";
  return before.verdict === after.verdict ? "same" : "changed";
}

function pairsOf(flows: readonly Flow[]): Map<string, Flow[]> {
  const pairs = new Map<string, Flow[]>();
  for (const flow of flows) {
    const key = keyOf(flow);
    const known = pairs.get(key);
    if (known) known.push(flow);
    else pairs.set(key, [flow]);
  }
  return pairs;
}

function keyOf({ from, to, port, protocol }: Pick<Flow, "port" | "protocol"> & Pick<ComparedPair, "from" | "to">) {
  return JSON.stringify([from.namespace, from.name, to.namespace, to.name, port, protocol]);
}

function endOf({ namespace, name }: FlowEnd): ComparedPair["from"] {
  return { namespace, name };
}

/** A connection may be counted where it leaves and where it arrives. What leaves may still be denied where it arrives, so that end says more. */
function sideOf(flows: readonly Flow[] | undefined): PairSide | undefined {
  if (!flows) return undefined;
  const arrived = flows.filter(({ reporter }) => reporter !== "Source");
  const left = flows.filter(({ reporter }) => reporter === "Source");
  const isDenied = flows.some(({ verdict }) => verdict === "Deny");
  const isAllowed = (arrived.length > 0 ? arrived : left).some(({ verdict }) => verdict === "Allow");
  const most = (value: (flow: Flow) => number) => {
    const sum = (some: readonly Flow[]) => some.reduce((total, flow) => total + value(flow), 0);
    return Math.max(sum(arrived), sum(left));
  };
  return {
    verdict: isDenied ? (isAllowed ? "partly" : "deny") : "allow",
    connections: most(({ started }) => started),
    packets: most(({ packets, replyPackets }) => packets + replyPackets),
    bytes: most(({ bytes, replyBytes }) => bytes + replyBytes),
  };
}

/** No connection begins in a denial. */
function weightOf({ before, after }: ComparedPair): number {
  const weight = (side: PairSide | undefined) => (side ? side.connections * 1_000 + side.packets : 0);
  return Math.max(weight(before), weight(after));
}

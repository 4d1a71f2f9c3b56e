import type { FlowEnd, FlowKey } from "../../api/protocol/flow.ts";
import type { Turns } from "../turns.ts";
import { flowId } from "./flow-identity.ts";
import type { Selected, Selection } from "./selection.ts";
import { addressesIn } from "./stored-flow.ts";

/** Of the flows of a pair, so many are named. */
const MOST_IDS = 5;

/** Flows between the same two ends, by port and protocol: one question to policy. */
export interface FlowPair {
  /** As the reader sees them. */
  from: FlowEnd;
  to: FlowEnd;
  port: number;
  protocol: string;
  /** Everything that is recorded of the flow that was counted last, which is for calculations and not for the reader; addresses are of all. */
  key: FlowKey;
  sources: readonly string[];
  destinations: readonly string[];
  reporters: ReadonlySet<FlowKey["reporter"]>;
  flows: number;
  connections: number;
  packets: number;
  bytes: number;
  ids: readonly string[];
}

export interface FlowPairs {
  /** Those of most packets: no connection begins in a denial. */
  pairs: readonly FlowPair[];
  /** How many there are, with those that were left out. */
  total: number;
}

interface Group {
  of: Selected[];
  packets: number;
}

export async function flowPairs({ selected, range }: Selection, most: number, turn: Turns): Promise<FlowPairs> {
  const groups = new Map<string, Group>();
  for (const flow of selected) {
    const text = pairKey(flow.key);
    const group = groups.get(text) ?? { of: [], packets: 0 };
    group.of.push(flow);
    group.packets += flow.counts.packets + flow.counts.replyPackets;
    groups.set(text, group);
    await turn();
  }
  const largest = [...groups.values()].sort((a, b) => b.packets - a.packets).slice(0, most);
  const pairs: FlowPair[] = [];
  for (const { of } of largest) {
    pairs.push(pairOf(of, range));
    await turn();
  }
  return { pairs, total: groups.size };
}

function pairKey({ from, to, port, protocol }: FlowKey): string {
  const end = ({ type, namespace, name, kind = "" }: FlowEnd) => [type, namespace, name, kind];
  return JSON.stringify([end(from), end(to), port, protocol]);
}

function pairOf(of: readonly Selected[], range: { since: number; until: number }): FlowPair {
  const stored = of.flatMap(({ flows }) => flows);
  const newest = stored.reduce((one, other) => (other.last > one.last ? other : one));
  const { from, to, port, protocol } = of[0]!.key;
  const everything = addressesIn(stored, range, { showsSource: true, showsDestination: true });
  const sum = (value: (counts: Selected["counts"]) => number) =>
    of.reduce((total, { counts }) => total + value(counts), 0);
  return {
    ...{ from, to, port, protocol, key: newest.key },
    ...{ sources: everything.sourceAddresses, destinations: everything.destinationAddresses },
    reporters: new Set(stored.map(({ key }) => key.reporter)),
    flows: of.length,
    connections: sum(({ started }) => started),
    packets: sum(({ packets, replyPackets }) => packets + replyPackets),
    bytes: sum(({ bytes, replyBytes }) => bytes + replyBytes),
    ids: of.slice(0, MOST_IDS).map(({ text }) => flowId(text)),
  };
}

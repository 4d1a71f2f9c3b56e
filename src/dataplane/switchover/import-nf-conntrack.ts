/**
 * Import of nf_conntrack entries, for programs that cannot look them up: before and after the flip, and again while it is
 * true. An entry that is too old would send a new flow to rules that are gone, so each has its end, and what the kernel has forgotten is
 * reverted.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { fiveTupleLayout, nfConntrackEntryLayout } from "../../gen/bpf/layout.gen.ts";
import type { BpfMap } from "../../kernel/bpf/bpf-port.ts";
import {
  type ConntrackEntry,
  type ConntrackPort,
  type ConntrackTuple,
  TCP_STATES,
} from "../../kernel/conntrack/conntrack-port.ts";
import { kernelTime, sinceBoot } from "../../kernel/kernel-time.ts";
import { addressBytes } from "../ebpf/net-bytes.ts";

const TCP = 6;
const UDP = 17;
const AT_ONCE = 2_000;
const SECOND_NS = 1_000_000_000n;
/** The programs let go of a flow a little before the kernel does: what they leave to it, it must still have. */
const MARGIN_NS = 2n * SECOND_NS;

export interface ImportOptions {
  imported: BpfMap;
  conntrack: ConntrackPort;
  /** Sockets that send without being connected are known by their port alone: what address they will send from is not decided yet. */
  nodeAddresses: readonly string[];
  /** With nf_conntrack lookup in the programs, only those sockets need entries. */
  which: "all" | "unconnected";
}

/** Writes what the kernel has, and takes away what it has no more; how many flows. */
export async function importNfConntrack({
  imported: oldFlows,
  conntrack,
  nodeAddresses,
  which,
}: ImportOptions): Promise<number> {
  const own = new Set(nodeAddresses);
  const isOwnUdp = ({ original }: ConntrackEntry) => original.protocol === UDP && own.has(original.source);
  const isWanted = (flow: ConntrackEntry) =>
    which === "all" ? flow.original.protocol === TCP || flow.original.protocol === UDP : isOwnUdp(flow);
  const flows = (await conntrack.list()).filter(isWanted);
  const now = kernelTime();
  const told = new Set<string>();
  for (let from = 0; from < flows.length; from += AT_ONCE) {
    const entries = flows
      .slice(from, from + AT_ONCE)
      .flatMap((flow) => [
        ...(which === "all" ? bothDirections(flow, now) : []),
        ...(isOwnUdp(flow) ? [entryOf({ ...flow.original, source: "::" }, flow.reply, flow, now)] : []),
      ]);
    for (const [key] of entries) told.add(key.toString("latin1"));
    await oldFlows.updateMany(entries);
    await nextTurn();
  }
  for (const chunk of oldFlows.chunks()) {
    await oldFlows.deleteMany(chunk.map(([key]) => key).filter((key) => !told.has(key.toString("latin1"))));
  }
  return flows.length;
}

function bothDirections(flow: ConntrackEntry, now: bigint): (readonly [Buffer, Buffer])[] {
  return [entryOf(flow.original, flow.reply, flow, now), entryOf(flow.reply, flow.original, flow, now)];
}

/** What the kernel makes of a packet: it is sent to where the other direction comes from. */
function entryOf(
  packet: ConntrackTuple,
  other: ConntrackTuple,
  { reply, mark, tcpState, timeout }: ConntrackEntry,
  now: bigint,
) {
  const value = {
    ...{
      until: sinceBoot(now + BigInt(timeout) * SECOND_NS, MARGIN_NS),
      mark: mark >>> 16,
      dst: addressBytes(other.source),
      dport: other.sourcePort,
    },
    reply: packet === reply ? 1 : 0,
    tcpState: tcpState === undefined ? 0 : TCP_STATES.indexOf(tcpState),
  };
  return [keyOf(packet), nfConntrackEntryLayout.write(value)] as const;
}

function keyOf({ protocol, source, destination, sourcePort, destinationPort }: ConntrackTuple): Buffer {
  return fiveTupleLayout.write({
    ...{ protocol, sport: sourcePort, dport: destinationPort },
    src: addressBytes(source),
    dst: addressBytes(destination),
  });
}

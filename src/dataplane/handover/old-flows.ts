/**
 * Where programs cannot ask the kernel's connection tracking they are told what is in it: before and after the flip, and again while it is
 * true. An entry that is too old would send a new flow to rules that are gone, so what the kernel has forgotten is taken back.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { flowKeyLayout, oldFlowLayout } from "../../gen/bpf/layout.gen.ts";
import type { BpfMap } from "../../kernel/bpf-port.ts";
import { type ConntrackPort, type Flow, type FlowTuple, TCP_STATES } from "../../kernel/conntrack-port.ts";
import { netBytes } from "../ebpf/net-bytes.ts";

const TCP = 6;
const UDP = 17;
const AT_ONCE = 2_000;

export interface OldFlowsOptions {
  oldFlows: BpfMap;
  conntrack: ConntrackPort;
  /** Sockets that send without being connected are known by their port alone: what address they will send from is not decided yet. */
  nodeAddresses: readonly string[];
  /** Where programs look up packets by themselves only those sockets need to be told. */
  which: "all" | "unconnected";
}

/** Writes what the kernel has, and takes away what it has no more; how many flows. */
export async function tellOldFlows({ oldFlows, conntrack, nodeAddresses, which }: OldFlowsOptions): Promise<number> {
  const own = new Set(nodeAddresses);
  const isOwnUdp = ({ original }: Flow) => original.protocol === UDP && own.has(original.source);
  const isWanted = (flow: Flow) =>
    which === "all" ? flow.original.protocol === TCP || flow.original.protocol === UDP : isOwnUdp(flow);
  const flows = (await conntrack.flows()).filter(isWanted);
  const seen = process.hrtime.bigint();
  const told = new Set<string>();
  for (let from = 0; from < flows.length; from += AT_ONCE) {
    const entries = flows
      .slice(from, from + AT_ONCE)
      .flatMap((flow) => [
        ...(which === "all" ? bothWays(flow, seen) : []),
        ...(isOwnUdp(flow) ? [entryOf({ ...flow.original, source: "::" }, flow.reply, flow, seen)] : []),
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

function bothWays(flow: Flow, seen: bigint): (readonly [Buffer, Buffer])[] {
  return [entryOf(flow.original, flow.reply, flow, seen), entryOf(flow.reply, flow.original, flow, seen)];
}

/** What the kernel makes of a packet: it is sent to where the other direction comes from. */
function entryOf(packet: FlowTuple, other: FlowTuple, { reply, mark, tcpState }: Flow, seen: bigint) {
  const value = {
    ...{ seen, mark: mark >>> 16, dst: bytesOf(other.source), dport: other.sourcePort },
    reply: packet === reply ? 1 : 0,
    tcpState: tcpState === undefined ? 0 : TCP_STATES.indexOf(tcpState),
  };
  return [keyOf(packet), oldFlowLayout.write(value)] as const;
}

function keyOf({ protocol, source, destination, sourcePort, destinationPort }: FlowTuple): Buffer {
  return flowKeyLayout.write({
    ...{ protocol, sport: sourcePort, dport: destinationPort },
    src: bytesOf(source),
    dst: bytesOf(destination),
  });
}

function bytesOf(address: string): Uint8Array {
  return netBytes(`${address}/${address.includes(":") ? 128 : 32}`).bytes;
}

import { setImmediate } from "node:timers/promises";
import {
  CONFIGURATION,
  CONNTRACK_FLAG,
  CONNTRACK_STATE,
  conntrackEntryLayout,
  fiveTupleLayout,
} from "../../../gen/bpf/layout.gen.ts";
import type { BpfMap, MapEntry } from "../../../kernel/bpf/bpf-port.ts";
import { kernelTime } from "../../../kernel/kernel-time.ts";

type Times = Pick<typeof CONFIGURATION, Extract<keyof typeof CONFIGURATION, `timeout_${string}`>>;

export interface Expired {
  removed: number;
  left: number;
  /** Of what is left, how much each interface's pods opened. */
  opened: Map<number, number>;
}

/**
 * Removes flows that are over; how many there were, and how many are left. The programs take no notice of those either, so this only makes
 * space and keeps `show` short. There may be a million: the event loop runs in between. `pods`: interfaces of pods, by `addressKey`.
 */
export async function expireConntrack(
  flows: BpfMap,
  configuration: Partial<Times>,
  pods: ReadonlyMap<string, number> = new Map(),
): Promise<Expired> {
  const times = { ...CONFIGURATION, ...configuration };
  const now = kernelTime();
  let [removed, left] = [0, 0];
  const opened = new Map<number, number>();
  for (const chunk of flows.chunks(4096)) {
    const over: Buffer[] = [];
    for (const entry of chunk) {
      if (isOver(entry[0], entry[1], times, now)) over.push(entry[0]);
      else if (pods.size > 0) countOpener(entry, pods, opened);
    }
    await flows.deleteMany(over);
    removed += over.length;
    left += chunk.length - over.length;
    await setImmediate();
  }
  return { removed, left, opened };
}

/** An address of a map as the key of a table here. */
export function addressKey(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("latin1");
}

function countOpener(entry: MapEntry, pods: ReadonlyMap<string, number>, opened: Map<number, number>): void {
  const ifindex = pods.get(openerOf(entry));
  if (ifindex !== undefined) opened.set(ifindex, (opened.get(ifindex) ?? 0) + 1);
}

/** Who opened the connection: the source of the entry that says so; of its reply, where that goes once it is translated back. */
function openerOf([key, value]: MapEntry): string {
  const flags = value[conntrackEntryLayout.at.flags]!;
  const { src, dst } = fiveTupleLayout.at;
  const isReply = (flags & CONNTRACK_FLAG.CT_REPLY) !== 0;
  const isTranslated = (flags & CONNTRACK_FLAG.CT_NAT) !== 0;
  const [bytes, at] = isReply && isTranslated ? [value, conntrackEntryLayout.at.to + dst] : [key, isReply ? dst : src];
  return bytes.toString("latin1", at, at + ADDRESS_BYTES);
}

const ADDRESS_BYTES = 16;

/** By the bytes alone: reading the whole of a million flows takes seconds. */
function isOver(key: Buffer, value: Buffer, times: Times, now: bigint): boolean {
  const [protocol, state] = [key[fiveTupleLayout.at.protocol]!, value[conntrackEntryLayout.at.state]!];
  return now - value.readBigUInt64LE(conntrackEntryLayout.at.lastSeen) > timeoutOf(protocol, state, times);
}

/** As `timeout_of` in bpf/lib/conntrack.h. */
function timeoutOf(protocol: number, state: number, times: Times): bigint {
  return BigInt(times[timeoutNameOf(protocol, state)]);
}

function timeoutNameOf(protocol: number, state: number): keyof Times {
  if (protocol === 6) {
    if (state === CONNTRACK_STATE.CT_OPENING) return "timeout_tcp_opening";
    return state === CONNTRACK_STATE.CT_ESTABLISHED ? "timeout_tcp_established" : "timeout_tcp_closing";
  }
  if (protocol === 17) return "timeout_udp";
  return protocol === 1 || protocol === 58 ? "timeout_icmp" : "timeout_other";
}

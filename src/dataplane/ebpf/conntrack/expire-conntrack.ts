import { setImmediate } from "node:timers/promises";
import { CONFIGURATION, CONNTRACK_STATE, conntrackEntryLayout, fiveTupleLayout } from "../../../gen/bpf/layout.gen.ts";
import type { BpfMap } from "../../../kernel/bpf/bpf-port.ts";
import { kernelTime } from "../../../kernel/kernel-time.ts";

type Times = Pick<typeof CONFIGURATION, Extract<keyof typeof CONFIGURATION, `timeout_${string}`>>;

/**
 * Removes flows that are over; how many there were, and how many are left. The programs take no notice of those either, so this only makes
 * space and keeps `show` short. There may be a million: the event loop runs in between.
 */
export async function expireConntrack(
  flows: BpfMap,
  configuration: Partial<Times>,
): Promise<{ removed: number; left: number }> {
  const times = { ...CONFIGURATION, ...configuration };
  const now = kernelTime();
  let [removed, left] = [0, 0];
  for (const chunk of flows.chunks(4096)) {
    const over = chunk.filter(([key, value]) => isOver(key, value, times, now)).map(([key]) => key);
    await flows.deleteMany(over);
    removed += over.length;
    left += chunk.length - over.length;
    await setImmediate();
  }
  return { removed, left };
}

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

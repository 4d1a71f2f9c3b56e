import { CONFIGURATION, FLOW_STATE, flowKeyLayout, flowLayout } from "../../gen/bpf/layout.gen.ts";
import type { BpfMap } from "../../kernel/bpf-port.ts";

type Times = Pick<typeof CONFIGURATION, Extract<keyof typeof CONFIGURATION, `timeout_${string}`>>;

/** Removes flows that are over; how many. The programs take no notice of those either, so this only makes room and tidies what is shown. */
export async function expireFlows(flows: BpfMap, configuration: Partial<Times>): Promise<number> {
  const times = { ...CONFIGURATION, ...configuration };
  // Both clocks count from boot and stop in sleep: what programs call ktime is what Node calls hrtime.
  const now = process.hrtime.bigint();
  let removed = 0;
  for (const chunk of flows.chunks()) {
    const over = chunk.filter(([key, value]) => isOver(key, value, times, now)).map(([key]) => key);
    await flows.deleteMany(over);
    removed += over.length;
  }
  return removed;
}

function isOver(key: Buffer, value: Buffer, times: Times, now: bigint): boolean {
  const { protocol } = flowKeyLayout.read(key);
  const { lastSeen, state } = flowLayout.read(value);
  return now - lastSeen > BigInt(timeoutOf(protocol, state, times));
}

/** As `timeout_of` in bpf/lib/flows.h. */
function timeoutOf(protocol: number, state: number, times: Times): number {
  if (protocol === 6) {
    if (state === FLOW_STATE.FLOW_OPENING) return times.timeout_tcp_opening;
    return state === FLOW_STATE.FLOW_ESTABLISHED ? times.timeout_tcp_established : times.timeout_tcp_closing;
  }
  if (protocol === 17) return times.timeout_udp;
  return protocol === 1 || protocol === 58 ? times.timeout_icmp : times.timeout_other;
}

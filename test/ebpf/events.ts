import { addressText } from "../../src/dataplane/ebpf/net-bytes.ts";
import { eventLayout, REASON } from "../../src/gen/bpf/layout.gen.ts";

export const EVENT_SIZE = eventLayout.size;

/** An event of the ring, in words. */
export function readEvent(record: Buffer): { from: string; to: string; reason: string } {
  const { flow, reason } = eventLayout.read(record);
  const name = Object.entries(REASON).find(([key, number]) => number === reason && /^(?:PASS|DROP)/.test(key))?.[0];
  return { from: addressText(flow.src), to: addressText(flow.dst), reason: name ?? String(reason) };
}

/** What connection tracking remembers of an address belongs to the pod that had it: it goes with the pod, or the next one inherits it. */
import { setImmediate } from "node:timers/promises";
import { conntrackEntryLayout, fiveTupleLayout, nfConntrackEntryLayout } from "../../../gen/bpf/layout.gen.ts";
import type { BpfMap } from "../../../kernel/bpf/bpf-port.ts";
import type { ConntrackPort } from "../../../kernel/conntrack/conntrack-port.ts";
import { addressText } from "../net-bytes.ts";

/** Where addresses are in a value: keys of both maps are five-tuples. */
const IN_VALUE = {
  flows: [conntrackEntryLayout.at.to + fiveTupleLayout.at.src, conntrackEntryLayout.at.to + fiveTupleLayout.at.dst],
  old_flows: [nfConntrackEntryLayout.at.dst],
} as const;

const IN_KEY = [fiveTupleLayout.at.src, fiveTupleLayout.at.dst] as const;

/** Entries of both directions, translated or not, in both maps. How many there were. */
export async function deletePodConntrack(
  isGone: (address: string) => boolean,
  map: (name: keyof typeof IN_VALUE) => BpfMap,
): Promise<number> {
  const known = new Map<string, boolean>();
  // There may be a million entries, of few addresses: each is looked at once.
  const gone = (bytes: Buffer, at: number): boolean => {
    const raw = bytes.toString("latin1", at, at + 16);
    const found = known.get(raw) ?? isGone(addressText(bytes.subarray(at, at + 16)));
    known.set(raw, found);
    return found;
  };
  let removed = 0;
  for (const name of ["flows", "old_flows"] as const) {
    for (const chunk of map(name).chunks(4096)) {
      const theirs = chunk.filter(
        ([key, value]) => IN_KEY.some((at) => gone(key, at)) || IN_VALUE[name].some((at) => gone(value, at)),
      );
      removed += theirs.length;
      await map(name).deleteMany(theirs.map(([key]) => key));
      await setImmediate();
    }
  }
  return removed;
}

/** The kernel's own table: masquerading of packets that leave the pools is there in both data planes. */
export async function deletePodNfConntrack(
  isGone: (address: string) => boolean,
  conntrack: ConntrackPort,
): Promise<void> {
  for (const { original, reply } of await conntrack.list()) {
    if ([original, reply].some(({ source, destination }) => isGone(source) || isGone(destination)))
      conntrack.delete(original);
  }
}

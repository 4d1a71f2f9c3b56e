import type { BpfMap } from "../../kernel/bpf-port.ts";
import { errnoOf } from "../../kernel/errors.ts";

/** Keys and values that only make sense together. */
export type Entries = readonly (readonly [Uint8Array, Uint8Array])[];

/**
 * Writes all groups at once; where the kernel refuses, one by one, so that a group that does not fit keeps nobody else out. Those that
 * failed, by their place: nothing of them is left where `undo` says so.
 */
export async function writeEach(
  map: BpfMap,
  groups: readonly Entries[],
  { undo, makeRoom }: { undo: boolean; makeRoom(): Promise<void> },
): Promise<Map<number, unknown>> {
  const failed = new Map<number, unknown>();
  try {
    const all = groups.flat();
    if (all.length > 0) await map.updateMany(all);
    return failed;
  } catch (error) {
    if (isFull(error)) await makeRoom();
  }
  for (const [index, group] of groups.entries()) {
    try {
      for (const [key, value] of group) map.update(key, value);
    } catch (error) {
      failed.set(index, error);
      if (undo) for (const [key] of group) map.delete(key);
    }
  }
  return failed;
}

/** What a hash answers, and a trie. */
export function isFull(error: unknown): boolean {
  return ["E2BIG", "ENOSPC"].includes(errnoOf(error) ?? "");
}

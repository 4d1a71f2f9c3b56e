import type { BpfMap } from "../../../kernel/bpf/bpf-port.ts";
import { errnoOf } from "../../../kernel/errors.ts";

/** Keys, one after the other, and their values: entries that only make sense together. */
export interface Entries {
  readonly keys: Buffer;
  readonly values: Buffer;
}

/**
 * Writes all groups at once; if the kernel refuses, one by one, so that a group that does not fit does not affect the others. Those that
 * failed, by their place: nothing of them is left where `undo` says so.
 */
export async function writeEach(
  map: BpfMap,
  groups: readonly Entries[],
  { undo, makeRoom }: { undo: boolean; makeRoom(): Promise<void> },
): Promise<Map<number, unknown>> {
  const failed = new Map<number, unknown>();
  try {
    await map.updatePacked(
      Buffer.concat(groups.map(({ keys }) => keys)),
      Buffer.concat(groups.map(({ values }) => values)),
    );
    return failed;
  } catch (error) {
    if (isFull(error)) await makeRoom();
  }
  for (const [index, { keys, values }] of groups.entries()) {
    const each = pieces(keys, map.info.keySize);
    const eachValue = pieces(values, map.info.valueSize);
    try {
      for (const [at, key] of each.entries()) map.update(key, eachValue[at]!);
    } catch (error) {
      failed.set(index, error);
      if (undo) for (const key of each) map.delete(key);
    }
  }
  return failed;
}

function pieces(bytes: Buffer, size: number): Buffer[] {
  return Array.from({ length: bytes.length / size }, (_, at) => bytes.subarray(at * size, (at + 1) * size));
}

/** What a hash answers, and a trie. */
export function isFull(error: unknown): boolean {
  return ["E2BIG", "ENOSPC"].includes(errnoOf(error) ?? "");
}

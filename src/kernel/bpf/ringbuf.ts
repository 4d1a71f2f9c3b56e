/**
 * Reads a ring buffer through shared memory. The kernel maps it as three parts: our position (ours to write), its position, and the data,
 * twice in a row so that a record never wraps.
 */

import { mapMemory, pageSize, type Watch, whenReadable } from "../sys.ts";
import type { BpfMap, RingReader } from "./bpf-port.ts";

const HEADER = 8;
const BUSY = 0x8000_0000;
const DISCARDED = 0x4000_0000;
const LENGTH = 0x3fff_ffff;

/** Records per turn of the event loop: a flood of events must not keep everything else waiting. */
const PER_TURN = 4096;

export function readRing(map: BpfMap, onRecord: (record: Buffer) => void): RingReader {
  const size = map.info.maxEntries;
  const page = pageSize();
  const ours = mapMemory(map.fd, page, "write");
  const theirs = mapMemory(map.fd, page + 2 * size, "read", page);
  const consumer = new BigUint64Array(ours.memory, 0, 1);
  const producer = new BigUint64Array(theirs.memory, 0, 1);
  const data = Buffer.from(theirs.memory, page);
  const mask = BigInt(size - 1);
  let position = Atomics.load(consumer, 0);
  let open = true;

  function drain(limit = Number.POSITIVE_INFINITY): number {
    let read = 0;
    while (open && read < limit && position < Atomics.load(producer, 0)) {
      const at = Number(position & mask);
      const header = data.readUInt32LE(at);
      // Reserved and not yet submitted: the records behind it wait, so that order is kept.
      if ((header & BUSY) !== 0) break;
      const length = header & LENGTH;
      if ((header & DISCARDED) === 0) {
        onRecord(data.subarray(at + HEADER, at + HEADER + length));
        read++;
      }
      position += BigInt(Math.ceil((length + HEADER) / 8) * 8);
      // One 64-bit store: a program on another processor may look at any moment.
      Atomics.store(consumer, 0, position);
    }
    return read;
  }

  let watch: Watch | undefined = whenReadable(map.fd, () => void drain(PER_TURN));
  return {
    drain: () => drain(),
    // The mappings stay: a caller may still hold a view, and reading it must not crash the process. They end with it.
    close: () => {
      open = false;
      watch?.close();
      watch = undefined;
    },
  };
}

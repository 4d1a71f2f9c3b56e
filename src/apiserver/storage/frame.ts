import { crc32 } from "node:zlib";

/**
 * A frame is what becomes durable at once: a batch of records with its length, its number and a checksum.
 *
 *   magic 4 | length of the payload 4 | crc32 of number and payload 4 | number 8 | payload
 *
 * A frame is written only when the one before it is on disk. So a damaged frame with a good one after it was acknowledged once,
 * and is an error; a damaged frame with nothing good after it is a write the crash cut off, which was never acknowledged.
 * The magic is no part of any UTF-8 text, so no object can hold something that looks like a frame.
 */
export interface Frame {
  readonly number: number;
  readonly payload: Buffer;
  readonly offset: number;
}

interface Frames {
  readonly frames: readonly Frame[];
  /** Where the good frames end. */
  readonly end: number;
  /** What comes after them. */
  readonly tail: "nothing" | "torn" | "damaged";
}

const MAGIC = Buffer.from([0xff, 0x56, 0x4c, 0x31]);
const HEADER = 20;

export function encodeFrame(number: number, records: readonly Buffer[]): Buffer {
  const header = Buffer.alloc(HEADER);
  const frame = Buffer.concat([header, ...records]);
  MAGIC.copy(frame);
  frame.writeUInt32LE(frame.length - HEADER, 4);
  frame.writeDoubleLE(number, 12);
  frame.writeUInt32LE(crc32(frame.subarray(12)), 8);
  return frame;
}

export function readFrames(file: Buffer): Frames {
  const frames: Frame[] = [];
  let end = 0;
  while (end < file.length) {
    const frame = frameAt(file, end);
    if (frame === undefined) return { frames, end, tail: hasFrameAfter(file, end) ? "damaged" : "torn" };
    frames.push(frame);
    end += HEADER + frame.payload.length;
  }
  return { frames, end, tail: "nothing" };
}

function frameAt(file: Buffer, offset: number): Frame | undefined {
  if (offset + HEADER > file.length || MAGIC.compare(file, offset, offset + MAGIC.length) !== 0) return undefined;
  const end = offset + HEADER + file.readUInt32LE(offset + 4);
  if (end > file.length || crc32(file.subarray(offset + 12, end)) !== file.readUInt32LE(offset + 8)) return undefined;
  return { number: file.readDoubleLE(offset + 12), payload: file.subarray(offset + HEADER, end), offset };
}

function hasFrameAfter(file: Buffer, offset: number): boolean {
  for (let at = file.indexOf(MAGIC, offset + 1); at >= 0; at = file.indexOf(MAGIC, at + 1)) {
    if (frameAt(file, at) !== undefined) return true;
  }
  return false;
}

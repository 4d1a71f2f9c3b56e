import type { FileHandle } from "node:fs/promises";
import { open } from "node:fs/promises";
import { promisify } from "node:util";
import { constants, crc32, deflateRaw, inflateRaw } from "node:zlib";

const deflate = promisify(deflateRaw);
const inflate = promisify(inflateRaw);

/** Length of the rest, its check sum, and when the batch arrived; then its text, deflated. */
const HEAD = 16;
/** Deflated texts of batches are smaller: what says otherwise is no record. */
const MOST = 64 * 1024 * 1024;

export interface BatchRecord {
  /** As the agent sent it. */
  text: string;
  /** Milliseconds since 1970. */
  arrived: number;
}

export async function recordOf({ text, arrived }: BatchRecord): Promise<Buffer> {
  const body = await deflate(text, { level: constants.Z_BEST_SPEED });
  const record = Buffer.allocUnsafe(HEAD + body.length);
  record.writeUInt32LE(body.length, 0);
  record.writeDoubleLE(arrived, 8);
  body.copy(record, HEAD);
  record.writeUInt32LE(crc32(record.subarray(8)), 4);
  return record;
}

/** Gives each record of a file, up to the first that is not whole. */
export async function* recordsIn(path: string): AsyncGenerator<BatchRecord> {
  for await (const { body, arrived } of packedIn(path)) {
    const text = await inflate(body);
    yield { text: text.toString(), arrived };
  }
}

/** Where the records of a file end that are whole. */
export async function endOf(path: string): Promise<number> {
  let end = 0;
  for await (const { body } of packedIn(path)) end += HEAD + body.length;
  return end;
}

async function* packedIn(path: string): AsyncGenerator<{ body: Buffer; arrived: number }> {
  const file = await open(path);
  try {
    let at = 0;
    for (;;) {
      const head = await bytesAt(file, at, HEAD);
      const length = head?.readUInt32LE(0) ?? 0;
      if (!head || length === 0 || length > MOST) return;
      const body = await bytesAt(file, at + HEAD, length);
      if (!body || crc32(body, crc32(head.subarray(8))) !== head.readUInt32LE(4)) return;
      yield { body, arrived: head.readDoubleLE(8) };
      at += HEAD + length;
    }
  } finally {
    await file.close();
  }
}

async function bytesAt(file: FileHandle, at: number, length: number): Promise<Buffer | undefined> {
  const bytes = Buffer.allocUnsafe(length);
  const { bytesRead } = await file.read(bytes, 0, length, at);
  return bytesRead === length ? bytes : undefined;
}

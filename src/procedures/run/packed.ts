import { createHash } from "node:crypto";
import { gunzipSync, gzipSync } from "node:zlib";

/** A Secret holds a mebibyte, by some counts of its base64; a request to store it a little more. */
const PART_BYTES = 700 * 1024;

/** What is unpacked is at most this large: some bytes unpack to a thousand times as many. */
const MOST_BYTES = 256 * 1024 * 1024;

export interface Packed {
  parts: Buffer[];
  /** Of the parts together. */
  sha256: string;
}

/** Any JSON, small, in parts that fit. */
export function pack(value: unknown, partBytes = PART_BYTES): Packed {
  const whole = gzipSync(JSON.stringify(value ?? null));
  const count = Math.ceil(whole.length / partBytes);
  const parts = Array.from({ length: count }, (_, at) => whole.subarray(at * partBytes, (at + 1) * partBytes));
  return { parts, sha256: sha256(whole) };
}

/** The value again; undefined where something is missing or altered. */
export function unpack({ parts, sha256: expected }: Packed): unknown {
  const whole = Buffer.concat(parts);
  if (sha256(whole) !== expected) return undefined;
  try {
    return JSON.parse(gunzipSync(whole, { maxOutputLength: MOST_BYTES }).toString());
  } catch {
    // The digest is beside the bytes, so whoever altered one may have altered both.
    return undefined;
  }
}

const sha256 = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");

import { randomBytes } from "node:crypto";

/** For local use, never assigned to a protocol. */
export const OVERLAY_PROTOCOL = 0x88b5;

/** `small` goes through any network, `full` is as long as the longest packet of a pod. */
export type ProbeSize = "small" | "full";

export interface OverlayFrame {
  kind: "request" | "answer";
  size: ProbeSize;
  /** Only the sender of the request, and the node it went to, know it. */
  nonce: string;
  source: string;
  destination: string;
}

const HEADER = 14;
const SMALL = 64;
const MAGIC = Buffer.from("vendor01", "latin1");
const AT = { source: 6, protocol: 12, magic: HEADER, kind: HEADER + 8, size: HEADER + 9, nonce: HEADER + 10 } as const;
const NONCE = 16;
const KINDS = ["request", "answer"] as const;
const SIZES = ["small", "full"] as const;

export function newNonce(): string {
  return randomBytes(NONCE).toString("hex");
}

/** `bytes`: of the packet in the frame, which is what an MTU counts. */
export function writeRequest({ source, destination, size, nonce }: Omit<OverlayFrame, "kind">, bytes: number): Buffer {
  const frame = Buffer.alloc(HEADER + Math.max(size === "full" ? bytes : 0, SMALL));
  frame.write(destination.replaceAll(":", ""), "hex");
  frame.write(source.replaceAll(":", ""), AT.source, "hex");
  frame.writeUInt16BE(OVERLAY_PROTOCOL, AT.protocol);
  frame.set(MAGIC, AT.magic);
  frame[AT.size] = SIZES.indexOf(size);
  frame.write(nonce, AT.nonce, "hex");
  return frame;
}

/** As long as the request, never longer, and to its sender. */
export function answerTo(request: Buffer): Buffer {
  const answer = Buffer.from(request);
  request.copy(answer, 0, AT.source, AT.protocol);
  request.copy(answer, AT.source, 0, AT.source);
  answer[AT.kind] = KINDS.indexOf("answer");
  return answer;
}

/** Undefined for what is no frame of ours. */
export function readFrame(frame: Buffer): OverlayFrame | undefined {
  if (frame.length < HEADER + SMALL || frame.readUInt16BE(AT.protocol) !== OVERLAY_PROTOCOL) return undefined;
  if (!frame.subarray(AT.magic, AT.kind).equals(MAGIC)) return undefined;
  const [kind, size] = [KINDS[frame[AT.kind]!], SIZES[frame[AT.size]!]];
  if (!kind || !size) return undefined;
  const nonce = frame.toString("hex", AT.nonce, AT.nonce + NONCE);
  return { kind, size, nonce, source: macAt(frame, AT.source), destination: macAt(frame, 0) };
}

function macAt(frame: Buffer, at: number): string {
  return [...frame.subarray(at, at + 6)].map((byte) => byte.toString(16).padStart(2, "0")).join(":");
}

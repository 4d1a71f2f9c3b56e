/** gRPC's own: a flag and the length before each message, over HTTP/2. */
const HEAD_BYTES = 5;

/** Codes of gRPC that our programs answer with, or act on. */
export const GRPC_STATUS = {
  ok: 0,
  unknown: 2,
  invalidArgument: 3,
  deadlineExceeded: 4,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  outOfRange: 11,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  unauthenticated: 16,
} as const;

export class GrpcError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export function frame(content: Buffer): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt32BE(content.length, 1);
  return Buffer.concat([head, content]);
}

/** Cuts what arrives into messages. Throws a `GrpcError` for what is longer than it may be, or compressed. */
export class FrameReader {
  readonly #longest: number;
  #parts: Buffer[] = [];
  #bytes = 0;

  constructor(longest: number) {
    this.#longest = longest;
  }

  /** Whether a message has begun and is not whole. */
  get isWithin(): boolean {
    return this.#bytes > 0;
  }

  take(part: Buffer): Buffer[] {
    this.#parts.push(part);
    this.#bytes += part.length;
    const messages: Buffer[] = [];
    for (let next = this.#next(); next !== undefined; next = this.#next()) messages.push(next);
    return messages;
  }

  #next(): Buffer | undefined {
    if (this.#bytes < HEAD_BYTES) return undefined;
    // Parts are joined when a message is whole, and not for each part: otherwise many small parts would be copied again and again.
    if ((this.#parts[0] as Buffer).length < HEAD_BYTES) this.#join();
    const [first] = this.#parts as [Buffer];
    const length = first.readUInt32BE(1);
    if (length > this.#longest)
      throw new GrpcError(GRPC_STATUS.resourceExhausted, `a message may have ${this.#longest} bytes, not ${length}`);
    if (first[0] !== 0) throw new GrpcError(GRPC_STATUS.unimplemented, "compressed messages are not read");
    const end = HEAD_BYTES + length;
    if (this.#bytes < end) return undefined;
    this.#join();
    const [whole] = this.#parts as [Buffer];
    this.#bytes -= end;
    this.#parts = this.#bytes > 0 ? [whole.subarray(end)] : [];
    return whole.subarray(HEAD_BYTES, end);
  }

  #join(): void {
    if (this.#parts.length > 1) this.#parts = [Buffer.concat(this.#parts)];
  }
}

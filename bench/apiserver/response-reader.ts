/** What a reader of HTTP/1.1 responses tells its owner, in this order: a head, pieces of the body, the end. */
interface Listener {
  head(status: number): void;
  /** Valid during the call only. */
  piece(bytes: Buffer): void;
  end(): void;
}

type State =
  | { at: "head"; seen: Buffer }
  | { at: "body"; left: number }
  | { at: "size"; seen: string }
  | { at: "chunk"; left: number }
  | { at: "chunkEnd"; left: number; last: boolean };

const HEAD_END = "\r\n\r\n";
const NOTHING = Buffer.alloc(0);

/** Cuts a stream of bytes into the answers of a server that keeps its connections: bodies with a length, and bodies in chunks. */
export class ResponseReader {
  readonly #listener: Listener;
  #state: State = { at: "head", seen: NOTHING };

  constructor(listener: Listener) {
    this.#listener = listener;
  }

  push(bytes: Buffer): void {
    let rest = bytes;
    while (rest.length > 0) rest = this.#step(this.#state, rest);
  }

  #step(state: State, bytes: Buffer): Buffer {
    switch (state.at) {
      case "head":
        return this.#head(state, bytes);
      case "size":
        return this.#size(state, bytes);
      case "body":
      case "chunk":
        return this.#piece(state, bytes);
      case "chunkEnd":
        return this.#chunkEnd(state, bytes);
    }
  }

  #head(state: State & { at: "head" }, bytes: Buffer): Buffer {
    const seen = state.seen.length === 0 ? bytes : Buffer.concat([state.seen, bytes]);
    const end = seen.indexOf(HEAD_END);
    if (end < 0) {
      state.seen = seen;
      return NOTHING;
    }
    const text = seen.toString("latin1", 0, end).toLowerCase();
    this.#listener.head(Number(text.slice(9, 12)));
    if (text.includes("\r\ntransfer-encoding: chunked")) this.#state = { at: "size", seen: "" };
    else this.#expect(Number(/\r\ncontent-length: (\d+)/.exec(text)?.[1] ?? 0));
    return seen.subarray(end + HEAD_END.length);
  }

  #expect(left: number): void {
    if (left > 0) this.#state = { at: "body", left };
    else this.#done();
  }

  #piece(state: State & { at: "body" | "chunk" }, bytes: Buffer): Buffer {
    const piece = bytes.length <= state.left ? bytes : bytes.subarray(0, state.left);
    state.left -= piece.length;
    this.#listener.piece(piece);
    if (state.left === 0) {
      if (state.at === "body") this.#done();
      else this.#state = { at: "chunkEnd", left: 2, last: false };
    }
    return bytes.subarray(piece.length);
  }

  #size(state: State & { at: "size" }, bytes: Buffer): Buffer {
    const end = bytes.indexOf("\n");
    state.seen += bytes.toString("latin1", 0, end < 0 ? bytes.length : end);
    if (end < 0) return NOTHING;
    const left = Number.parseInt(state.seen, 16);
    this.#state = left === 0 ? { at: "chunkEnd", left: 2, last: true } : { at: "chunk", left };
    return bytes.subarray(end + 1);
  }

  #chunkEnd(state: State & { at: "chunkEnd" }, bytes: Buffer): Buffer {
    const taken = Math.min(state.left, bytes.length);
    state.left -= taken;
    if (state.left === 0) {
      if (state.last) this.#done();
      else this.#state = { at: "size", seen: "" };
    }
    return bytes.subarray(taken);
  }

  #done(): void {
    this.#state = { at: "head", seen: NOTHING };
    this.#listener.end();
  }
}

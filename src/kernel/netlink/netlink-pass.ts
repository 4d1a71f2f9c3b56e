/**
 * Netlink read in place: a dump of a million entries, or as many events, must not become as many objects. Blocks where it reads a dump, so for a
 * thread of its own.
 */
import { kernelError } from "../errors.ts";
import { errnoName, type Fd, receive, send } from "../sys.ts";
import { FLAGS, HEADER } from "./netlink-message.ts";

const RECEIVE_BYTES = 1 << 18;
const MESSAGE = { error: 2, done: 3 } as const;

/** The body of one message: `bytes` from `at` to before `end`. Good only until the callback returns. */
export type OnBody = (bytes: Buffer, at: number, end: number) => void;

/** One socket, which is another's to open and to close. */
export class NetlinkPass {
  private readonly fd: Fd;
  private readonly buffer = Buffer.alloc(RECEIVE_BYTES);
  private sequence = 1;

  constructor(fd: Fd) {
    this.fd = fd;
  }

  /**
   * Whether it was whole: the kernel notes when what it dumps changed meanwhile. `onPart` runs after each piece has come and before its messages
   * are read.
   */
  dump(operation: string, type: number, body: Uint8Array, onBody: OnBody, onPart?: () => void): boolean {
    const sequence = this.sequence++;
    this.ask(operation, type, sequence, body);
    let whole = true;
    for (;;) {
      const length = this.wait(operation);
      onPart?.();
      for (let at = 0; at + HEADER <= length; ) {
        const size = this.buffer.readUInt32LE(at);
        if (size < HEADER || size > length - at) break;
        const ours = this.buffer.readUInt32LE(at + 8) === sequence;
        const kind = this.buffer.readUInt16LE(at + 4);
        if (ours && (this.buffer.readUInt16LE(at + 6) & FLAGS.interrupted) !== 0) whole = false;
        if (ours && (kind === MESSAGE.done || kind === MESSAGE.error)) {
          const answer = size >= HEADER + 4 ? this.buffer.readInt32LE(at + HEADER) : 0;
          if (answer < 0) throw kernelError(operation, errnoName(answer));
          return whole;
        }
        if (ours) onBody(this.buffer, at + HEADER, at + size);
        at += (size + 3) & ~3;
      }
    }
  }

  /** What has arrived unasked. False: the kernel had to drop some. */
  notifications(onBody: OnBody): boolean {
    let all = true;
    for (;;) {
      const length = receive(this.fd, this.buffer, "now");
      if (length < 0) {
        const errno = errnoName(length);
        if (errno === "EAGAIN") return all;
        if (errno === "ENOBUFS") all = false;
        else if (errno !== "EINTR") throw kernelError("netlink notifications", errno);
        continue;
      }
      for (let at = 0; at + HEADER <= length; ) {
        const size = this.buffer.readUInt32LE(at);
        if (size < HEADER || size > length - at) break;
        onBody(this.buffer, at + HEADER, at + size);
        at += (size + 3) & ~3;
      }
    }
  }

  private ask(operation: string, type: number, sequence: number, body: Uint8Array): void {
    const bytes = Buffer.alloc(HEADER + body.length);
    bytes.writeUInt32LE(bytes.length, 0);
    bytes.writeUInt16LE(type, 4);
    bytes.writeUInt16LE(FLAGS.dump | FLAGS.request, 6);
    bytes.writeUInt32LE(sequence, 8);
    bytes.set(body, HEADER);
    const sent = send(this.fd, bytes);
    if (sent < 0) throw kernelError(operation, errnoName(sent));
  }

  private wait(operation: string): number {
    for (;;) {
      const length = receive(this.fd, this.buffer);
      if (length >= 0) return length;
      if (errnoName(length) !== "EINTR") throw kernelError(operation, errnoName(length));
    }
  }
}

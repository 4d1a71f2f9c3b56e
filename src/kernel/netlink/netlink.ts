/** A netlink socket: requests that are answered, dumps, and the kernel's own words when it refuses. */
import { kernelError } from "../errors.ts";
import { bind, close, errnoName, type Fd, receive, send, sendAsync, setsockopt, socket } from "../sys.ts";
import { align, FLAGS, HEADER, type NetlinkMessage, parseMessages, readAttributes, textOf } from "./netlink-message.ts";

export const PROTOCOL = { route: 0, sockDiag: 4, netfilter: 12 } as const;

const AF_NETLINK = 16;
const SOCK_RAW = 3;
const SOL_SOCKET = 1;
const SO_RCVBUF_FORCE = 33;
const SOL_NETLINK = 270;
const OPTION = { capAck: 10, extendedAck: 11, strictCheck: 12 } as const;
const MESSAGE = { error: 2, done: 3 } as const;
const ACK_FLAGS = { capped: 0x100, attributes: 0x200 } as const;
const EIO = 5;
const RECEIVE_BYTES = 1 << 18;
/** A dump is cut short when what it shows changes meanwhile; under steady change the last one is as good as any. */
const DUMP_ATTEMPTS = 5;

/** Belongs for life to the network namespace the thread was in when it was opened. */
export class NetlinkSocket {
  readonly fd: Fd;
  private sequence = 1;
  private readonly buffer = Buffer.alloc(RECEIVE_BYTES);

  constructor(protocol: number, groups = 0) {
    this.fd = socket(AF_NETLINK, SOCK_RAW, protocol);
    const address = Buffer.alloc(12);
    address.writeUInt16LE(AF_NETLINK, 0);
    address.writeUInt32LE(groups, 8);
    bind(this.fd, address);
    // Old kernels know fewer of these. Without them errors say less and dumps give more; nothing breaks.
    for (const option of Object.values(OPTION)) setsockopt(this.fd, SOL_NETLINK, option, 1);
    setsockopt(this.fd, SOL_SOCKET, SO_RCVBUF_FORCE, 8 << 20);
  }

  /** Asks for a change, and returns when it is made. */
  request(operation: string, type: number, flags: number, ...body: Uint8Array[]): void {
    const { sequence, bytes } = this.message(type, flags | FLAGS.ack, body);
    this.sent(operation, send(this.fd, bytes));
    this.awaitAck(operation, sequence);
  }

  /** As `request`; the kernel does the work inside send(), which is done on another thread. One at a time per socket. */
  async requestAsync(operation: string, type: number, flags: number, ...body: Uint8Array[]): Promise<void> {
    const { sequence, bytes } = this.message(type, flags | FLAGS.ack, body);
    this.sent(operation, await sendAsync(this.fd, bytes));
    this.awaitAck(operation, sequence);
  }

  /** The one answer to a question. */
  query(operation: string, type: number, ...body: Uint8Array[]): NetlinkMessage {
    const { sequence, bytes } = this.message(type, 0, body);
    this.sent(operation, send(this.fd, bytes));
    for (;;) {
      for (const message of this.receive(operation)) {
        if (message.sequence !== sequence) continue;
        if (message.type === MESSAGE.error) throwError(operation, message);
        return { ...message, body: Buffer.from(message.body) };
      }
    }
  }

  dump(operation: string, type: number, ...body: Uint8Array[]): NetlinkMessage[] {
    for (let attempt = 1; ; attempt++) {
      const found: NetlinkMessage[] = [];
      const whole = [...this.dumpParts(operation, type, ...body)].map(
        (part) => found.push(...part.messages) && part.whole,
      );
      if (whole.every((part) => part) || attempt === DUMP_ATTEMPTS) return found;
    }
  }

  /** A dump in the pieces the kernel gives it in; between two of them, the caller may do something else, but not with this socket. */
  *dumpParts(
    operation: string,
    type: number,
    ...body: Uint8Array[]
  ): Generator<{ messages: NetlinkMessage[]; whole: boolean }> {
    const { sequence, bytes } = this.message(type, FLAGS.dump, body);
    this.sent(operation, send(this.fd, bytes));
    for (let done = false; !done; ) {
      const messages: NetlinkMessage[] = [];
      let whole = true;
      for (const message of this.receive(operation)) {
        if (message.sequence !== sequence) continue;
        if ((message.flags & FLAGS.interrupted) !== 0) whole = false;
        if (message.type === MESSAGE.error) throwError(operation, message);
        if (message.type === MESSAGE.done) {
          if (message.body.length >= 4 && message.body.readInt32LE(0) < 0) throwError(operation, message);
          done = true;
        } else messages.push({ ...message, body: Buffer.from(message.body) });
      }
      if (messages.length > 0 || !whole) yield { messages, whole };
    }
  }

  /** What has arrived unasked; "lost" when the kernel had to drop some. */
  notifications(): NetlinkMessage[] | "lost" {
    const found: NetlinkMessage[] = [];
    for (;;) {
      const length = receive(this.fd, this.buffer, "now");
      if (length < 0) {
        const errno = errnoName(length);
        if (errno === "EAGAIN" || errno === "EINTR") return found;
        if (errno === "ENOBUFS") return "lost";
        throw kernelError("netlink notifications", errno);
      }
      for (const message of parseMessages(this.buffer.subarray(0, length))) {
        found.push({ ...message, body: Buffer.from(message.body) });
      }
    }
  }

  close(): void {
    close(this.fd);
  }

  private message(type: number, flags: number, body: readonly Uint8Array[]): { sequence: number; bytes: Buffer } {
    const length = HEADER + body.reduce((sum, part) => sum + part.length, 0);
    const bytes = Buffer.alloc(align(length));
    const sequence = this.sequence++;
    bytes.writeUInt32LE(length, 0);
    bytes.writeUInt16LE(type, 4);
    bytes.writeUInt16LE(flags | FLAGS.request, 6);
    bytes.writeUInt32LE(sequence, 8);
    let at = HEADER;
    for (const part of body) {
      bytes.set(part, at);
      at += part.length;
    }
    return { sequence, bytes };
  }

  private sent(operation: string, result: number): void {
    if (result < 0) throw kernelError(operation, errnoName(result));
  }

  private awaitAck(operation: string, sequence: number): void {
    for (;;) {
      for (const message of this.receive(operation)) {
        if (message.sequence !== sequence || message.type !== MESSAGE.error) continue;
        if (message.body.length < 4 || message.body.readInt32LE(0) !== 0) throwError(operation, message);
        return;
      }
    }
  }

  private receive(operation: string): NetlinkMessage[] {
    for (;;) {
      const length = receive(this.fd, this.buffer);
      if (length >= 0) return [...parseMessages(this.buffer.subarray(0, length))];
      if (errnoName(length) !== "EINTR") throw kernelError(operation, errnoName(length));
    }
  }
}

function throwError(operation: string, message: NetlinkMessage): never {
  const { body, flags, type } = message;
  const errno = errnoName(body.length >= 4 ? body.readInt32LE(0) : -EIO);
  // Behind an error stands the request it is about, whole or only its header; the kernel's words stand behind that.
  const requestBytes = (flags & ACK_FLAGS.capped) !== 0 ? HEADER : align(body.length >= 8 ? body.readUInt32LE(4) : 0);
  const wordsAt = type === MESSAGE.done ? 4 : 4 + requestBytes;
  const words = (flags & ACK_FLAGS.attributes) !== 0 ? textOf(readAttributes(body, wordsAt).get(1)) : "";
  throw kernelError(operation, errno, words);
}

/** What nf_conntrack counts of each connection, read in one pass and without an object for each. */

import { NetlinkSocket, PROTOCOL } from "../netlink/netlink.ts";
import { AF_INET6 } from "../netlink/netlink-message.ts";
import { NetlinkPass } from "../netlink/netlink-pass.ts";
import { inside } from "../netns/netns.ts";
import type { Netns } from "../netns/netns-port.ts";
import { close, type Fd, setsockopt } from "../sys.ts";

const GET = (1 << 8) | 1;
/** Multicast group of connections that ended, as a bit. */
const ENDED = 1 << 2;
const SOL_SOCKET = 1;
const SO_RCVBUF_FORCE = 33;
/** An event takes a kilobyte of it: this is what arrives in two seconds of 30,000 connections each. */
const EVENT_BYTES = 64 << 20;
const TYPE_MASK = 0x3fff;
const ATTR = {
  original: 1,
  reply: 2,
  protocol: 4,
  mark: 8,
  countersOriginal: 9,
  countersReply: 10,
  id: 12,
  timestamp: 20,
} as const;
/** Of TCP: the last acknowledgement was seen, or a reset. The entry stays for a while. */
const TCP_STATES_CLOSED = new Set([7, 8]);
const ICMP = 1;
const ICMP6 = 58;
const ADDRESS = 16;

/** One connection. The reader fills the same one again and again: what is to be kept is copied. */
export class CountedConnection {
  /** The kernel's number of it, of 32 bits: some of a million share one. */
  id = 0;
  /**
   * Of the addresses and ports it was opened with, and of when, if the kernel notes that: another one with the same addresses and ports may get the
   * same number.
   */
  hash = 0;
  protocol = 0;
  /** Who opened it, who answers, and which address was asked for; IPv4 as `::ffff:a.b.c.d`. */
  readonly source = new Uint8Array(ADDRESS);
  readonly destination = new Uint8Array(ADDRESS);
  readonly asked = new Uint8Array(ADDRESS);
  sourcePort = 0;
  /** Of ICMP: type and code, as one number of 16 bits. */
  destinationPort = 0;
  askedPort = 0;
  mark = 0;
  /** TCP said goodbye; no more than late packets comes. */
  closed = false;
  packets = 0;
  bytes = 0;
  replyPackets = 0;
  replyBytes = 0;
}

/** Sockets of a namespace: to read entries with, and one where connections that ended are reported. */
export interface ConnectionSockets {
  readonly dump: Fd;
  readonly ended: Fd;
}

/** Opened in the thread that may enter namespaces; descriptors are the process's, so another thread may read. */
export function openConnectionSockets(netns?: Netns): ConnectionSockets & { close(): void } {
  const open = () => {
    const ended = new NetlinkSocket(PROTOCOL.netfilter, ENDED).fd;
    setsockopt(ended, SOL_SOCKET, SO_RCVBUF_FORCE, EVENT_BYTES);
    return { ended, dump: new NetlinkSocket(PROTOCOL.netfilter).fd };
  };
  const sockets = netns ? inside(netns.fd, open) : open();
  return {
    ...sockets,
    close: () => {
      close(sockets.dump);
      close(sockets.ended);
    },
  };
}

export class ConnectionReader {
  private readonly entries: NetlinkPass;
  private readonly events: NetlinkPass;
  private readonly one = new CountedConnection();

  constructor({ dump, ended }: ConnectionSockets) {
    this.entries = new NetlinkPass(dump);
    this.events = new NetlinkPass(ended);
  }

  /** `onPart`: the entries that come next were read from the table before it runs. */
  all(onConnection: (connection: CountedConnection) => void, onPart: () => void): void {
    const read = (bytes: Buffer, at: number, end: number) => {
      if (readConnection(bytes, at, end, this.one)) onConnection(this.one);
    };
    this.entries.dump("listing conntrack entries", GET, Buffer.alloc(4), read, onPart);
  }

  /** Connections that ended since it was asked last, with their last counts. False: the kernel had to drop some. */
  ended(onConnection: (connection: CountedConnection) => void): boolean {
    return this.events.notifications((bytes, at, end) => {
      if (readConnection(bytes, at, end, this.one)) onConnection(this.one);
    });
  }
}

/** Whether it is one with addresses of a family we know. */
function readConnection(bytes: Buffer, from: number, end: number, into: CountedConnection): boolean {
  const family = bytes[from]!;
  into.mark = 0;
  into.closed = false;
  into.packets = into.bytes = into.replyPackets = into.replyBytes = 0;
  let [hasOriginal, hasReply] = [false, false];
  into.hash = HASH_BASIS;
  for (let at = from + 4; at + 4 <= end; ) {
    const length = bytes.readUInt16LE(at);
    if (length < 4) break;
    const last = at + length;
    switch (bytes.readUInt16LE(at + 2) & TYPE_MASK) {
      case ATTR.original:
        into.hash = hashOf(into.hash, bytes, at + 4, last);
        hasOriginal = readTuple(bytes, at + 4, last, family, into, "original");
        break;
      case ATTR.reply:
        hasReply = readTuple(bytes, at + 4, last, family, into, "reply");
        break;
      case ATTR.protocol:
        into.closed = TCP_STATES_CLOSED.has(tcpState(bytes, at + 4, last));
        break;
      case ATTR.mark:
        into.mark = bytes.readUInt32BE(at + 4);
        break;
      case ATTR.id:
        into.id = bytes.readUInt32BE(at + 4);
        break;
      case ATTR.timestamp:
        // Only when it began: an event has also when it ended.
        into.hash = hashOf(into.hash, bytes, at + 8, at + 16);
        break;
      case ATTR.countersOriginal:
        into.packets = counter(bytes, at + 4, last, 1);
        into.bytes = counter(bytes, at + 4, last, 2);
        break;
      case ATTR.countersReply:
        into.replyPackets = counter(bytes, at + 4, last, 1);
        into.replyBytes = counter(bytes, at + 4, last, 2);
        break;
    }
    at += (length + 3) & ~3;
  }
  return hasOriginal && hasReply;
}

/** 0: it is not TCP. The state is the first attribute of those of TCP. */
function tcpState(bytes: Buffer, from: number, end: number): number {
  const [protocol, state] = [from, from + 4];
  if (state + 5 > end || (bytes.readUInt16LE(protocol + 2) & TYPE_MASK) !== 1) return 0;
  return (bytes.readUInt16LE(state + 2) & TYPE_MASK) === 1 ? bytes[state + 4]! : 0;
}

const HASH_BASIS = 0x811c9dc5;

/** FNV: it only distinguishes connections that share a number, and must be the same in every life of the agent. */
function hashOf(before: number, bytes: Buffer, from: number, end: number): number {
  let hash = before;
  for (let at = from; at < end; at++) hash = Math.imul(hash ^ bytes[at]!, 0x01000193);
  return hash >>> 0;
}

/** A number of 64 bits. More than 2^53 packets or bytes of one connection would take a century. */
function counter(bytes: Buffer, from: number, end: number, type: number): number {
  for (let at = from; at + 12 <= end; ) {
    const length = bytes.readUInt16LE(at);
    if (length < 4) break;
    if ((bytes.readUInt16LE(at + 2) & TYPE_MASK) === type) {
      return bytes.readUInt32BE(at + 4) * 0x1_0000_0000 + bytes.readUInt32BE(at + 8);
    }
    at += (length + 3) & ~3;
  }
  return 0;
}

function readTuple(
  bytes: Buffer,
  from: number,
  end: number,
  family: number,
  into: CountedConnection,
  which: "original" | "reply",
): boolean {
  let found = false;
  for (let at = from; at + 4 <= end; ) {
    const length = bytes.readUInt16LE(at);
    if (length < 4) break;
    const type = bytes.readUInt16LE(at + 2) & TYPE_MASK;
    if (type === 1) found = readAddresses(bytes, at + 4, at + length, family, into, which);
    else if (type === 2) readPorts(bytes, at + 4, at + length, into, which);
    at += (length + 3) & ~3;
  }
  return found;
}

function readAddresses(
  bytes: Buffer,
  from: number,
  end: number,
  family: number,
  into: CountedConnection,
  which: "original" | "reply",
): boolean {
  const size = family === AF_INET6 ? 16 : 4;
  for (let at = from; at + 4 + size <= end; ) {
    const length = bytes.readUInt16LE(at);
    const type = bytes.readUInt16LE(at + 2) & TYPE_MASK;
    if (length !== 4 + size || type < 1 || type > 4) return false;
    const isSource = type === 1 || type === 3;
    // The source of replies is who answers; their destination says nothing that is counted by.
    if (which === "original") copyAddress(bytes, at + 4, size, isSource ? into.source : into.asked);
    else if (isSource) copyAddress(bytes, at + 4, size, into.destination);
    at += (length + 3) & ~3;
  }
  return true;
}

function copyAddress(bytes: Buffer, at: number, size: number, into: Uint8Array): void {
  const before = ADDRESS - size;
  if (before > 0) {
    into.fill(0, 0, 10);
    into[10] = into[11] = 0xff;
  }
  for (let index = 0; index < size; index++) into[before + index] = bytes[at + index]!;
}

function readPorts(
  bytes: Buffer,
  from: number,
  end: number,
  into: CountedConnection,
  which: "original" | "reply",
): void {
  let [protocol, source, destination, icmpType, icmpCode] = [0, 0, 0, 0, 0];
  for (let at = from; at + 5 <= end; ) {
    const length = bytes.readUInt16LE(at);
    if (length < 4) break;
    const type = bytes.readUInt16LE(at + 2) & TYPE_MASK;
    if (type === 1) protocol = bytes[at + 4]!;
    else if (type === 2) source = bytes.readUInt16BE(at + 4);
    else if (type === 3) destination = bytes.readUInt16BE(at + 4);
    else if (type === 5 || type === 8) icmpType = bytes[at + 4]!;
    else if (type === 6 || type === 9) icmpCode = bytes[at + 4]!;
    at += (length + 3) & ~3;
  }
  const isIcmp = protocol === ICMP || protocol === ICMP6;
  if (which === "original") {
    into.protocol = protocol;
    into.sourcePort = isIcmp ? 0 : source;
    into.askedPort = isIcmp ? (icmpType << 8) | icmpCode : destination;
    if (isIcmp) into.destinationPort = into.askedPort;
  } else if (!isIcmp) into.destinationPort = source;
}

/** Counters of the elements of a set, read in one pass: nft's JSON of 65,000 elements takes 20 MB. */
import { errnoOf } from "../errors.ts";
import { attribute } from "../netlink/netlink-message.ts";
import { NetlinkPass } from "../netlink/netlink-pass.ts";
import type { Fd } from "../sys.ts";

const GET_ELEMENTS = (10 << 8) | 13;
const NFPROTO_INET = 1;
const REQUEST = { table: 1, set: 2 } as const;
const TYPE_MASK = 0x3fff;
const [LIST, ELEMENT, KEY, EXPRESSION, EXPRESSIONS] = [3, 1, 1, 7, 11] as const;
const VALUE = 1;
const EXPRESSION_DATA = 2;
const COUNTER = { bytes: 1, packets: 2 } as const;

/** `key` is a view that is good only until the callback returns. */
export type OnElement = (key: Uint8Array, packets: number, bytes: number) => void;

export class SetReader {
  private readonly pass: NetlinkPass;

  /** Any socket of nfnetlink will do, also one that reads conntrack entries. */
  constructor(fd: Fd) {
    this.pass = new NetlinkPass(fd);
  }

  /** Whether all of it was read: not while rules change. A set that is not there has no elements. */
  elements(table: string, set: string, onElement: OnElement): boolean {
    const names = [
      attribute(REQUEST.table, Buffer.from(`${table}\0`)),
      attribute(REQUEST.set, Buffer.from(`${set}\0`)),
    ];
    const question = Buffer.concat([Buffer.from([NFPROTO_INET, 0, 0, 0]), ...names]);
    try {
      return this.pass.dump(`elements of set ${set}`, GET_ELEMENTS, question, (bytes, at, end) => {
        each(bytes, at + 4, end, (type, from, to) => {
          if (type === LIST)
            each(bytes, from, to, (kind, first, last) => {
              if (kind === ELEMENT) readElement(bytes, first, last, onElement);
            });
        });
      });
    } catch (error) {
      const errno = errnoOf(error);
      if (errno === "ENOENT") return true;
      if (errno === "EINTR") return false;
      throw error;
    }
  }
}

function readElement(bytes: Buffer, at: number, end: number, onElement: OnElement): void {
  let key: Uint8Array | undefined;
  let [packets, octets] = [0, 0];
  const counter = (from: number, to: number) =>
    each(bytes, from, to, (type, first, last) => {
      if (type !== EXPRESSION_DATA) return;
      each(bytes, first, last, (what, number) => {
        const value = () => bytes.readUInt32BE(number) * 0x1_0000_0000 + bytes.readUInt32BE(number + 4);
        if (what === COUNTER.packets) packets = value();
        else if (what === COUNTER.bytes) octets = value();
      });
    });
  each(bytes, at, end, (type, from, to) => {
    if (type === KEY)
      each(bytes, from, to, (kind, first, last) => {
        if (kind === VALUE) key = bytes.subarray(first, last);
      });
    else if (type === EXPRESSION) counter(from, to);
    else if (type === EXPRESSIONS) each(bytes, from, to, (_, first, last) => counter(first, last));
  });
  if (key) onElement(key, packets, octets);
}

function each(bytes: Buffer, from: number, end: number, on: (type: number, at: number, end: number) => void): void {
  for (let at = from; at + 4 <= end; ) {
    const length = bytes.readUInt16LE(at);
    if (length < 4) return;
    on(bytes.readUInt16LE(at + 2) & TYPE_MASK, at + 4, at + length);
    at += (length + 3) & ~3;
  }
}

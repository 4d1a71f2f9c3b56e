import { setImmediate as nextTurn } from "node:timers/promises";
import { errnoOf } from "../errors.ts";
import { NetlinkSocket, PROTOCOL } from "../netlink/netlink.ts";
import {
  AF_INET,
  AF_INET6,
  addressBytes,
  attribute,
  FLAGS,
  NESTED,
  nested,
  readAttributes,
  u8,
  u16be,
  u32be,
} from "../netlink/netlink-message.ts";
import { inside } from "../netns/netns.ts";
import type { Netns } from "../netns/netns-port.ts";
import { ATTR, encodeTuple, inverse, readEntry } from "./conntrack-message.ts";
import {
  type ConntrackPort,
  type ConntrackTuple,
  type Endpoint,
  type NewConntrackEntry,
  TCP_STATES,
} from "./conntrack-port.ts";

const SUBSYSTEM = 1 << 8;
const MESSAGE = { set: SUBSYSTEM, get: SUBSYSTEM | 1, remove: SUBSYSTEM | 2, fill: SUBSYSTEM | 5 } as const;
const FILL = { entries: 1, max: 2 } as const;
const TCP = 6;
const NAT = { v4Min: 1, v4Max: 2, ports: 3, v6Min: 4, v6Max: 5 } as const;
const NAT_PORTS = { min: 1, max: 2 } as const;
const TCP_INFO = { state: 1, flagsOriginal: 4, flagsReply: 5 } as const;
/** Packets outside the window the kernel remembers are fine: of a flow it did not watch it remembers none. */
const LIBERAL = 0x08;
const STATUS = { seenReply: 0x02, assured: 0x04, confirmed: 0x08 } as const;

/** Of a namespace, or of the one this thread is in. */
export function realConntrack(netns?: Netns): ConntrackPort {
  const open = () => new NetlinkSocket(PROTOCOL.netfilter);
  const openThere = () => (netns ? inside(netns.fd, open) : open());
  const socket = openThere();
  return {
    fill: () => {
      const { body } = socket.query("size of conntrack", MESSAGE.fill, header(0));
      const attributes = readAttributes(body.subarray(header(0).length));
      return {
        entries: attributes.get(FILL.entries)?.readUInt32BE() ?? 0,
        max: attributes.get(FILL.max)?.readUInt32BE(),
      };
    },
    list: async ({ family, mark, markMask = 0xffff_ffff } = {}) => {
      // A socket of its own: others may ask something between two pieces.
      const own = openThere();
      try {
        const found = [];
        const families = family === undefined ? [0] : [family === 4 ? AF_INET : AF_INET6];
        for (const number of families) {
          const filter = mark === undefined ? [] : [u32be(ATTR.mark, mark), u32be(ATTR.markMask, markMask)];
          for (const { messages } of own.dumpParts(
            "listing conntrack entries",
            MESSAGE.get,
            header(number),
            ...filter,
          )) {
            found.push(...messages.map(readEntry));
            await nextTurn();
          }
        }
        return found.filter((flow) => mark === undefined || (flow.mark & markMask) >>> 0 === mark);
      } finally {
        own.close();
      }
    },
    find: (packets) => ifThere(() => readEntry(socket.query("flow", MESSAGE.get, ...identify(packets)))),
    insert: (flow) =>
      socket.request("inserting a conntrack entry", MESSAGE.set, FLAGS.create | FLAGS.exclusive, ...encodeNew(flow)),
    update: (packets, { mark, timeout }) => {
      const changes = [
        ...(mark === undefined ? [] : [u32be(ATTR.mark, mark)]),
        ...(timeout === undefined ? [] : [u32be(ATTR.timeout, timeout)]),
      ];
      return (
        ifThere(
          () => socket.request("updating a conntrack entry", MESSAGE.set, 0, ...identify(packets), ...changes) ?? true,
        ) ?? false
      );
    },
    delete: (packets) =>
      ifThere(() => socket.request("deleting a conntrack entry", MESSAGE.remove, 0, ...identify(packets)) ?? true) ??
      false,
    close: () => socket.close(),
  };
}

function ifThere<T>(act: () => T): T | undefined {
  try {
    return act();
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

function header(family: number): Buffer {
  return Buffer.from([family, 0, 0, 0]);
}

function identify(packets: ConntrackTuple): Buffer[] {
  return [header(addressBytes(packets.source).family), encodeTuple(ATTR.original, packets)];
}

function encodeNew(flow: NewConntrackEntry): Buffer[] {
  const { original } = flow;
  const parts = [
    ...identify(original),
    // The plain reverse, never the translated one: the kernel derives that from the addresses to translate to, and marks the flow.
    encodeTuple(ATTR.reply, inverse(original)),
    u32be(ATTR.timeout, flow.timeout),
    u32be(ATTR.status, STATUS.confirmed | STATUS.seenReply | STATUS.assured),
  ];
  if (flow.mark !== undefined) parts.push(u32be(ATTR.mark, flow.mark));
  if (flow.destinationNat || flow.sourceNat) {
    // Both, also the one that stays as it is: left to itself, the kernel takes another port where answers are another flow's already.
    const { source, sourcePort, destination, destinationPort } = original;
    const unchanged = {
      source: { address: source, port: sourcePort },
      destination: { address: destination, port: destinationPort },
    };
    parts.push(encodeNat(ATTR.destinationNat, flow.destinationNat ?? unchanged.destination));
    parts.push(encodeNat(ATTR.sourceNat, flow.sourceNat ?? unchanged.source));
  }
  if (original.protocol === TCP) parts.push(encodeTcp(TCP_STATES.indexOf(flow.tcpState ?? "established")));
  return parts;
}

function encodeNat(type: number, { address, port }: Endpoint): Buffer {
  const { family, bytes } = addressBytes(address);
  const [min, max] = family === AF_INET ? [NAT.v4Min, NAT.v4Max] : [NAT.v6Min, NAT.v6Max];
  const ports = nested(NAT.ports | NESTED, u16be(NAT_PORTS.min, port), u16be(NAT_PORTS.max, port));
  return nested(type | NESTED, attribute(min, bytes), attribute(max, bytes), ports);
}

function encodeTcp(state: number): Buffer {
  const flags = Buffer.from([LIBERAL, LIBERAL]);
  const tcp = [
    u8(TCP_INFO.state, state),
    attribute(TCP_INFO.flagsOriginal, flags),
    attribute(TCP_INFO.flagsReply, flags),
  ];
  return nested(ATTR.protocolInfo | NESTED, nested(1 | NESTED, ...tcp));
}

import { errnoOf } from "../errors.ts";
import { NetlinkSocket, PROTOCOL } from "../netlink/netlink.ts";
import {
  AF_INET,
  AF_INET6,
  addressBytes,
  addressText,
  type NetlinkMessage,
  reader,
} from "../netlink/netlink-message.ts";
import { inside } from "../netns/netns.ts";
import type { Netns } from "../netns/netns-port.ts";
import type { OpenSocket, SocketsPort } from "./sockets-port.ts";

const MESSAGE = { byFamily: 20, destroy: 21 } as const;
const PROTOCOLS = { tcp: 6, udp: 17 } as const;
/** As bits: established, the two handshake states, the closing ones that still carry data. Of UDP only the first means anything. */
const CONNECTED = (1 << 1) | (1 << 2) | (1 << 3) | (1 << 4) | (1 << 5) | (1 << 8) | (1 << 9) | (1 << 11);
const REQUEST_BYTES = 56;
/** Where the 48 bytes that name a socket are, in questions and answers. */
const ID = { inRequest: 8, inAnswer: 4, length: 48, cookie: 40 } as const;

interface Found extends OpenSocket {
  readonly family: number;
  readonly id: Buffer;
}

/** Of a namespace, or of the one this thread is in. */
export function realSockets(netns?: Netns): SocketsPort {
  const open = () => new NetlinkSocket(PROTOCOL.sockDiag);
  const socket = netns ? inside(netns.fd, open) : open();
  const list = (protocol: "tcp" | "udp", family: number) =>
    socket
      .dump("listing sockets", MESSAGE.byFamily, request(family, protocol))
      .map((message) => ({ protocol, ...readId(message) }));
  return {
    connected: (protocol, family) =>
      list(protocol, family === 4 ? AF_INET : AF_INET6)
        .filter(({ destinationPort }) => destinationPort !== 0)
        .map(({ id: _id, family: _family, ...found }) => found),
    destroy: (selection) => {
      const { family } = addressBytes(selection.destination);
      // A socket of IPv6 may be connected to an IPv4 address; it is listed under IPv6.
      const families = family === AF_INET ? [AF_INET, AF_INET6] : [AF_INET6];
      const chosen = families
        .flatMap((number) => list(selection.protocol, number))
        .filter((found) => {
          const { destination, destinationPort, cookies } = selection;
          if (cookies && !cookies.has(found.cookie)) return false;
          const sameAddress = [destination, `::ffff:${destination}`, mapped(destination)].includes(found.destination);
          return sameAddress && (destinationPort === undefined || found.destinationPort === destinationPort);
        });
      return chosen.filter((found) => destroyed(socket, found)).length;
    },
    close: () => socket.close(),
  };
}

/** How our own formatting writes an IPv4 address inside IPv6. */
function mapped(address: string): string {
  const { family, bytes } = addressBytes(address);
  if (family !== AF_INET) return address;
  return addressText(Buffer.concat([Buffer.alloc(10), Buffer.from([0xff, 0xff]), bytes]));
}

function request(family: number, protocol: "tcp" | "udp", id?: Buffer): Buffer {
  const bytes = Buffer.alloc(REQUEST_BYTES);
  bytes.writeUInt8(family, 0);
  bytes.writeUInt8(PROTOCOLS[protocol], 1);
  bytes.writeUInt32LE(CONNECTED, 4);
  if (id) bytes.set(id, ID.inRequest);
  return bytes;
}

const readId = reader("a socket", ({ body }: NetlinkMessage): Omit<Found, "protocol"> => {
  const family = body.readUInt8(0);
  const id = Buffer.from(body.subarray(ID.inAnswer, ID.inAnswer + ID.length));
  const length = family === AF_INET ? 4 : 16;
  return {
    family,
    id,
    cookie: id.readBigUInt64LE(ID.cookie),
    sourcePort: id.readUInt16BE(0),
    destinationPort: id.readUInt16BE(2),
    source: addressText(id.subarray(4, 4 + length)),
    destination: addressText(id.subarray(20, 20 + length)),
  };
});

function destroyed(socket: NetlinkSocket, found: Found): boolean {
  try {
    socket.request("closing a socket", MESSAGE.destroy, 0, request(found.family, found.protocol, found.id));
    return true;
  } catch (error) {
    // It closed by itself meanwhile.
    if (errnoOf(error) === "ENOENT") return false;
    throw error;
  }
}

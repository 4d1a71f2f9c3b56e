/** Two tables of one message: neighbours (an address's MAC) and, for tunnels and bridges, forwarding (a MAC's address). */
import { errnoOf } from "../errors.ts";
import type { NetlinkSocket } from "./netlink.ts";
import {
  addressBytes,
  addressText,
  attribute,
  FLAGS,
  macBytes,
  macText,
  type NetlinkMessage,
  readAttributes,
  reader,
} from "./netlink-message.ts";
import type { ForwardingEntry, Neighbour, NetlinkPort } from "./netlink-port.ts";

export const NEIGHBOUR_MESSAGE = { set: 28, remove: 29, get: 30 } as const;
const ATTR = { address: 1, mac: 2 } as const;
const AF_BRIDGE = 7;
const STATE = { reachable: 0x02, stale: 0x04, failed: 0x20, noArp: 0x40, permanent: 0x80 } as const;
/** The entry is the device's own, not its bridge's. */
const SELF = 0x02;

type NeighbourPart = Pick<
  NetlinkPort,
  "neighbours" | "replaceNeighbour" | "deleteNeighbour" | "forwarding" | "replaceForwarding" | "deleteForwarding"
>;

export function neighboursOn(socket: NetlinkSocket): NeighbourPart {
  const list = (family: number) =>
    socket.dump("listing neighbours", NEIGHBOUR_MESSAGE.get, header(family, 0, 0, 0)).filter(({ body }) => {
      const isForwarding = body.readUInt8(0) === AF_BRIDGE;
      return isForwarding === (family === AF_BRIDGE);
    });
  const set = (operation: string, parts: Buffer[]) =>
    socket.request(operation, NEIGHBOUR_MESSAGE.set, FLAGS.create | FLAGS.replace, ...parts);
  const remove = (operation: string, parts: Buffer[]) => {
    try {
      socket.request(operation, NEIGHBOUR_MESSAGE.remove, 0, ...parts);
      return true;
    } catch (error) {
      if (["ENOENT", "ENODEV", "ENXIO"].includes(errnoOf(error) ?? "")) return false;
      throw error;
    }
  };
  return {
    neighbours: () => list(0).filter(isForPeople).map(readNeighbour),
    replaceNeighbour: ({ device, address, mac }) =>
      set(`neighbour ${address}`, [...encode(device, address), attribute(ATTR.mac, macBytes(mac))]),
    deleteNeighbour: ({ device, address }) => remove(`deleting neighbour ${address}`, encode(device, address)),
    forwarding: () => list(AF_BRIDGE).flatMap(readForwarding),
    replaceForwarding: (entry) => set(`forwarding of ${entry.mac}`, encodeForwarding(entry)),
    deleteForwarding: (entry) => remove(`deleting forwarding of ${entry.mac}`, encodeForwarding(entry)),
  };
}

function header(family: number, device: number, state: number, flags: number): Buffer {
  const bytes = Buffer.alloc(12);
  bytes.writeUInt8(family, 0);
  bytes.writeInt32LE(device, 4);
  bytes.writeUInt16LE(state, 8);
  bytes.writeUInt8(flags, 10);
  return bytes;
}

function encode(device: number, address: string): Buffer[] {
  const { family, bytes } = addressBytes(address);
  return [header(family, device, STATE.permanent, 0), attribute(ATTR.address, bytes)];
}

function encodeForwarding({ device, mac, destination }: ForwardingEntry): Buffer[] {
  return [
    header(AF_BRIDGE, device, STATE.permanent, SELF),
    attribute(ATTR.mac, macBytes(mac)),
    attribute(ATTR.address, addressBytes(destination).bytes),
  ];
}

/** Multicast and loopback entries, which are no neighbours. */
export function isForPeople({ body }: NetlinkMessage): boolean {
  return body.length >= 12 && body.readUInt8(0) !== AF_BRIDGE && (body.readUInt16LE(8) & STATE.noArp) === 0;
}

export const readNeighbour = reader("a neighbour", ({ body }: NetlinkMessage): Neighbour => {
  const attributes = readAttributes(body, 12);
  const address = attributes.get(ATTR.address);
  return {
    device: body.readInt32LE(4),
    address: address ? addressText(address) : "",
    mac: macText(attributes.get(ATTR.mac)),
    state: stateOf(body.readUInt16LE(8)),
  };
});

function stateOf(bits: number): Neighbour["state"] {
  const names = ["permanent", "reachable", "stale", "failed"] as const;
  return names.find((name) => (bits & STATE[name]) !== 0) ?? "other";
}

/** Entries without a destination are about ports of a bridge, not about tunnels. */
function readForwarding({ body }: NetlinkMessage): ForwardingEntry[] {
  const attributes = readAttributes(body, 12);
  const [mac, destination] = [macText(attributes.get(ATTR.mac)), attributes.get(ATTR.address)];
  return mac && destination ? [{ device: body.readInt32LE(4), mac, destination: addressText(destination) }] : [];
}

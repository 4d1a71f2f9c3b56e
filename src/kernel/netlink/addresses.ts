import { errnoOf } from "../errors.ts";
import type { NetlinkSocket } from "./netlink.ts";
import {
  addressText,
  attribute,
  FLAGS,
  interfaceAddressBytes,
  type NetlinkMessage,
  readAttributes,
  reader,
  u32,
} from "./netlink-message.ts";
import type { InterfaceAddress, NetlinkPort } from "./netlink-port.ts";

export const ADDRESS_MESSAGE = { set: 20, remove: 21, get: 22 } as const;
const ATTR = { address: 1, local: 2, flags: 8 } as const;
/** Our addresses are unique: duplicate address detection would delay every pod by a second. */
const NO_DUPLICATE_DETECTION = 0x02;

type AddressPart = Pick<NetlinkPort, "addresses" | "addAddress" | "deleteAddress">;

export function addressesOn(socket: NetlinkSocket): AddressPart {
  return {
    addresses: () => socket.dump("listing addresses", ADDRESS_MESSAGE.get, Buffer.alloc(8)).map(readAddress),
    addAddress: (address) =>
      socket.request(
        `adding address ${address.address}`,
        ADDRESS_MESSAGE.set,
        FLAGS.create | FLAGS.replace,
        ...encode(address, true),
      ),
    deleteAddress: (address) => {
      try {
        socket.request(`deleting address ${address.address}`, ADDRESS_MESSAGE.remove, 0, ...encode(address, false));
        return true;
      } catch (error) {
        if (["EADDRNOTAVAIL", "ENODEV"].includes(errnoOf(error) ?? "")) return false;
        throw error;
      }
    },
  };
}

function encode({ device, address }: InterfaceAddress, isNew: boolean): Buffer[] {
  const { family, bytes, length } = interfaceAddressBytes(address);
  const header = Buffer.alloc(8);
  header.writeUInt8(family, 0);
  header.writeUInt8(length, 1);
  header.writeUInt32LE(device, 4);
  const flags = isNew ? [u32(ATTR.flags, NO_DUPLICATE_DETECTION)] : [];
  return [header, attribute(ATTR.local, bytes), attribute(ATTR.address, bytes), ...flags];
}

export const readAddress = reader("an address", ({ body }: NetlinkMessage): InterfaceAddress => {
  const attributes = readAttributes(body, 8);
  // On a point-to-point link `address` is the other side's; `local` is ours wherever both are given.
  const bytes = attributes.get(ATTR.local) ?? attributes.get(ATTR.address) ?? Buffer.alloc(4);
  return { device: body.readUInt32LE(4), address: `${addressText(bytes)}/${body.readUInt8(1)}` };
});

import { errnoOf } from "../errors.ts";
import type { NetlinkSocket } from "./netlink.ts";
import {
  AF_INET,
  type Attributes,
  addressBytes,
  addressText,
  attribute,
  FLAGS,
  macBytes,
  macText,
  type NetlinkMessage,
  nested,
  readAttributes,
  reader,
  text,
  textOf,
  u8,
  u16be,
  u32,
} from "./netlink-message.ts";
import type {
  IpipSettings,
  IpipSpec,
  Link,
  LinkChange,
  NetlinkPort,
  VethSpec,
  VxlanSettings,
  VxlanSpec,
} from "./netlink-port.ts";

export const LINK_MESSAGE = { set: 16, remove: 17, get: 18 } as const;

const ATTR = { mac: 1, name: 3, mtu: 4, link: 5, master: 10, info: 18, netnsFd: 28, protocolSettings: 26 } as const;
const INFO = { kind: 1, data: 2 } as const;
const VETH_PEER = 1;
const VXLAN = { vni: 1, device: 3, local: 4, learning: 7, port: 15, local6: 17 } as const;
const IPIP = { local: 2, remote: 3 } as const;
/** Inside the settings of IPv6: how link-local addresses are made. */
const INET6_ADDRESS_MODE = 8;
const ADDRESS_MODES = { eui64: 0, none: 1 } as const;
const AF_INET6 = 10;
const UP = 1;

type LinkPart = Pick<
  NetlinkPort,
  "links" | "link" | "addVeth" | "addVxlan" | "addIpip" | "addBridge" | "changeLink" | "deleteLink"
>;

/** `another` opens one more socket in the same namespace: what is done on another thread must not share one with us. */
export function linksOn(socket: NetlinkSocket, another: () => NetlinkSocket): LinkPart {
  const add = (name: string, ...attributes: Buffer[]) =>
    socket.request(
      `adding link ${name}`,
      LINK_MESSAGE.set,
      FLAGS.create | FLAGS.exclusive,
      linkHeader(0),
      text(ATTR.name, name),
      ...attributes,
    );
  return {
    links: () => socket.dump("listing links", LINK_MESSAGE.get, linkHeader(0)).map(readLink),
    link: (name) => findLink(socket, name),
    addVeth: (spec) => add(spec.name, ...common(spec), vethInfo(spec)),
    addVxlan: (spec) => add(spec.name, ...common(spec), vxlanInfo(spec)),
    addIpip: (spec) => add(spec.name, ...common(spec), ipipInfo(spec)),
    addBridge: (name) => add(name, nested(ATTR.info, text(INFO.kind, "bridge"))),
    changeLink: (index, change) => {
      const flags = change.up === undefined ? 0 : UP;
      const header = linkHeader(index, change.up ? UP : 0, flags);
      socket.request(`changing link ${index}`, LINK_MESSAGE.set, 0, header, ...changes(change));
    },
    deleteLink: async (index) => {
      const own = another();
      try {
        await own.requestAsync(`deleting link ${index}`, LINK_MESSAGE.remove, 0, linkHeader(index));
        return true;
      } catch (error) {
        if (errnoOf(error) === "ENODEV") return false;
        throw error;
      } finally {
        own.close();
      }
    },
  };
}

function findLink(socket: NetlinkSocket, name: string): Link | undefined {
  try {
    return readLink(socket.query(`link ${name}`, LINK_MESSAGE.get, linkHeader(0), text(ATTR.name, name)));
  } catch (error) {
    if (errnoOf(error) === "ENODEV") return undefined;
    throw error;
  }
}

function linkHeader(index: number, flags = 0, changed = 0): Buffer {
  const bytes = Buffer.alloc(16);
  bytes.writeInt32LE(index, 4);
  bytes.writeUInt32LE(flags, 8);
  bytes.writeUInt32LE(changed, 12);
  return bytes;
}

function common({ mac, mtu }: { mac?: string; mtu?: number }): Buffer[] {
  return [
    ...(mac === undefined ? [] : [attribute(ATTR.mac, macBytes(mac))]),
    ...(mtu === undefined ? [] : [u32(ATTR.mtu, mtu)]),
  ];
}

/** The other end is described by a link message of its own, and made where it belongs: it never is in our namespace, not even briefly. */
function vethInfo({ peer }: VethSpec): Buffer {
  const description = [linkHeader(0), text(ATTR.name, peer.name), ...common(peer)];
  if (peer.netns) description.push(u32(ATTR.netnsFd, peer.netns.fd));
  return nested(ATTR.info, text(INFO.kind, "veth"), nested(INFO.data, nested(VETH_PEER, ...description)));
}

function vxlanInfo(spec: VxlanSpec): Buffer {
  const data = [u32(VXLAN.vni, spec.vni), u16be(VXLAN.port, spec.port), u8(VXLAN.learning, spec.learning ? 1 : 0)];
  if (spec.device !== undefined) data.push(u32(VXLAN.device, spec.device));
  if (spec.local !== undefined) {
    const { family, bytes } = addressBytes(spec.local);
    data.push(attribute(family === AF_INET ? VXLAN.local : VXLAN.local6, bytes));
  }
  return nested(ATTR.info, text(INFO.kind, "vxlan"), nested(INFO.data, ...data));
}

function ipipInfo({ local }: IpipSpec): Buffer {
  const data = nested(INFO.data, attribute(IPIP.local, addressBytes(local).bytes));
  return nested(ATTR.info, text(INFO.kind, "ipip"), data);
}

function changes(change: LinkChange): Buffer[] {
  const made = common(change);
  if (change.name !== undefined) made.push(text(ATTR.name, change.name));
  if (change.master !== undefined) made.push(u32(ATTR.master, change.master));
  if (change.netns !== undefined) made.push(u32(ATTR.netnsFd, change.netns.fd));
  if (change.linkLocal !== undefined) {
    const mode = u8(INET6_ADDRESS_MODE, ADDRESS_MODES[change.linkLocal]);
    made.push(nested(ATTR.protocolSettings, nested(AF_INET6, mode)));
  }
  return made;
}

export const readLink = reader("a link", ({ body }: NetlinkMessage): Link => {
  const attributes = readAttributes(body, 16);
  const info = readAttributes(attributes.get(ATTR.info) ?? Buffer.alloc(0));
  const kind = info.has(INFO.kind) ? textOf(info.get(INFO.kind)) : undefined;
  const data = info.get(INFO.data);
  return {
    index: body.readInt32LE(4),
    name: textOf(attributes.get(ATTR.name)),
    kind,
    mac: macText(attributes.get(ATTR.mac)),
    mtu: attributes.get(ATTR.mtu)?.readUInt32LE(0) ?? 0,
    up: (body.readUInt32LE(8) & UP) !== 0,
    peer: attributes.get(ATTR.link)?.readUInt32LE(0),
    master: attributes.get(ATTR.master)?.readUInt32LE(0),
    vxlan: kind === "vxlan" && data ? readVxlan(readAttributes(data)) : undefined,
    ...(kind === "ipip" && data ? { ipip: readIpip(readAttributes(data)) } : {}),
  };
});

function readVxlan(data: Attributes): VxlanSettings {
  const local = data.get(VXLAN.local) ?? data.get(VXLAN.local6);
  return {
    vni: data.get(VXLAN.vni)?.readUInt32LE(0) ?? 0,
    port: data.get(VXLAN.port)?.readUInt16BE(0) ?? 0,
    local: local && addressText(local),
    device: data.get(VXLAN.device)?.readUInt32LE(0) || undefined,
    learning: (data.get(VXLAN.learning)?.readUInt8(0) ?? 0) !== 0,
  };
}

/** The kernel says `any` as zeros. */
function readIpip(data: Attributes): IpipSettings {
  const read = (at: number) => {
    const bytes = data.get(at);
    return bytes?.some((byte) => byte !== 0) ? addressText(bytes) : undefined;
  };
  return { local: read(IPIP.local), remote: read(IPIP.remote) };
}

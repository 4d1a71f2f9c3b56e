/** Programs at the traffic hooks of kernels before TCX: a `clsact` discipline on the interface, and filters that act themselves. */
import type { Direction } from "../bpf/bpf-port.ts";
import { errnoOf } from "../errors.ts";
import type { NetlinkSocket } from "./netlink.ts";
import { FLAGS, type NetlinkMessage, nested, readAttributes, text, textOf, u32 } from "./netlink-message.ts";
import type { FilterSpec, NetlinkPort, TrafficFilter } from "./netlink-port.ts";

const QDISC = { set: 36, remove: 37 } as const;
const FILTER = { set: 44, remove: 45, get: 46 } as const;
const ATTR = { kind: 1, options: 2 } as const;
const BPF = { fd: 6, name: 7, flags: 8, id: 11 } as const;
const CLSACT = { handle: 0xffff_0000, parent: 0xffff_fff1 } as const;
const PARENTS = { ingress: 0xffff_fff2, egress: 0xffff_fff3 } as const satisfies Record<Direction, number>;
/** What the program returns is what happens. */
const DIRECT_ACTION = 1;
/** In network order, as the low half of `info`. */
const ALL_PROTOCOLS = 0x0300;

type FilterPart = Pick<NetlinkPort, "addClsact" | "deleteClsact" | "filters" | "replaceFilter" | "deleteFilter">;

export function filtersOn(socket: NetlinkSocket): FilterPart {
  return {
    addClsact: (device) => {
      try {
        const flags = FLAGS.create | FLAGS.exclusive;
        socket.request(`clsact on ${device}`, QDISC.set, flags, clsact(device), text(ATTR.kind, "clsact"));
      } catch (error) {
        if (errnoOf(error) !== "EEXIST") throw error;
      }
    },
    deleteClsact: (device) =>
      removed(() =>
        socket.request(`removing clsact of ${device}`, QDISC.remove, 0, clsact(device), text(ATTR.kind, "clsact")),
      ),
    filters: (device, direction) => list(socket, device, direction),
    replaceFilter: (spec) => replace(socket, spec),
    deleteFilter: ({ device, direction, priority, handle }) =>
      removed(() =>
        socket.request(
          `removing filter of ${device}`,
          FILTER.remove,
          0,
          header(device, handle, PARENTS[direction], info(priority)),
          text(ATTR.kind, "bpf"),
        ),
      ),
  };
}

function replace(socket: NetlinkSocket, spec: FilterSpec): void {
  const { device, direction, name, program, priority = 1, handle = 1 } = spec;
  const options = [u32(BPF.fd, program.fd), text(BPF.name, name), u32(BPF.flags, DIRECT_ACTION)];
  socket.request(
    `filter ${name} on ${device}`,
    FILTER.set,
    FLAGS.create | FLAGS.replace,
    header(device, handle, PARENTS[direction], info(priority)),
    text(ATTR.kind, "bpf"),
    nested(ATTR.options, ...options),
  );
}

function list(socket: NetlinkSocket, device: number, direction: Direction): TrafficFilter[] {
  try {
    return socket
      .dump(`filters of ${device}`, FILTER.get, header(device, 0, PARENTS[direction], 0))
      .flatMap((message) => readFilter(message, direction));
  } catch (error) {
    // Without the discipline there is nothing to list.
    if (["EINVAL", "ENOENT", "ENODEV"].includes(errnoOf(error) ?? "")) return [];
    throw error;
  }
}

function readFilter({ body }: NetlinkMessage, direction: Direction): TrafficFilter[] {
  const handle = body.readUInt32LE(8);
  // The kernel lists the chain a filter is in, too.
  if (handle === 0) return [];
  const attributes = readAttributes(body, 20);
  const options = attributes.get(ATTR.options);
  const isBpf = textOf(attributes.get(ATTR.kind)) === "bpf" && options;
  const bpf = isBpf ? readAttributes(options) : new Map<number, Buffer>();
  return [
    {
      device: body.readInt32LE(4),
      direction,
      name: bpf.has(BPF.name) ? textOf(bpf.get(BPF.name)) : "",
      priority: body.readUInt32LE(16) >>> 16,
      handle,
      programId: bpf.get(BPF.id)?.readUInt32LE(0),
    },
  ];
}

function clsact(device: number): Buffer {
  return header(device, CLSACT.handle, CLSACT.parent, 0);
}

function info(priority: number): number {
  return ((priority << 16) | ALL_PROTOCOLS) >>> 0;
}

function header(device: number, handle: number, parent: number, information: number): Buffer {
  const bytes = Buffer.alloc(20);
  bytes.writeInt32LE(device, 4);
  bytes.writeUInt32LE(handle, 8);
  bytes.writeUInt32LE(parent, 12);
  bytes.writeUInt32LE(information, 16);
  return bytes;
}

function removed(act: () => void): boolean {
  try {
    act();
    return true;
  } catch (error) {
    if (["ENOENT", "EINVAL", "ENODEV"].includes(errnoOf(error) ?? "")) return false;
    throw error;
  }
}

import { realKernel } from "../../../src/kernel/kernel.ts";
import type { Netns } from "../../../src/kernel/netns/netns-port.ts";
import {
  addressOf,
  bind,
  close,
  type Fd,
  openLibrary,
  receive,
  send,
  setsockopt,
  socket,
} from "../../../src/kernel/sys.ts";
import { TCP } from "./parse-frame.ts";

/**
 * Sockets that are opened inside a namespace stay there for life, so one process sends from a pod and listens in all the others, without an
 * event loop between two frames.
 */
const [AF_INET, AF_INET6, AF_PACKET, SOCK_RAW] = [2, 10, 17, 3];
const [SOL_SOCKET, SO_RCVBUFFORCE, SOL_PACKET, PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING] = [1, 33, 263, 15, 23];
const ETH_P_ALL = 3;
/** Enough for every frame of a batch, so that none is lost before it is read. */
const RECEIVE_BUFFER = 32 * 1024 * 1024;
/** Raw sockets are opened for one protocol each. 255 cannot be received on. */
const PROTOCOLS = Array.from({ length: 254 }, (_, at) => at + 1);
const MSG_DONTWAIT = 0x40;
const SO_ATTACH_FILTER = 26;
/** Filters of sockets, as instructions. Whether a frame has a tag is kept apart from its bytes. */
type SocketFilter = readonly (readonly [operation: number, yes: number, no: number, operand: number])[];
const ONLY_TAGGED: SocketFilter = [
  [0x20, 0, 0, 0xfffff030],
  [0x15, 0, 1, 1],
  [0x06, 0, 0, 0xffffffff],
  [0x06, 0, 0, 0],
];
/** Not by the first interface of a namespace, which is `lo`. */
const NOT_LOOPBACK: SocketFilter = [
  [0x20, 0, 0, 0xfffff008],
  [0x15, 1, 0, 1],
  [0x06, 0, 0, 0xffffffff],
  [0x06, 0, 0, 0],
];

const kernel = realKernel();
const buffer = Buffer.alloc(128 * 1024);

export function macOf(netns: Netns, name: string): string {
  return linkOf(netns, name).mac!;
}

function linkOf(netns: Netns, name: string) {
  const netlink = kernel.netlink(netns);
  try {
    const link = netlink.link(name);
    if (!link) throw new Error(`no interface ${name} in ${netns.name}`);
    return link;
  } finally {
    netlink.close();
  }
}

/** A pod that may hold NET_RAW: it writes frames as it likes, also larger than its interface was given. */
export class Sender {
  readonly mac: string;
  refused = 0;
  readonly #plain: Fd;
  /** Takes a `virtio_net_hdr` before each frame: checksums and segmentation left to the next device. */
  readonly #offloading: Fd;

  constructor(netns: Netns, name: string) {
    const { index, mac } = linkOf(netns, name);
    const netlink = kernel.netlink(netns);
    netlink.changeLink(index, { mtu: 9000 });
    netlink.close();
    this.mac = mac!;
    this.#plain = packetSocket(netns, index, 0);
    this.#offloading = packetSocket(netns, index, 0);
    setsockopt(this.#offloading, SOL_PACKET, PACKET_VNET_HDR, 1);
  }

  /** False: this pod's own kernel did not take it, such as one shorter than an Ethernet header. */
  send(bytes: Buffer, offload?: Buffer): boolean {
    const result = offload ? send(this.#offloading, Buffer.concat([offload, bytes])) : send(this.#plain, bytes);
    if (result < 0) this.refused++;
    return result >= 0;
  }

  close(): void {
    close(this.#plain);
    close(this.#offloading);
  }
}

function packetSocket(netns: Netns, index: number, protocol: number): Fd {
  const fd = kernel.netns.run(netns, () => socket(AF_PACKET, SOCK_RAW, 0));
  setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER);
  setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1);
  const address = Buffer.alloc(20);
  address.writeUInt16LE(AF_PACKET, 0);
  address.writeUInt16BE(protocol, 2);
  address.writeInt32LE(index, 4);
  bind(fd, address);
  return fd;
}

function attachFilter(fd: Fd, filter: SocketFilter): void {
  const { setsockopt: attach } = openLibrary("libc.so.6", {
    setsockopt: "int setsockopt(int fd, int level, int option, void *value, uint length)",
  });
  const code = Buffer.alloc(8 * filter.length);
  for (const [at, [operation, yes, no, operand]] of filter.entries()) {
    code.writeUInt16LE(operation, 8 * at);
    code.set([yes, no], 8 * at + 2);
    code.writeUInt32LE(operand, 8 * at + 4);
  }
  const program = Buffer.alloc(16);
  program.writeUInt16LE(filter.length, 0);
  program.writeBigUInt64LE(addressOf(code), 8);
  const result = Number(attach(fd, SOL_SOCKET, SO_ATTACH_FILTER, program, program.length));
  // `code` is read here too, so that it lives until the kernel has copied it.
  if (result < 0) throw new Error(`a filter of ${code.length / 8} instructions was refused`);
}

/** Every frame that arrives at an interface, before the stack of its namespace sees it; or only those with a VLAN tag. */
export class FrameTap {
  readonly #fd: Fd;

  constructor(netns: Netns, name: string, { onlyTagged = false } = {}) {
    this.#fd = packetSocket(netns, linkOf(netns, name).index, ETH_P_ALL);
    if (onlyTagged) attachFilter(this.#fd, ONLY_TAGGED);
  }

  drain(onFrame: (frame: Buffer) => void): void {
    for (;;) {
      const length = receive(this.#fd, buffer, "now");
      if (length < 0) return;
      onFrame(Buffer.from(buffer.subarray(0, length)));
    }
  }

  close(): void {
    close(this.#fd);
  }
}

/** What a node's own stack delivers: after the filters of its input. `bytes` begin with the transport header. */
export interface Delivery {
  family: 4 | 6;
  protocol: number;
  source: Buffer;
  bytes: Buffer;
}

/** Raw IP sockets of every protocol and both families. */
export class DeliveryTap {
  readonly #sockets: { fd: Fd; family: 4 | 6; protocol: number }[];
  readonly #libc = openLibrary("libc.so.6", {
    recvfrom: "long recvfrom(int fd, void *bytes, size_t length, int flags, void *address, void *size)",
  });
  readonly #address = Buffer.alloc(28);
  readonly #size = Buffer.alloc(4);

  constructor(netns: Netns) {
    this.#sockets = kernel.netns.run(netns, () =>
      ([4, 6] as const).flatMap((family) =>
        PROTOCOLS.map((protocol) => {
          const fd = socket(family === 4 ? AF_INET : AF_INET6, SOCK_RAW, protocol);
          setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER);
          // What the node's own programs say to each other is no pod's: the agent asks the API server by loopback.
          if (protocol === TCP) attachFilter(fd, NOT_LOOPBACK);
          return { fd, family, protocol };
        }),
      ),
    );
  }

  drain(onDelivery: (delivery: Delivery) => void): void {
    for (const { fd, family, protocol } of this.#sockets) {
      for (;;) {
        this.#size.writeUInt32LE(this.#address.length);
        const { recvfrom } = this.#libc;
        const length = Number(recvfrom(fd, buffer, buffer.length, MSG_DONTWAIT, this.#address, this.#size));
        if (length < 0) break;
        const source = Buffer.from(family === 4 ? this.#address.subarray(4, 8) : this.#address.subarray(8, 24));
        // The kernel leaves the header before it in IPv4 only.
        const header = family === 4 ? (buffer[0]! & 15) * 4 : 0;
        onDelivery({ family, protocol, source, bytes: Buffer.from(buffer.subarray(header, length)) });
      }
    }
  }

  close(): void {
    for (const { fd } of this.#sockets) close(fd);
  }
}

import type { Random } from "../../calc/random.ts";
import { icmp, ipBytes, ports, summed, tcp, udp } from "../../ebpf/frames.ts";
import { CLOSED, type Ends } from "./attempt.ts";
import { chained, ethernet, headerSummed, packet, TYPE, transport, u16 } from "./build-frame.ts";
import { OPEN_TCP, OPEN_UDP } from "./frame-verdict.ts";
import { OVERLAY_PORT } from "./parse-frame.ts";

const ETHERNET = 14;
const PORTS = [0, CLOSED, 53, 179, OPEN_TCP, OPEN_UDP, OVERLAY_PORT, 65535];
const PROTOCOLS = [0, 1, 2, 4, 6, 17, 41, 43, 44, 47, 50, 51, 58, 59, 60, 132, 136, 255];
const TYPES = [TYPE.v4, TYPE.v6, TYPE.arp, 0x8100, 0x88a8, 0x8847];
const INTERESTING = [0, 1, 7, 8, 19, 20, 28, 40, 0x1fff, 0x2000, 0x3fff, 0x4000, 0x7fff, 0x8000, 0xffff];
/** Where a splice is worth the most: behind each header. */
const SEAMS = [12, 14, 22, 26, 34, 38, 42, 54, 62, 74];

/** Valid frames to one destination, of connections that policy admits and of others. */
export function validFrames({ source, destination, ethernet: link, others }: Ends): Buffer[] {
  const isV6 = destination.includes(":");
  const protocol = isV6 ? 58 : 1;
  const far = others["far"]!;
  const part = transport(source, destination, udp(4000, OPEN_UDP, "x".repeat(64)));
  const packets = [
    ...[OPEN_TCP, CLOSED].flatMap((port) =>
      [2, 16, 24, 17, 4].map((flags) => packet(source, destination, tcp(4000, port, flags, "data"))),
    ),
    ...[OPEN_UDP, CLOSED, 53].map((port) => packet(source, destination, udp(4000, port, "a datagram of a pod"))),
    packet(source, destination, icmp(protocol, isV6 ? 128 : 8, 0, 7, Buffer.alloc(24))),
    packet(
      source,
      destination,
      icmp(protocol, isV6 ? 2 : 3, isV6 ? 0 : 4, 0, packet(destination, source, tcp(OPEN_TCP, 4000, 16))),
    ),
    packet(source, destination, icmp(protocol, isV6 ? 1 : 3, 1, 0, packet(destination, far, udp(OPEN_UDP, 4000)))),
    packet(source, destination, ports(132, 4000, CLOSED, Buffer.alloc(28, 1))),
    packet(source, destination, { protocol: isV6 ? 41 : 4, bytes: packet(far, destination, udp(4000, OPEN_UDP)) }),
    packet(far, destination, udp(4000, OPEN_UDP)),
    packet(destination, source, tcp(OPEN_TCP, 4000, 18)),
    ...(isV6
      ? [
          chained(
            source,
            destination,
            0,
            Buffer.concat([Buffer.from([60, 0, 1, 4, 0, 0, 0, 0, 17, 0, 1, 4, 0, 0, 0, 0]), part.bytes]),
          ),
          chained(
            source,
            destination,
            44,
            Buffer.concat([Buffer.from([17, 0]), u16(1, 0, 0x1111), part.bytes.subarray(0, 40)]),
          ),
          chained(
            source,
            destination,
            44,
            Buffer.concat([Buffer.from([17, 0]), u16(40, 0, 0x1111), part.bytes.subarray(40)]),
          ),
          packet(source, destination, icmp(58, 135, 0, 0, ipBytes(destination)), { hops: 255 }),
        ]
      : [
          packet(source, destination, udp(4000, CLOSED), { options: Buffer.from([7, 7, 4, 0, 0, 0, 0, 0]) }),
          packet(source, destination, udp(4000, OPEN_UDP, "x".repeat(32)), { id: 0x1111, more: true }),
          packet(source, destination, { protocol: 17, bytes: Buffer.alloc(64, 0x41) }, { id: 0x1111, offset: 5 }),
        ]),
  ];
  return packets.map((bytes) => ethernet(link, isV6 ? TYPE.v6 : TYPE.v4, bytes));
}

/** One of the samples, changed in one to five ways; mostly with good checksums again, so that it is looked at further. */
export function mutateFrame(random: Random, samples: readonly Buffer[], addresses: readonly string[]): Buffer {
  let bytes: Buffer = Buffer.from(random.of(samples));
  for (let times = 1 + random.below(5); times > 0; times--) bytes = mutateOnce(random, bytes, samples, addresses);
  return random.chance(75) ? rightSums(bytes) : bytes;
}

function mutateOnce(random: Random, bytes: Buffer, samples: readonly Buffer[], addresses: readonly string[]): Buffer {
  const at = random.below(bytes.length);
  switch (random.below(11)) {
    case 0:
      for (let flips = 1 + random.below(8); flips > 0; flips--) {
        const where = 12 + random.below(Math.max(1, bytes.length - 12));
        if (where < bytes.length) bytes[where]! ^= 1 << random.below(8);
      }
      return bytes;
    case 1:
      if (at >= 12 && at + 2 <= bytes.length) bytes.writeUInt16BE(random.of(INTERESTING), at);
      return bytes;
    case 2:
      return bytes.subarray(0, Math.max(ETHERNET, at));
    case 3:
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(Math.max(0, at - random.below(40)))]).subarray(
        0,
        1_400,
      );
    case 4: {
      const seam = random.of(SEAMS);
      return Buffer.concat([
        bytes.subarray(0, seam),
        random.of(samples).subarray(random.chance(70) ? seam : random.of(SEAMS)),
      ]);
    }
    case 5:
      return swapped(random, bytes);
    case 6:
      return withAddress(random, bytes, random.of(addresses));
    case 7:
      return withByte(bytes, bytes[ETHERNET]! >> 4 === 6 ? 20 : 23, random.of(PROTOCOLS));
    case 8:
      return withWord(bytes, transportAt(bytes) + 2 * random.below(2), random.of(PORTS));
    case 9:
      return withWord(
        bytes,
        random.chance(50) ? 12 : 20,
        random.chance(50) ? random.of(TYPES) : random.of(INTERESTING),
      );
    default:
      return Buffer.concat([
        bytes.subarray(0, Math.max(at, ETHERNET)),
        Buffer.from(random.some(1, 24, () => random.below(256))),
        bytes.subarray(Math.max(at, ETHERNET)),
      ]);
  }
}

const isV6Frame = (bytes: Buffer) => bytes.length > ETHERNET && bytes[ETHERNET]! >> 4 === 6;
const transportAt = (bytes: Buffer) => (isV6Frame(bytes) ? 54 : 34);

function withByte(bytes: Buffer, at: number, value: number): Buffer {
  if (at < bytes.length) bytes[at] = value;
  return bytes;
}

function withWord(bytes: Buffer, at: number, value: number): Buffer {
  if (at + 2 <= bytes.length) bytes.writeUInt16BE(value, at);
  return bytes;
}

/** Source and destination, or ports, change places. */
function swapped(random: Random, bytes: Buffer): Buffer {
  const [at, size] = random.chance(50) ? (isV6Frame(bytes) ? [22, 16] : [26, 4]) : [transportAt(bytes), 2];
  if (at + 2 * size > bytes.length) return bytes;
  const first = Buffer.from(bytes.subarray(at, at + size));
  bytes.copy(bytes, at, at + size, at + 2 * size);
  first.copy(bytes, at + size);
  return bytes;
}

function withAddress(random: Random, bytes: Buffer, address: string): Buffer {
  const [at, size] = isV6Frame(bytes) ? [22, 16] : [26, 4];
  const value = ipBytes(address);
  const where = at + size * random.below(2);
  if (value.length === size && where + size <= bytes.length) value.copy(bytes, where);
  return bytes;
}

function rightSums(frame: Buffer): Buffer {
  const bytes = Buffer.from(frame);
  const inner = bytes.subarray(ETHERNET);
  const isV6 = isV6Frame(bytes);
  const least = isV6 ? 40 : 20;
  // A packet of another version has no place for a checksum.
  if (inner.length < least || (!isV6 && inner[0]! >> 4 !== 4)) return bytes;
  const at = isV6 ? 40 : (inner[0]! & 15) * 4;
  const said = isV6 ? 40 + inner.readUInt16BE(4) : inner.readUInt16BE(2);
  // The longest way to a checksum is TCP's.
  if (said >= at && at >= least && inner.length >= at + 18) summed({ bytes: inner });
  headerSummed(inner);
  return bytes;
}

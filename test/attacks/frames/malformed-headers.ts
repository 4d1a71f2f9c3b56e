import { icmp, ipBytes, tcp, udp } from "../../ebpf/frames.ts";
import { ask, CLOSED, type Ends, entry, FROM, KNOCK, type Malformed, SYN, typeOf } from "./attempt.ts";
import { chained, changed, ethernet, headerSummed, TYPE, transport, u16 } from "./build-frame.ts";
import { OPEN_TCP, OPEN_UDP } from "./frame-verdict.ts";

/** Every header cut at every byte, with the lengths it had and with those that are left. */
export function cut(ends: Ends): Malformed[] {
  const made: Malformed[] = [];
  const icmpEcho = icmp(ends.destination.includes(":") ? 58 : 1, ends.destination.includes(":") ? 128 : 8);
  for (const [what, payload] of [
    ["TCP", SYN],
    ["UDP", KNOCK],
    ["ICMP", icmpEcho],
  ] as const) {
    const whole = ask(ends, payload);
    const network = ends.destination.includes(":") ? 40 : 20;
    for (let length = what === "TCP" ? 0 : network; length < whole.length; length++) {
      made.push({
        name: `${what} cut to ${length} bytes`,
        frames: [ethernet(ends.ethernet, typeOf(whole), whole.subarray(0, length))],
      });
      if (length < network) continue;
      const short = Buffer.from(whole.subarray(0, length));
      short.writeUInt16BE(network === 40 ? length - 40 : length, network === 40 ? 4 : 2);
      made.push(entry(ends, `${what} of ${length} bytes that says so`, headerSummed(short)));
    }
  }
  return made;
}

export function lengths(ends: Ends): Malformed[] {
  const isV6 = ends.destination.includes(":");
  const [at, network] = isV6 ? [4, 40] : [2, 20];
  const whole = ask(ends, KNOCK);
  const said = [0, 1, 7, 8, 19, 20, 21, 27, 28, 40, whole.length + 1, 1500, 9000, 0x7fff, 0xfffe, 0xffff];
  return [
    ...said.map((value) => entry(ends, `packet that says ${value} bytes`, changed(whole, at, u16(value)))),
    ...[0, 1, 7, 8, 9, 100, 0x8000, 0xffff].map((value) =>
      entry(ends, `datagram that says ${value} bytes`, changed(whole, network + 4, u16(value))),
    ),
    ...[0, 1, 2, 3, 4, 6, 10, 15].map((offset) =>
      entry(ends, `TCP header of ${offset} words`, changed(ask(ends, SYN), network + 12, offset << 4)),
    ),
    ...[0, 1, 3, 5, 7, 15, isV6 ? 4 : 6].map((version) => {
      const bytes = changed(whole, 0, (version << 4) | (whole[0]! & 15), { sum: false });
      return { name: `version ${version}`, frames: [ethernet(ends.ethernet, isV6 ? TYPE.v6 : TYPE.v4, bytes)] };
    }),
    ...[0, 1].map((hops) => entry(ends, `${hops} hops left`, ask(ends, KNOCK, isV6 ? { hops } : { ttl: hops }))),
    entry(ends, "trailing bytes", Buffer.concat([whole, Buffer.alloc(64, 0x41)])),
    entry(ends, "larger than the interface", ask(ends, udp(FROM, CLOSED, "x".repeat(4_000)))),
  ];
}

export function checksums(ends: Ends): Malformed[] {
  const network = ends.destination.includes(":") ? 40 : 20;
  return [
    ...(network === 20
      ? [entry(ends, "bad IP checksum", changed(ask(ends, SYN), 10, u16(0xdead), { sum: false }))]
      : []),
    entry(ends, "bad TCP checksum", changed(ask(ends, SYN), network + 16, u16(0xdead))),
    entry(ends, "bad UDP checksum", changed(ask(ends, KNOCK), network + 6, u16(0xdead))),
    entry(ends, "no UDP checksum", changed(ask(ends, KNOCK), network + 6, u16(0))),
    entry(ends, "bad TCP checksum to an open port", changed(ask(ends, tcp(FROM, OPEN_TCP)), network + 16, u16(0xdead))),
  ];
}

export function tcpFlags(ends: Ends): Malformed[] {
  const flags = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 18, 20, 24, 25, 32, 41, 56, 63, 64, 128, 194, 255];
  return [
    ...flags.map((flag) => entry(ends, `TCP flags ${flag}`, ask(ends, tcp(FROM, CLOSED, flag)))),
    ...[
      [0, 0],
      [0, CLOSED],
      [FROM, 0],
      [OPEN_TCP, CLOSED],
      [OPEN_UDP, 65535],
    ].flatMap(([from, to]) => [
      entry(ends, `TCP ${from} to ${to}`, ask(ends, tcp(from!, to!))),
      entry(ends, `UDP ${from} to ${to}`, ask(ends, udp(from!, to!))),
    ]),
    entry(ends, "SYN with data", ask(ends, tcp(FROM, CLOSED, 2, "GET / HTTP/1.0\r\n\r\n"))),
  ];
}

export function optionsV4(ends: Ends): Malformed[] {
  const router = [...ipBytes(ends.others["node-1"]!)];
  const options: [string, number[]][] = [
    ["loose source route", [131, 7, 4, ...router, 0]],
    ["strict source route", [137, 7, 4, ...router, 0]],
    ["used-up source route", [131, 7, 8, ...router, 0]],
    ["source route of no length", [131, 0, 4, 0]],
    ["record route", [7, 11, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]],
    ["timestamp", [68, 12, 5, 1, 0, 0, 0, 0, 0, 0, 0, 0]],
    ["router alert", [148, 4, 0, 0]],
    ["CIPSO", [134, 8, 0, 0, 0, 1, 2, 0]],
    ["security", [130, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]],
    ["no operation", [1, 1, 1, 1]],
    ["unknown option", [222, 4, 0, 0]],
    ["option longer than the header", [7, 200, 4, 0]],
    ["bytes behind the end of options", [0, 255, 255, 255]],
    ["forty bytes", Array.from({ length: 40 }, () => 1)],
  ];
  return [
    ...options.map(([name, bytes]) =>
      entry(ends, `option: ${name}`, ask(ends, KNOCK, { options: Buffer.from(bytes) })),
    ),
    ...[0, 1, 2, 3, 4, 6, 7, 9, 12, 15].map((words) =>
      entry(ends, `header of ${words} words`, changed(ask(ends, KNOCK), 0, 0x40 | words)),
    ),
    ...[0x8000, 0x4000, 0xe000, 0xffff, 0x1fff].map((word) =>
      entry(ends, `flags and offset ${word.toString(16)}`, changed(ask(ends, KNOCK), 6, u16(word))),
    ),
  ];
}

export function extensions(ends: Ends): Malformed[] {
  const knock = transport(ends.source, ends.destination, KNOCK).bytes;
  const pad = [1, 4, 0, 0, 0, 0];
  const routing = (type: number, left: number) =>
    [43, [type, left, 0, 0, 0, 0, ...ipBytes(ends.others["victim"]!)]] as const;
  /** Each gets the number of the next, and its own length. */
  const chain = (headers: readonly (readonly [number, readonly number[]])[], last = 17, rest = knock) => {
    const bytes = headers.map(([type, content], at) => {
      const next = headers[at + 1]?.[0] ?? last;
      const whole = 2 + content.length;
      return Buffer.from([next, type === 44 ? 0 : type === 51 ? whole / 4 - 2 : whole / 8 - 1, ...content]);
    });
    return chained(ends.source, ends.destination, headers[0]?.[0] ?? last, Buffer.concat([...bytes, rest]));
  };
  const [hop, options, atomic] = [
    [0, pad],
    [60, pad],
    [44, [0, 0, 0, 0, 0, 9]],
  ] as const;
  const all: [string, Buffer][] = [
    ["hop-by-hop", chain([hop])],
    ["hop-by-hop twice", chain([hop, hop])],
    ["hop-by-hop behind another", chain([options, hop])],
    ["router alert", chain([[0, [5, 2, 0, 0, 1, 0]]])],
    ["jumbo payload", chain([[0, [194, 4, 0, 1, 0, 0]]])],
    ["jumbo payload of no length", changed(chain([[0, [194, 4, 0, 0, 0, 40]]]), 4, u16(0))],
    ["unknown option, discard", chain([[0, [0x7e, 4, 0, 0, 0, 0]]])],
    ["unknown option, report", chain([[60, [0xbe, 4, 0, 0, 0, 0]]])],
    ["option longer than its header", chain([[60, [1, 200, 0, 0, 0, 0]]])],
    ["destination options", chain([options])],
    ["home address", chain([[60, [201, 16, ...ipBytes(ends.others["far"]!), 1, 2, 0, 0]]])],
    ...(
      [
        [0, 1],
        [0, 0],
        [2, 1],
        [2, 0],
        [3, 1],
        [4, 1],
        [4, 0],
        [253, 1],
      ] as const
    ).map(([type, left]): [string, Buffer] => [`routing ${type}, ${left} left`, chain([routing(type, left)])]),
    ["atomic fragment", chain([atomic])],
    ["fragment in a fragment", chain([atomic, atomic])],
    ["options behind a fragment", chain([atomic, options])],
    ["authentication", chain([[51, Array.from({ length: 22 }, () => 0)]])],
    ["no next header", chain([options], 59)],
    ["mobility", chain([options], 135)],
    ["unknown header", chain([options], 253)],
    ["IPv4's ICMP behind options", chain([options], 1)],
    ["options cut", chained(ends.source, ends.destination, 60, Buffer.from([17, 0, 1]))],
    ["options that say 2 KiB", changed(chain([options]), 41, 255)],
    ...[2, 5, 6, 7, 8, 20, 64].map((count): [string, Buffer] => [
      `${count} headers`,
      chain(Array.from({ length: count }, () => options)),
    ]),
    ["every header", chain([hop, options, routing(4, 0), atomic, options])],
  ];
  // The stack reads hop-by-hop options before any filter sees the packet, and would report to the source that it names.
  const reported = Object.entries(ends.others).map(([name, source]): [string, Buffer] => {
    const options = Buffer.from([17, 0, 0xbe, 4, 0, 0, 0, 0]);
    return [`unknown option, report to ${name}`, chained(source, ends.destination, 0, Buffer.concat([options, knock]))];
  });
  return [...all, ...reported].map(([name, bytes]) => entry(ends, `extension: ${name}`, bytes));
}

/** A pod can hand over what its device would have cut and summed; type 1 is TCP over IPv4, 4 over IPv6, 3 and 5 are UDP. */
export function offloaded(ends: Ends): Malformed[] {
  const isV6 = ends.destination.includes(":");
  const network = isV6 ? 40 : 20;
  const header = (type: number, size: number, start = 14 + network, offset = 16) => {
    const bytes = Buffer.alloc(10);
    bytes[0] = 1;
    bytes[1] = type;
    for (const [at, value] of [14 + network + 20, size, start, offset].entries())
      bytes.writeUInt16LE(value, 2 + 2 * at);
    return bytes;
  };
  const large = ask(ends, tcp(FROM, CLOSED, 16, "x".repeat(6_000)));
  const one = (name: string, offload: Buffer, bytes: Buffer): Malformed => ({ ...entry(ends, name, bytes), offload });
  const tcpType = isV6 ? 4 : 1;
  return [
    one("TCP to be cut", header(tcpType, 1000), large),
    one("TCP to be cut that says no length", header(tcpType, 1000), changed(large, isV6 ? 4 : 2, u16(0))),
    one("TCP to be cut into single bytes", header(tcpType, 1), large.subarray(0, network + 40)),
    one("UDP to be cut", header(5, 500, 14 + network, 6), ask(ends, udp(FROM, CLOSED, "x".repeat(4_000)))),
    one("UDP to be made fragments", header(3, 504, 14 + network, 6), ask(ends, udp(FROM, CLOSED, "x".repeat(4_000)))),
    one("checksum over the addresses", header(0, 0, 14 + 12, 0), ask(ends, KNOCK)),
    one("checksum over the ports", header(0, 0, 14 + network, 2), ask(ends, tcp(FROM, OPEN_TCP))),
    one("the other family to be cut", header(isV6 ? 1 : 4, 1000), large),
  ];
}

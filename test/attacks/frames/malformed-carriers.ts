import { icmp, type Payload, ports, tcp, udp } from "../../ebpf/frames.ts";
import { ask, CLOSED, type Ends, entry, FROM, KNOCK, type Malformed, SYN, typeOf } from "./attempt.ts";
import { changed, ethernet, packet, u16 } from "./build-frame.ts";
import { OPEN_TCP, OPEN_UDP } from "./frame-verdict.ts";
import { OVERLAY_PORT } from "./parse-frame.ts";

export function protocols(ends: Ends): Malformed[] {
  const inside = packet(ends.others["far"]!, ends.destination, KNOCK);
  const version = ends.destination.includes(":") ? 41 : 4;
  const gre = (type: number, bytes: Buffer) => Buffer.concat([u16(0, type), bytes]);
  const carried: [string, number, Buffer][] = [
    ["IP in IP", version, inside],
    ["the other family in IP", version === 4 ? 41 : 4, inside],
    ["GRE with IP", 47, gre(typeOf(inside), inside)],
    ["GRE with Ethernet", 47, gre(0x6558, ethernet(ends.ethernet, typeOf(inside), inside))],
    ["EtherIP", 97, Buffer.concat([u16(0x3000), ethernet(ends.ethernet, typeOf(inside), inside)])],
    ["MPLS in IP", 137, Buffer.concat([Buffer.from("00001140", "hex"), inside])],
    ["L2TP", 115, Buffer.concat([u16(0, 7), inside])],
    ["ESP", 50, Buffer.alloc(40, 7)],
    ["AH", 51, Buffer.concat([Buffer.from([17, 4, 0, 0]), Buffer.alloc(20), KNOCK.bytes])],
  ];
  const plain = [0, 2, 3, 8, 33, 46, 59, 88, 89, 94, 103, 108, 112, 135, 136, 139, 140, 143, 253, 254, 255];
  const sctp = (type: number, length: number) =>
    ports(132, FROM, CLOSED, Buffer.concat([Buffer.alloc(8), Buffer.from([type, 0]), u16(length), Buffer.alloc(16)]));
  return [
    ...carried.map(([name, protocol, bytes]) => entry(ends, name, ask(ends, { protocol, bytes }))),
    ...plain.map((protocol) =>
      entry(ends, `protocol ${protocol}`, ask(ends, { protocol, bytes: Buffer.alloc(24, protocol) })),
    ),
    ...[0, 1, 6, 14, 255].map((type) => entry(ends, `SCTP chunk ${type}`, ask(ends, sctp(type, 20)))),
    entry(ends, "SCTP chunk of no length", ask(ends, sctp(1, 0))),
    entry(ends, "SCTP without a chunk", ask(ends, ports(132, FROM, CLOSED, Buffer.alloc(8)))),
    entry(ends, "SCTP cut in its header", ask(ends, ports(132, FROM, CLOSED, Buffer.alloc(3)))),
  ];
}

/** ICMP errors about packets that were never sent, or are others'. */
export function errors(ends: Ends): Malformed[] {
  const isV6 = ends.destination.includes(":");
  const [protocol, types] = isV6 ? ([58, [1, 2, 3, 4, 137, 200]] as const) : ([1, [3, 4, 5, 11, 12, 200]] as const);
  const far = ends.others["far"]!;
  const quoted: [string, Buffer][] = [
    ["its own closed connection", packet(ends.destination, ends.source, tcp(CLOSED, FROM, 16))],
    ["another's connection", packet(ends.destination, far, tcp(OPEN_TCP, 5000, 16))],
    ["a packet of its own", packet(ends.source, ends.destination, SYN)],
    ["a cut packet", packet(ends.destination, ends.source, SYN).subarray(0, isV6 ? 43 : 23)],
    ["an error", packet(ends.destination, ends.source, icmp(protocol, types[0]!, 0, 0, Buffer.alloc(28)))],
    ["nothing", Buffer.alloc(0)],
  ];
  const plain = isV6
    ? [0, 100, 128, 129, 130, 133, 134, 137, 138, 139, 141, 143, 151, 255]
    : [0, 1, 8, 9, 10, 13, 15, 17, 30, 42, 255];
  const [header, at] = isV6 ? [40, 4] : [20, 2];
  const answer = packet(ends.destination, ends.source, tcp(OPEN_TCP, FROM, 16));
  const whole = ask(ends, icmp(protocol, isV6 ? 1 : 3, 1, 0, answer));
  const ended = (quote: number) => changed(whole, at, u16((isV6 ? 0 : header) + 8 + quote));
  // The quote goes on behind what the packet says is its end: an error without ports is about no connection.
  const behindEnd = [0, header - 1, header, header + 7].map((quote) =>
    entry(ends, `ICMP that ends after ${quote} bytes of its quote`, ask(ends, tcp(FROM, OPEN_TCP)), ended(quote)),
  );
  return [
    ...behindEnd,
    ...types.flatMap((type) =>
      quoted.map(([what, bytes]) =>
        entry(ends, `ICMP ${type} about ${what}`, ask(ends, icmp(protocol, type, type === 3 ? 4 : 0, 0, bytes))),
      ),
    ),
    ...plain.map((type) => entry(ends, `ICMP ${type}`, ask(ends, icmp(protocol, type, 0, 7, Buffer.alloc(32))))),
    entry(ends, "the other family's ICMP", ask(ends, icmp(isV6 ? 1 : 58, isV6 ? 8 : 128))),
  ];
}

/** In the tunnel a pod could speak for any other. */
export function tunnels(ends: Ends): Malformed[] {
  const inner = packet(ends.others["far"]!, ends.others["victim"]!, udp(FROM, OPEN_UDP));
  const frame = ethernet({ to: "66:00:00:00:00:01", from: "66:00:00:00:00:02" }, typeOf(inner), inner);
  const vxlan = (flags: number, vni: number) =>
    Buffer.concat([Buffer.from([flags, 0, 0, 0]), u16(vni >> 8, (vni & 0xff) << 8), frame]);
  const said: [string, number, Buffer][] = [
    ["VXLAN", OVERLAY_PORT, vxlan(8, 4096)],
    ["VXLAN of another network", OVERLAY_PORT, vxlan(8, 7)],
    ["VXLAN without a network", OVERLAY_PORT, vxlan(0, 4096)],
    ["VXLAN with all flags", OVERLAY_PORT, vxlan(255, 4096)],
    ["VXLAN cut in its header", OVERLAY_PORT, vxlan(8, 4096).subarray(0, 5)],
    ["VXLAN without a frame", OVERLAY_PORT, vxlan(8, 4096).subarray(0, 8)],
    ["VXLAN of Linux' old port", 8472, vxlan(8, 4096)],
    ["GENEVE", 6081, Buffer.concat([u16(0, 0x6558, 16, 0), frame])],
    ["VXLAN-GPE", 4790, vxlan(12, 4096)],
  ];
  return said.flatMap(([name, port, bytes]) => {
    const to = [
      ["its receiver", ends.destination],
      ["its node", ends.others["node-1"]!],
      ["the other node", ends.others["node-2"]!],
    ];
    return to.map(([where, destination]) =>
      entry(ends, `${name} to ${where}`, packet(ends.source, destination!, udpBytes(port, bytes))),
    );
  });
}

function udpBytes(port: number, bytes: Buffer): Payload {
  return ports(17, FROM, port, Buffer.concat([u16(8 + bytes.length, 0), bytes]));
}

import { icmp, ipBytes, tcp, udp } from "../../ebpf/frames.ts";
import { ask, type Ends, entry, FROM, HOST_LINK_LOCAL, KNOCK, type Malformed, SYN, typeOf } from "./attempt.ts";
import { type Ethernet, ethernet, mac, packet, TYPE, u16 } from "./build-frame.ts";
import { OPEN_TCP, OPEN_UDP } from "./frame-verdict.ts";

/** Sources the pod does not own, also to ports that are open to its own. */
export function sources(ends: Ends): Malformed[] {
  const isV6 = ends.destination.includes(":");
  const never = isV6
    ? [
        "::",
        "::1",
        "::ffff:10.88.0.1",
        "::10.88.0.1",
        "fe80::1",
        HOST_LINK_LOCAL,
        "ff02::1",
        "2002:a58:1::1",
        "64:ff9b::a58:1",
        "fd96::1",
        "2001:db8::1",
      ]
    : [
        "0.0.0.0",
        "127.0.0.1",
        "255.255.255.255",
        "224.0.0.1",
        "169.254.1.1",
        "169.254.169.254",
        "10.96.0.1",
        "240.0.0.1",
        "192.0.2.1",
      ];
  const all: [string, string][] = [
    ...Object.entries(ends.others),
    ["its receiver", ends.destination],
    ...never.map((one): [string, string] => [one, one]),
  ];
  return all.flatMap(([name, source]) => [
    entry(ends, `TCP from ${name}`, packet(source, ends.destination, tcp(FROM, OPEN_TCP))),
    entry(ends, `UDP from ${name}`, packet(source, ends.destination, udp(FROM, OPEN_UDP))),
    entry(ends, `echo from ${name}`, packet(source, ends.destination, icmp(isV6 ? 58 : 1, isV6 ? 128 : 8))),
  ]);
}

export function destinations(ends: Ends): Malformed[] {
  const isV6 = ends.destination.includes(":");
  const all = isV6
    ? [
        "::",
        "::1",
        "::ffff:10.88.0.1",
        "ff01::1",
        "ff02::1",
        "ff02::2",
        "ff02::fb",
        "ff05::2",
        "ff0e::1",
        HOST_LINK_LOCAL,
        "fe80::1",
      ]
    : [
        "0.0.0.0",
        "127.0.0.1",
        "127.0.0.53",
        "255.255.255.255",
        "10.99.0.255",
        "10.88.0.255",
        "224.0.0.1",
        "224.0.0.251",
        "239.1.1.1",
        "169.254.1.1",
        "169.254.169.254",
        "240.0.0.1",
      ];
  return all.flatMap((destination) => [
    entry(ends, `UDP to ${destination}`, packet(ends.source, destination, KNOCK)),
    entry(ends, `TCP to ${destination}`, packet(ends.source, destination, SYN)),
  ]);
}

export function linkLayer(ends: Ends): Malformed[] {
  const whole = ask(ends, KNOCK);
  const type = typeOf(whole);
  const tag = (...words: number[]) => Buffer.concat([u16(...words), whole]);
  const to = (name: string, link: Partial<Ethernet>): Malformed => ({
    name,
    frames: [ethernet({ ...ends.ethernet, ...link }, type, whole)],
  });
  const as = (name: string, other: number, bytes = whole): Malformed => ({
    name,
    frames: [ethernet(ends.ethernet, other, bytes)],
  });
  return [
    ...[0, 1, 5, 4095].map((id) => as(`VLAN ${id}`, 0x8100, tag(id, type))),
    as("VLAN with priority only", 0x8100, tag(0xe000, type)),
    // To a port that is open: it arrives where the tag is taken off, and must arrive nowhere with it.
    as("VLAN 0 to an open port", 0x8100, Buffer.concat([u16(0, type), ask(ends, udp(FROM, OPEN_UDP))])),
    as(
      "VLAN with priority to an open port",
      0x8100,
      Buffer.concat([u16(0xe000, type), ask(ends, udp(FROM, OPEN_UDP))]),
    ),
    as("QinQ", 0x88a8, tag(1, 0x8100, 2, type)),
    as("two priority tags", 0x8100, tag(0, 0x8100, 0, type)),
    as("old QinQ", 0x9100, tag(1, 0x8100, 2, type)),
    as("VLAN without an end", 0x8100, u16(1)),
    as("LLC", whole.length + 3, Buffer.concat([Buffer.from([0x42, 0x42, 3]), whole])),
    as("SNAP", whole.length + 8, Buffer.concat([Buffer.from("aaaa03000000", "hex"), u16(type), whole])),
    as("PPPoE", 0x8864, Buffer.concat([u16(0x1100, 1, whole.length + 2, type === TYPE.v4 ? 0x21 : 0x57), whole])),
    as("MPLS", 0x8847, Buffer.concat([Buffer.from("00001140", "hex"), whole])),
    as("the other family's type", type === TYPE.v4 ? TYPE.v6 : TYPE.v4),
    ...[0, 1, 0x5dc, 0x5ff, 0x600, 0x0835, 0x86dc, 0x88cc, 0x888e, 0x88f7, 0x8915, 0xffff].map((other) =>
      as(`ethertype ${other}`, other),
    ),
    to("to all on the link", { to: "ff:ff:ff:ff:ff:ff" }),
    to("to a group on the link", { to: "01:00:5e:00:00:01" }),
    to("to the bridge group", { to: "01:80:c2:00:00:00" }),
    to("to no address on the link", { to: "00:00:00:00:00:00" }),
    to("to the victim on the link", { to: ends.victimMac }),
    to("from a group", { from: "01:00:5e:00:00:01" }),
    to("from the router", { from: ends.ethernet.to }),
    to("from the victim", { from: ends.victimMac }),
    to("from nobody", { from: "00:00:00:00:00:00" }),
  ];
}

export function arps(ends: Ends): Malformed[] {
  const { ethernet: link, source, others } = ends;
  const arp = (operation: number, sender: [string, string], target: [string, string], head = "000108000604") =>
    Buffer.concat([
      Buffer.from(head, "hex"),
      u16(operation),
      mac(sender[0]),
      ipBytes(sender[1]),
      mac(target[0]),
      ipBytes(target[1]),
    ]);
  const none = "00:00:00:00:00:00";
  const claims: [string, string][] = [
    ...Object.entries(others),
    ["the router", "169.254.1.1"],
    ["all", "255.255.255.255"],
  ];
  const made: [string, Buffer, string?][] = [
    ...claims.flatMap(([name, address]): [string, Buffer, string?][] => [
      [`ARP reply for ${name}`, arp(2, [link.from, address], [link.to, "169.254.1.1"])],
      [`ARP request as ${name}`, arp(1, [link.from, address], [none, "169.254.1.1"])],
      [`gratuitous ARP for ${name}`, arp(1, [link.from, address], [none, address]), "ff:ff:ff:ff:ff:ff"],
    ]),
    ["ARP with another's MAC", arp(2, [ends.victimMac, source], [link.to, "169.254.1.1"])],
    ["ARP cut", arp(1, [link.from, source], [none, "169.254.1.1"]).subarray(0, 20)],
    ["ARP with long addresses", arp(1, [link.from, source], [none, "169.254.1.1"], "00010800ff10")],
    ["ARP for IPv6", arp(1, [link.from, source], [none, "169.254.1.1"], "000186dd0610")],
    ["ARP of token ring", arp(1, [link.from, source], [none, "169.254.1.1"], "000608000604")],
    ["ARP operation 9", arp(9, [link.from, source], [none, "169.254.1.1"])],
    ["RARP", arp(3, [link.from, source], [link.from, "0.0.0.0"])],
  ];
  return made.map(([name, bytes, to = link.to]) => ({
    name,
    frames: [ethernet({ ...link, to }, name === "RARP" ? 0x8035 : TYPE.arp, bytes)],
  }));
}

export function neighbours(ends: Ends): Malformed[] {
  const { source, others, ethernet: link } = ends;
  const option = (type: number, address = link.from) => Buffer.concat([Buffer.from([type, 1]), mac(address)]);
  const nd = (type: number, from: string, to: string, body: Buffer, hops = 255) =>
    packet(from, to, icmp(58, type, 0, 0, body), { hops });
  const target = (address: string, type: number) => Buffer.concat([ipBytes(address), option(type)]);
  const claims: [string, string][] = [...Object.entries(others), ["the router", HOST_LINK_LOCAL]];
  const advertisement = Buffer.concat([
    Buffer.alloc(8),
    option(1),
    Buffer.from([3, 4, 64, 192]),
    Buffer.alloc(12),
    ipBytes("fd66::"),
  ]);
  return [
    ...claims.flatMap(([name, address]) => [
      entry(ends, `advertises ${name}`, nd(136, source, "ff02::1", target(address, 2))),
      entry(ends, `advertises ${name} to the receiver`, nd(136, source, ends.destination, target(address, 2))),
      entry(ends, `solicits as ${name}`, nd(135, address, "ff02::1", target(source, 1))),
    ]),
    ...["ff02::1", ends.destination, HOST_LINK_LOCAL].flatMap((to) => [
      entry(ends, `router advertisement to ${to}`, nd(134, "fe80::a", to, advertisement)),
      entry(
        ends,
        `redirect to ${to}`,
        nd(137, HOST_LINK_LOCAL, to, Buffer.concat([ipBytes("fe80::a"), ipBytes(others["far"]!)])),
      ),
      entry(ends, `router solicitation to ${to}`, nd(133, source, to, option(1))),
    ]),
    ...[0, 1, 64, 254].map((hops) =>
      entry(
        ends,
        `solicitation with ${hops} hops`,
        nd(135, source, ends.destination, target(ends.destination, 1), hops),
      ),
    ),
    entry(
      ends,
      "option of no length",
      nd(135, source, ends.destination, Buffer.concat([ipBytes(ends.destination), Buffer.alloc(8)])),
    ),
    entry(ends, "solicitation cut", nd(135, source, ends.destination, Buffer.alloc(5))),
    entry(
      ends,
      "solicitation with freight",
      nd(135, source, ends.destination, Buffer.concat([target(ends.destination, 1), Buffer.alloc(200, 0x41)])),
    ),
    entry(ends, "listener query", nd(130, "fe80::a", "ff02::1", Buffer.alloc(20), 1)),
    entry(ends, "listener report to the receiver", nd(143, source, ends.destination, Buffer.alloc(20), 1)),
  ];
}

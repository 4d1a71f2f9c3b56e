import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { conntrackEntryLayout } from "../../src/gen/bpf/layout.gen.ts";
import { kernelTime } from "../../src/kernel/kernel-time.ts";
import { MAIN_TABLE } from "../../src/kernel/netlink/netlink-port.ts";
import { arp, checksum, frame, icmp, ipBytes, ports, TCP, tcp, udp, v4, v6 } from "./frames.ts";
import { whyNoPrograms } from "./kernel-needed.ts";
import { allow, NODE, OUTSIDE, PacketLab, POD_A, POD_B, REMOTE } from "./packet-lab.ts";

const missing = whyNoPrograms();
const OPEN = { aEgress: [allow()], aIngress: [allow()], bEgress: [allow()], bIngress: [allow()] };
const A_TO_B = { source: POD_A.v4, destination: POD_B.v4 };
const B_TO_A = { source: POD_B.v4, destination: POD_A.v4 };
const A_TO_B6 = { source: POD_A.v6, destination: POD_B.v6 };

describe.skipIf(missing)(`packets at the hooks${missing ? ` (${missing})` : ""}`, () => {
  let lab: PacketLab;
  beforeAll(async () => {
    lab = await PacketLab.open();
    await lab.apply({});
    await lab.logFlows();
  });
  beforeEach(() => lab.clearConntrack());
  afterAll(() => lab?.close());

  const fromA = (packet: { type: number; bytes: Buffer }) => lab.send("a", "ingress", frame(packet));
  const fromB = (packet: { type: number; bytes: Buffer }) => lab.send("b", "ingress", frame(packet));
  const fromOutside = (packet: { type: number; bytes: Buffer }) => lab.send("uplink", "ingress", frame(packet));
  const said = ({ verdict, reason }: { verdict: string; reason: string }) => `${verdict} ${reason}`;

  it("switched off, the programs are there and touch nothing", async () => {
    await lab.apply({});
    lab.dataplane.setMode("Off");
    expect(said(fromA(v4(A_TO_B, tcp(40000, 80))))).toBe("next ");
    lab.dataplane.setMode("Active");
    expect(said(fromA(v4(A_TO_B, tcp(40000, 80))))).toBe("drop DROP_POLICY_WORKLOAD_EGRESS");
  });

  it("while eBPF acts nobody without privileges loads programs, unless bpfDisableUnprivileged is false", async () => {
    const isDisabled = async (configuration: { bpfDisableUnprivileged?: boolean }) => {
      lab.disabledUnprivileged = false;
      await lab.apply({ settings: { configuration } });
      return lab.disabledUnprivileged;
    };
    lab.dataplane.setMode("Off");
    expect(await isDisabled({})).toBe(false);
    lab.dataplane.setMode("Active");
    expect(await isDisabled({ bpfDisableUnprivileged: false })).toBe(false);
    expect(await isDisabled({})).toBe(true);
  });

  it("a flow both pods' policies allow goes straight into the pod, one hop older", async () => {
    await lab.apply({ aEgress: [allow({ protocol: 6 })], bIngress: [allow({ protocol: 6, dstPorts: [[80, 80]] })] });
    for (const [wrap, ttl] of [
      [v4(A_TO_B, tcp(40000, 80)), 22],
      [v6(A_TO_B6, tcp(40000, 80)), 21],
    ] as const) {
      const seen = fromA(wrap);
      expect(said(seen)).toBe("redirect PASS_POLICY");
      expect(seen.packet[ttl]).toBe(63);
      expect(seen.packet.subarray(0, 12).toString("hex")).toBe("02000000000b" + "eeeeeeeeeeee");
      if (ttl === 22) expect(checksum(seen.packet.subarray(14, 34))).toBe(0);
    }
    expect(said(fromB(v4(B_TO_A, tcp(80, 40000, TCP.synAck))))).toBe("redirect PASS_ESTABLISHED");
    expect(said(fromA(v4(A_TO_B, tcp(40000, 80, TCP.ack))))).toBe("redirect PASS_ESTABLISHED");
    expect(said(fromA(v4(A_TO_B, tcp(40000, 81))))).toBe("drop DROP_POLICY_WORKLOAD_INGRESS");
    expect(said(fromA(v4(A_TO_B, udp(40000, 80))))).toBe("drop DROP_POLICY_WORKLOAD_EGRESS");
    expect(said(fromB(v4(B_TO_A, tcp(80, 40001, TCP.synAck))))).toBe("drop DROP_POLICY_WORKLOAD_EGRESS");
  });

  it("bpfEnforceRPF: a new connection of an uplink needs a way back to its sender, by that uplink if it is strict", async () => {
    const strange = { source: OUTSIDE.v4, destination: POD_A.v4 };
    const near = { source: "192.0.2.9", destination: POD_A.v4 };
    const verdicts = () =>
      [strange, { ...near, source: "203.0.113.9" }, near].map((way) => said(fromOutside(v4(way, tcp(40000, 80)))));
    const netlink = lab.kernel.netlink(lab.netns);
    const other = { device: lab.ifindex("b"), destination: "203.0.113.0/24", type: "unicast" as const, protocol: 3 };
    netlink.changeLink(lab.ifindex("b"), { up: true });
    netlink.replaceRoute({ ...other, table: MAIN_TABLE });
    const [open, wrong] = ["redirect PASS_POLICY", "drop DROP_REVERSE_PATH"];
    const seen: Record<string, string[]> = {};
    for (const [name, reverse_path] of [
      ["Disabled", 0],
      ["Loose", 1],
      ["Strict", 2],
    ] as const) {
      await lab.restart({ reverse_path });
      await lab.apply(OPEN);
      lab.clearConntrack();
      seen[name] = verdicts();
      // Who has a connection needs no new look.
      expect(said(fromOutside(v4(near, tcp(40000, 80, TCP.ack))))).toBe("redirect PASS_ESTABLISHED");
    }
    netlink.changeLink(lab.ifindex("b"), { up: false });
    netlink.close();
    await lab.restart();
    expect(seen).toEqual({ Disabled: [open, open, open], Loose: [wrong, open, open], Strict: [wrong, wrong, open] });
  });

  it("bpfEnforceRPF is Loose where nothing else is said, and is in effect when the agent starts", async () => {
    const first = () => said(fromOutside(v4({ source: OUTSIDE.v4, destination: POD_A.v4 }, tcp(40000, 80))));
    const withRpf = async (bpfEnforceRPF?: "Disabled") => {
      await lab.dataplane.close();
      lab.forgetPrograms();
      lab.dataplane = await lab.open({});
      const configuration = bpfEnforceRPF && { bpfEnforceRPF };
      await lab.apply({ ...OPEN, settings: { ...(configuration && { configuration }) } });
      lab.clearConntrack();
      return first();
    };
    expect([await withRpf(), await withRpf("Disabled")]).toEqual(["drop DROP_REVERSE_PATH", "redirect PASS_POLICY"]);
    await lab.restart();
  });

  it("a change that forbids an established flow cuts it at the next packet, whichever way that goes", async () => {
    const rules = { aEgress: [allow()], bIngress: [allow({ protocol: 6 })] };
    for (const first of ["request", "answer"]) {
      await lab.apply(rules);
      const port = first === "request" ? 41000 : 41001;
      fromA(v4(A_TO_B, tcp(port, 80)));
      expect(said(fromB(v4(B_TO_A, tcp(80, port, TCP.synAck))))).toBe("redirect PASS_ESTABLISHED");
      await lab.apply({ ...rules, bIngress: [allow({ protocol: 17 })] });
      const seen =
        first === "request" ? fromA(v4(A_TO_B, tcp(port, 80, TCP.ack))) : fromB(v4(B_TO_A, tcp(80, port, TCP.ack)));
      expect(said(seen)).toBe("drop DROP_POLICY_WORKLOAD_INGRESS");
    }
  });

  it("a change that still allows it leaves it alone, after one look", async () => {
    await lab.apply({ aEgress: [allow()], bIngress: [allow()] });
    fromA(v4(A_TO_B, udp(5000, 53)));
    await lab.apply({ aEgress: [allow()], bIngress: [allow({ protocol: 17 })] });
    expect(said(fromB(v4(B_TO_A, udp(53, 5000))))).toBe("redirect PASS_POLICY");
    expect(said(fromB(v4(B_TO_A, udp(53, 5000))))).toBe("redirect PASS_ESTABLISHED");
    expect(said(fromA(v4(A_TO_B, udp(5000, 53))))).toBe("redirect PASS_ESTABLISHED");
  });

  it("an entry that another CPU refreshed after this packet's time was read is alive, not centuries old", async () => {
    await lab.apply({ aEgress: [allow()], bIngress: [allow()] });
    fromA(v4(A_TO_B, tcp(42000, 80)));
    expect(said(fromB(v4(B_TO_A, tcp(80, 42000, TCP.synAck))))).toBe("redirect PASS_ESTABLISHED");
    const flows = lab.map("flows");
    const later = kernelTime() + 60_000_000_000n;
    for (const [key, value] of flows.entries()) {
      value.writeBigUInt64LE(later, conntrackEntryLayout.at.lastSeen);
      flows.update(key, value);
    }
    flows.close();
    expect(said(fromA(v4(A_TO_B, tcp(42000, 80, TCP.ack))))).toBe("redirect PASS_ESTABLISHED");
    expect(said(fromB(v4(B_TO_A, tcp(80, 42000, TCP.ack))))).toBe("redirect PASS_ESTABLISHED");
  });

  it("a pod speaks with its own addresses only", async () => {
    await lab.apply(OPEN);
    expect(said(fromA(v4({ ...A_TO_B, source: POD_B.v4 }, udp(1, 2))))).toBe("drop DROP_SPOOFED_SOURCE");
    expect(said(fromA(v6({ ...A_TO_B6, source: "fd65::77" }, udp(1, 2))))).toBe("drop DROP_SPOOFED_SOURCE");
    expect(said(fromA(v6({ ...A_TO_B6, source: "fe80::1" }, udp(1, 2))))).toBe("drop DROP_SPOOFED_SOURCE");
    expect(said(fromA(v6({ ...A_TO_B6, source: `::ffff:${POD_A.v4}` }, udp(1, 2))))).toBe("drop DROP_MALFORMED");
    expect(said(fromOutside(v4(A_TO_B, udp(1, 2))))).toBe("drop DROP_SPOOFED_SOURCE");
  });

  it("ARP: a pod answers for itself only", async () => {
    await lab.apply({});
    const own = { mac: "02:00:00:00:00:0a", address: POD_A.v4 };
    expect(said(fromA(arp(own)))).toBe("next PASS_ARP");
    expect(said(fromA(arp({ ...own, address: "0.0.0.0" })))).toBe("next PASS_ARP");
    expect(said(fromA(arp({ ...own, address: POD_B.v4 })))).toBe("drop DROP_SPOOFED_ARP");
    expect(said(fromA(arp({ ...own, mac: "02:00:00:00:00:0b" })))).toBe("drop DROP_SPOOFED_ARP");
    expect(said(fromA({ ...arp(own), bytes: arp(own).bytes.subarray(0, 20) }))).toBe("drop DROP_TRUNCATED");
  });

  it("neighbour discovery: no advertisements of routers, none of others' addresses", async () => {
    await lab.apply({});
    const say = (type: number, target: string, source = POD_A.v6, hops = 255) =>
      said(fromA(v6({ source, destination: "ff02::1", hops }, icmp(58, type, 0, 0, ipBytes(target)))));
    expect(say(135, "fe80::1")).toBe("next PASS_NEIGHBOUR_DISCOVERY");
    expect(say(135, POD_A.v6, "::")).toBe("next PASS_NEIGHBOUR_DISCOVERY");
    expect(say(136, POD_A.v6)).toBe("next PASS_NEIGHBOUR_DISCOVERY");
    expect(say(136, POD_B.v6)).toBe("drop DROP_SPOOFED_NEIGHBOUR");
    expect(say(135, "fe80::1", POD_B.v6)).toBe("drop DROP_SPOOFED_NEIGHBOUR");
    expect(say(134, POD_A.v6, "fe80::a")).toBe("drop DROP_ROUTER_ADVERTISEMENT");
    expect(say(137, POD_A.v6, "fe80::a")).toBe("drop DROP_ROUTER_ADVERTISEMENT");
    expect(say(134, POD_A.v6, "fe80::a", 64)).toBe("drop DROP_SPOOFED_SOURCE");
    expect(say(143, POD_A.v6, "fe80::a", 1)).toBe("next PASS_NEIGHBOUR_DISCOVERY");
  });

  it("tagged frames and other protocols do not come out of a pod; an uplink's belong to others", async () => {
    await lab.apply(OPEN);
    const packet = v4(A_TO_B, udp(1, 2));
    expect(said(lab.send("a", "ingress", frame(packet, { type: 0x8100 })))).toBe("drop DROP_VLAN");
    expect(said(lab.send("a", "ingress", frame(packet, { type: 0x88a8 })))).toBe("drop DROP_VLAN");
    expect(said(lab.send("a", "ingress", frame(packet, { type: 0x88cc })))).toBe("drop DROP_NOT_IP");
    expect(said(lab.send("uplink", "ingress", frame(packet, { type: 0x8100 })))).toBe("next PASS_OTHER_PROTOCOL");
  });

  it("what is cut short or does not add up is dropped, at every length", async () => {
    await lab.apply(OPEN);
    const whole = frame(v4(A_TO_B, tcp(1, 2)));
    // The kernel runs no test with less than an IP header.
    for (let length = 34; length < whole.length; length++) {
      expect([length, said(lab.send("a", "ingress", whole.subarray(0, length)))]).toEqual([
        length,
        "drop DROP_TRUNCATED",
      ]);
    }
    expect(said(fromA(v4({ ...A_TO_B, length: 10 }, tcp(1, 2))))).toBe("drop DROP_MALFORMED");
    expect(said(fromA(v4({ ...A_TO_B, length: 30 }, tcp(1, 2))))).toBe("drop DROP_TRUNCATED");
    const shortHeader = v4(A_TO_B, tcp(1, 2));
    shortHeader.bytes[0] = 0x44;
    expect(said(fromA(shortHeader))).toBe("drop DROP_MALFORMED");
    expect(said(fromA({ ...v6(A_TO_B6, tcp(1, 2)), type: 0x0800 }))).toBe("drop DROP_MALFORMED");
  });

  it("options are read past, and left to the stack to answer for", async () => {
    await lab.apply({ ...OPEN, bIngress: [allow({ protocol: 6, dstPorts: [[80, 80]] })] });
    const options = Buffer.from("0101010194040000", "hex");
    expect(said(fromA(v4({ ...A_TO_B, options }, tcp(1, 80))))).toBe("next PASS_POLICY");
    expect(said(fromA(v4({ ...A_TO_B, options }, tcp(1, 81))))).toBe("drop DROP_POLICY_WORKLOAD_INGRESS");
  });

  it("a bad header checksum stays bad: whoever gets the packet still sees it", async () => {
    await lab.apply(OPEN);
    const packet = v4(A_TO_B, udp(1, 2));
    packet.bytes.writeUInt16BE(packet.bytes.readUInt16BE(10) ^ 0x1111, 10);
    const seen = fromA(packet);
    expect(seen.verdict).toBe("redirect");
    expect(checksum(seen.packet.subarray(14, 34))).not.toBe(0);
  });

  it("fragments get the verdict of the first, and without it none", async () => {
    await lab.apply({ aEgress: [allow()], bIngress: [allow({ protocol: 17, dstPorts: [[53, 53]] })] });
    const part = (id: number, offset: number, more: boolean, port: number) =>
      said(
        fromA(
          v4({ ...A_TO_B, id, offset, more }, offset === 0 ? udp(9, port) : { protocol: 17, bytes: Buffer.alloc(16) }),
        ),
      );
    expect(part(1, 2, false, 53)).toBe("drop DROP_FRAGMENT_WITHOUT_FIRST");
    expect(part(1, 0, true, 53)).toBe("redirect PASS_POLICY");
    expect(part(1, 2, false, 53)).toBe("redirect PASS_ESTABLISHED");
    expect(part(2, 0, true, 54)).toBe("drop DROP_POLICY_WORKLOAD_INGRESS");
    expect(part(2, 2, false, 54)).toBe("drop DROP_POLICY_WORKLOAD_INGRESS");
    const tiny = v4({ ...A_TO_B, id: 3, more: true }, { protocol: 17, bytes: Buffer.alloc(4) });
    expect(said(fromA(tiny))).toBe("drop DROP_TRUNCATED");
    const fragment6 = (offset: number, more: number, payload: { protocol: number; bytes: Buffer }) => {
      const header = Buffer.alloc(8);
      header.writeUInt16BE(offset | more, 2);
      header.writeUInt32BE(77, 4);
      return said(fromA(v6({ ...A_TO_B6, extensions: [[44, header]] }, payload)));
    };
    expect(fragment6(16, 0, { protocol: 17, bytes: Buffer.alloc(16) })).toBe("drop DROP_FRAGMENT_WITHOUT_FIRST");
    expect(fragment6(0, 1, udp(9, 53))).toBe("redirect PASS_POLICY");
    expect(fragment6(16, 0, { protocol: 17, bytes: Buffer.alloc(16) })).toBe("redirect PASS_ESTABLISHED");
  });

  it("extension headers are stepped over, but not for ever", async () => {
    await lab.apply({ aEgress: [allow()], bIngress: [allow({ protocol: 6, dstPorts: [[80, 80]] })] });
    const chain = (...types: number[]) => types.map((type) => [type, Buffer.from("0000010400000000", "hex")] as const);
    const say = (extensions: ReturnType<typeof chain>, port: number) =>
      said(fromA(v6({ ...A_TO_B6, extensions }, tcp(1, port))));
    expect(say(chain(0, 60, 60), 80)).toBe("next PASS_POLICY");
    expect(say(chain(0, 60, 60), 81)).toBe("drop DROP_POLICY_WORKLOAD_INGRESS");
    expect(say(chain(0, 60, 60, 60, 60, 60), 80)).toBe("next PASS_ESTABLISHED".replace("ESTABLISHED", "POLICY"));
    expect(say(chain(0, 60, 60, 60, 60, 60, 60), 80)).toBe("drop DROP_EXTENSION_HEADERS");
    expect(say([[43, Buffer.from("0000000100000000", "hex")]], 80)).toBe("drop DROP_SOURCE_ROUTE");
  });

  it("an ICMP error passes when the packet inside belongs to a flow, in both directions; others are judged", async () => {
    await lab.apply({ aEgress: [allow({ protocol: 6 })], bIngress: [allow({ protocol: 6 })] });
    fromA(v4(A_TO_B, tcp(40000, 80)));
    const about = (inner: { bytes: Buffer }, type = 3) => icmp(1, type, 1, 0, inner.bytes.subarray(0, 28));
    expect(said(fromB(v4(B_TO_A, about(v4(A_TO_B, tcp(40000, 80))))))).toBe("redirect PASS_RELATED");
    expect(said(fromA(v4(A_TO_B, about(v4(B_TO_A, tcp(80, 40000))))))).toBe("redirect PASS_RELATED");
    expect(said(fromB(v4(B_TO_A, about(v4(A_TO_B, tcp(40000, 81))))))).toBe("drop DROP_POLICY_WORKLOAD_EGRESS");
    const elsewhere = { ...A_TO_B, source: "10.65.0.9" };
    expect(said(fromB(v4(B_TO_A, about(v4(elsewhere, tcp(40000, 80))))))).toBe("drop DROP_POLICY_WORKLOAD_EGRESS");
    // What is quoted behind the packet's end is not part of it.
    for (const length of [28, 47, 48, 55]) {
      const cut = v4({ ...B_TO_A, length }, about(v4(A_TO_B, tcp(40000, 80))));
      expect([length, said(fromB(cut))]).toEqual([length, "drop DROP_POLICY_WORKLOAD_EGRESS"]);
    }
    fromA(v6(A_TO_B6, tcp(40000, 80)));
    const inner = v6(A_TO_B6, tcp(40000, 80)).bytes.subarray(0, 48);
    const error6 = v6({ source: POD_B.v6, destination: POD_A.v6 }, icmp(58, 2, 0, 0, inner));
    expect(said(fromB(error6))).toBe("redirect PASS_RELATED");
  });

  it("an echo is answered by its reply, not by the other's echo", async () => {
    await lab.apply({ aEgress: [allow({ protocol: 1, icmp: { type: 8 } })], bIngress: [allow({ protocol: 1 })] });
    expect(said(fromA(v4(A_TO_B, icmp(1, 8, 0, 7))))).toBe("redirect PASS_POLICY");
    expect(said(fromB(v4(B_TO_A, icmp(1, 8, 0, 7))))).toBe("drop DROP_POLICY_WORKLOAD_EGRESS");
    expect(said(fromB(v4(B_TO_A, icmp(1, 0, 0, 7))))).toBe("redirect PASS_ESTABLISHED");
    expect(said(fromA(v4(A_TO_B, icmp(1, 13))))).toBe("drop DROP_POLICY_WORKLOAD_EGRESS");
  });

  it("SCTP is never taken for TCP or UDP", async () => {
    const sctp = ports(132, 40000, 80, Buffer.alloc(12));
    await lab.apply({ aEgress: [allow()], bIngress: [allow({ protocol: 6 }), allow({ protocol: 17 })] });
    expect(said(fromA(v4(A_TO_B, sctp)))).toBe("drop DROP_POLICY_WORKLOAD_INGRESS");
    await lab.apply({ aEgress: [allow()], bIngress: [allow({ protocol: 132, dstPorts: [[81, 81]] })] });
    expect(said(fromA(v4(A_TO_B, sctp)))).toBe("drop DROP_POLICY_WORKLOAD_INGRESS");
    await lab.apply({ aEgress: [allow()], bIngress: [allow({ protocol: 132 })] });
    expect(said(fromA(v4(A_TO_B, sctp)))).toBe("redirect PASS_POLICY");
  });

  it("TCP: a SYN opens again what stands or closes; FIN both ways and RST close", async () => {
    await lab.apply({ aEgress: [allow()], bIngress: [allow()] });
    const states = async () => {
      const { rows } = await lab.dataplane.show("conntrack");
      return rows.map(([, from, , , state]) => `${from} ${state}`);
    };
    fromA(v4(A_TO_B, tcp(40000, 80)));
    expect(await states()).toEqual(["10.65.0.1:40000 opening", "10.65.0.2:80 opening"]);
    fromB(v4(B_TO_A, tcp(80, 40000, TCP.synAck)));
    expect(await states()).toEqual(["10.65.0.1:40000 established", "10.65.0.2:80 established"]);
    expect(said(fromA(v4(A_TO_B, tcp(40000, 80))))).toBe("redirect PASS_POLICY");
    fromB(v4(B_TO_A, tcp(80, 40000, TCP.synAck)));
    fromA(v4(A_TO_B, tcp(40000, 80, TCP.fin | TCP.ack)));
    expect(await states()).toEqual(["10.65.0.1:40000 established", "10.65.0.2:80 established"]);
    fromB(v4(B_TO_A, tcp(80, 40000, TCP.fin | TCP.ack)));
    expect(await states()).toEqual(["10.65.0.1:40000 closing", "10.65.0.2:80 closing"]);
    expect(said(fromB(v4(B_TO_A, tcp(80, 40000, TCP.synAck))))).toBe("drop DROP_POLICY_WORKLOAD_EGRESS");
  });

  it("pods elsewhere are reached by the node's routes, the outside by its stack; what is too large or too old too", async () => {
    await lab.apply(OPEN);
    const seen = fromA(v4({ source: POD_A.v4, destination: REMOTE.v4 }, udp(1, 2)));
    expect(said(seen)).toBe("redirect PASS_POLICY");
    expect(seen.packet.subarray(0, 12).toString("hex")).toBe("020000000202" + "020000000101");
    const back = { source: REMOTE.v4, destination: POD_A.v4 };
    expect(said(fromOutside(v4(back, udp(2, 1))))).toBe("redirect PASS_ESTABLISHED");
    const large = udp(1, 2, "x".repeat(1600));
    expect(said(fromA(v4({ source: POD_A.v4, destination: REMOTE.v4 }, large)))).toBe("next PASS_ESTABLISHED");
    expect(said(fromA(v4({ source: POD_A.v4, destination: REMOTE.v4, ttl: 1 }, udp(1, 2))))).toBe(
      "next PASS_ESTABLISHED",
    );
    expect(said(fromA(v4({ source: POD_A.v4, destination: OUTSIDE.v4 }, udp(1, 2))))).toBe("next PASS_POLICY");
  });

  it("what passed the stack once goes that way back, so that the stack sees both directions", async () => {
    await lab.apply(OPEN);
    expect(said(lab.send("b", "egress", frame(v4(A_TO_B, tcp(7, 80))), "a"))).toBe("next PASS_POLICY");
    expect(said(fromB(v4(B_TO_A, tcp(80, 7, TCP.synAck))))).toBe("next PASS_ESTABLISHED");
  });

  it("a node always reaches its own pods, and they may answer", async () => {
    await lab.apply({});
    const probe = { source: NODE.v4, destination: POD_A.v4 };
    expect(said(lab.send("a", "egress", frame(v4(probe, tcp(50000, 8080)))))).toBe("next PASS_FROM_HOST");
    const answer = v4({ source: POD_A.v4, destination: NODE.v4 }, tcp(8080, 50000, TCP.synAck));
    expect(said(fromA(answer))).toBe("next PASS_ESTABLISHED");
    expect(said(lab.send("a", "egress", frame(v4(probe, tcp(50000, 8080))), "uplink"))).toMatch(/^drop/);
  });

  it("endpointToHost closes the node to its pods, after their own egress", async () => {
    const toNode = v4({ source: POD_A.v4, destination: NODE.v4 }, tcp(1, 22));
    await lab.apply({ ...OPEN, settings: { endpointToHost: "drop" } });
    expect(said(fromA(toNode))).toBe("drop DROP_POLICY_WORKLOAD_EGRESS");
    await lab.apply({ ...OPEN, settings: { endpointToHost: "accept" } });
    expect(said(fromA(toNode))).toBe("next PASS_POLICY");
  });

  it("without a host endpoint an uplink is left alone, but for what goes into pods", async () => {
    await lab.apply({ bIngress: [allow({ protocol: 6 })] });
    expect(said(fromOutside(v4({ source: OUTSIDE.v4, destination: NODE.v4 }, tcp(1, 22))))).toBe("next PASS_NOT_OURS");
    expect(said(fromOutside(v4({ source: OUTSIDE.v4, destination: POD_B.v4 }, tcp(1, 80))))).toBe(
      "redirect PASS_POLICY",
    );
    expect(said(fromOutside(v4({ source: OUTSIDE.v4, destination: POD_B.v4 }, udp(1, 80))))).toBe(
      "drop DROP_POLICY_WORKLOAD_INGRESS",
    );
  });

  it("a host endpoint closes the node, except failsafe ports and what the node itself began", async () => {
    await lab.apply({ host: { egress: [allow()] } });
    const toNode = { source: OUTSIDE.v4, destination: NODE.v4 };
    expect(said(fromOutside(v4(toNode, tcp(1, 8080))))).toBe("drop DROP_POLICY_HOST");
    expect(said(fromOutside(v4(toNode, tcp(1, 22))))).toBe("next PASS_POLICY");
    expect(said(fromOutside(v4(toNode, udp(1, 22))))).toBe("drop DROP_POLICY_HOST");
    const toWorld = { source: NODE.v4, destination: OUTSIDE.v4 };
    expect(said(lab.send("uplink", "egress", frame(v4(toWorld, tcp(5, 443)))))).toBe("next PASS_POLICY");
    expect(said(fromOutside(v4(toNode, tcp(443, 5, TCP.synAck))))).toBe("next PASS_ESTABLISHED");
    expect(
      said(
        fromOutside(v6({ source: "fe80::1", destination: NODE.v6, hops: 255 }, icmp(58, 135, 0, 0, ipBytes(NODE.v6)))),
      ),
    ).toBe("next PASS_NEIGHBOUR_DISCOVERY");
  });

  it("policy for forwarded packets stands before the pod's own", async () => {
    const rules = { ...OPEN, host: { forwardIngress: [allow({ protocol: 6 })] } };
    await lab.apply(rules);
    const toPod = { source: OUTSIDE.v4, destination: POD_B.v4 };
    expect(said(fromOutside(v4(toPod, tcp(1, 80))))).toBe("redirect PASS_POLICY");
    expect(said(fromOutside(v4(toPod, udp(1, 80))))).toBe("drop DROP_POLICY_HOST");
  });

  it("an interface nobody told the programs about: a pod's is closed, a node's is open", async () => {
    await lab.apply(OPEN);
    const interfaces = lab.map("interfaces");
    for (const [key] of interfaces.entries()) interfaces.delete(key);
    interfaces.close();
    expect(said(fromA(v4(A_TO_B, udp(1, 2))))).toBe("drop DROP_INTERFACE_NOT_READY");
    expect(said(fromOutside(v4({ source: OUTSIDE.v4, destination: POD_B.v4 }, udp(1, 2))))).toBe("next PASS_NOT_OURS");
    await lab.dataplane.resync();
    expect(said(fromA(v4(A_TO_B, udp(1, 2))))).toBe("redirect PASS_POLICY");
  });

  it("a policy program that is missing: a pod's packets are dropped, a node's pass", async () => {
    await lab.apply({ ...OPEN, host: {} });
    const policies = lab.map("policies");
    for (const [key] of policies.entries()) policies.delete(key);
    policies.close();
    expect(said(fromA(v4(A_TO_B, udp(1, 2))))).toBe("drop DROP_POLICY_MISSING");
    expect(said(fromOutside(v4({ source: OUTSIDE.v4, destination: NODE.v4 }, udp(1, 2))))).toBe("next PASS_NO_POLICY");
    await lab.restart();
    await lab.apply(OPEN);
  });

  it("every drop is in the flow logs, by its reason", async () => {
    const [dropped, logged] = await lab.droppedAndLogged();
    expect(logged).toEqual(dropped);
  });
});

import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import { addressBytes } from "../../src/kernel/netlink/netlink-message.ts";
import { Random } from "../calc/random.ts";
import { whyNoNftables } from "../kernel/why-not.ts";
import { FlowLab, total } from "./flow-lab.ts";
import { TABLE } from "./lab.ts";

const reason = whyNoNftables();
const UDP = 17;
const TCP = 6;
const ESP = 50;
const KILLS = 20;
/** Below those that the kernel chooses. */
const FIRST_PORT = 5_000;
/** How long no agent counts at most, but for its start. */
const AWAY = 2_000;
/** Of IP and UDP. */
const HEADERS = { 4: 28, 6: 48 } as const;

describe.skipIf(reason)(`what nftables counts for flow logs${reason ? ` (${reason})` : ""}`, () => {
  let lab: FlowLab;
  beforeEach(async () => {
    lab = await FlowLab.make();
    lab.addPod("a", { app: "a" });
    lab.addPod("b", { app: "b" });
    await lab.settle();
  });
  afterEach(async () => {
    await lab.stop();
  });

  const order = (from: string, what: { do: string; [field: string]: unknown }) => lab.who(from).order(what);

  it.each([4, 6] as const)("UDP of IPv%i is what was sent, to the packet and the byte, both ways", async (family) => {
    await lab.next();
    const address = lab.addressOf("b", family);
    const source = lab.addressOf("a", family);
    const bytes = 100;
    await order("a", { do: "datagrams", address, port: 80, count: 500, bytes, answered: true });
    await order("a", { do: "datagrams", address, port: 8080, count: 300, bytes });
    await order("outside", { do: "datagrams", address, port: 9000, count: 200, bytes, answered: true });
    const sums = await lab.next();
    const size = bytes + HEADERS[family];
    const of = { source, destination: address, protocol: UDP, verdict: "Allow" } as const;
    expect(total(sums, { ...of, destinationPort: 80 })).toEqual({
      ...{ packets: 500, bytes: 500 * size, replyPackets: 500, replyBytes: 500 * size, started: 1, ended: 0 },
    });
    expect(total(sums, { ...of, destinationPort: 8080 })).toMatchObject({
      packets: 300,
      bytes: 300 * size,
      replyPackets: 0,
    });
    const outside = { ...of, source: lab.addressOf("outside", family), destinationPort: 9000 };
    expect(total(sums, outside)).toMatchObject({ packets: 200, replyPackets: 200, started: 1 });
    // A pod without policy is allowed by the profile of its namespace, at both ends.
    const [sum] = sums.filter(({ destinationPort }) => destinationPort === 80);
    expect(sum).toMatchObject({
      egress: ["kns.default;egress;0"],
      ingress: ["kns.default;ingress;0"],
      ...{ service: undefined, reason: undefined, live: 1 },
    });
    expect(await lab.next()).toEqual([]);
  });

  it("counts each connection of TCP: closed, reset, short, and again with the same ports", async () => {
    await lab.next();
    const address = lab.addressOf("b");
    const common = { do: "connections", address, bytes: 1_000 };
    expect(await order("a", { ...common, port: 80, count: 200 })).toBe(200);
    expect(await order("a", { ...common, port: 8080, count: 200, reset: true })).toBe(200);
    // The kernel replaces an entry that was reset: no sweep sees it.
    expect(await order("a", { ...common, port: 9000, count: 200, reset: true, sourcePort: 45_678 })).toBe(200);
    const sums = await lab.next();
    for (const destinationPort of [80, 8080, 9000]) {
      const of = total(sums, { destinationPort, protocol: TCP, verdict: "Allow" });
      expect(of, `port ${destinationPort}`).toMatchObject({ started: 200, ended: 200 });
      expect(of.bytes).toBeGreaterThan(200 * 1_000);
      expect(of.replyBytes).toBeGreaterThan(200 * 1_000);
    }
    expect(sums.filter(({ live }) => live > 0)).toEqual([]);
    // Their entries stay for a while, and end without being counted again.
    expect(await lab.next()).toEqual([]);
  });

  it("names the Service that was asked for, and the pod that answered", async () => {
    const service = { name: "web", namespace: "default" };
    lab.set(
      {
        ...{ apiVersion: "v1", kind: "Service", metadata: service },
        spec: {
          clusterIP: "10.96.0.7",
          clusterIPs: ["10.96.0.7"],
          ports: [{ name: "http", port: 80, targetPort: 8080, protocol: "UDP" }],
        },
      } as never,
      {
        ...{ apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice" },
        metadata: { ...service, name: "web-1", labels: { "kubernetes.io/service-name": "web" } },
        ...{ addressType: "IPv4", ports: [{ name: "http", port: 8080, protocol: "UDP" }] },
        endpoints: [{ addresses: [lab.addressOf("b")], conditions: { ready: true } }],
      } as never,
    );
    await lab.settle();
    // What kube-proxy does for it.
    await lab.nft.run(
      `add table ip kube\nadd chain ip kube pre { type nat hook prerouting priority -100; }\nadd rule ip kube pre ip daddr 10.96.0.7 udp dport 80 dnat to ${lab.addressOf("b")}:8080`,
    );
    await lab.next();
    await order("a", { do: "datagrams", address: "10.96.0.7", port: 80, count: 50, bytes: 10, answered: true });
    const sums = await lab.next();
    expect(sums).toHaveLength(1);
    expect(sums[0]).toMatchObject({
      ...{ source: lab.addressOf("a"), destination: lab.addressOf("b"), destinationPort: 8080 },
      ...{ service: "default/web:http", packets: 50, replyPackets: 50, started: 1 },
    });
  });

  it("counts from the beginning on: what was there before is not added, nor said to begin", async () => {
    const address = lab.addressOf("b");
    const held = { do: "datagrams", address, port: 80, bytes: 10, answered: true, sourcePort: 40_001 };
    await order("a", { ...held, count: 100 });
    await lab.next();
    await order("a", { ...held, count: 7 });
    const sums = await lab.next();
    expect(total(sums, { destinationPort: 80 })).toMatchObject({ packets: 7, replyPackets: 7, started: 0 });
  });

  it("counts what rules drop, and names the rule", async () => {
    const kind = vendorNames.kinds.globalNetworkPolicy.kind;
    lab.setStored(kind, "default.web", {
      ...{ tier: "default", selector: "app == 'b'", types: ["Ingress"] },
      ingress: [
        { action: "Deny", protocol: "UDP", destination: { ports: [9000] } },
        { action: "Allow", protocol: "UDP", destination: { ports: [80] } },
      ],
    });
    await lab.settle();
    await lab.next();
    for (const family of [4, 6] as const) {
      const address = lab.addressOf("b", family);
      await order("a", { do: "datagrams", address, port: 80, count: 10, bytes: 10, answered: true });
      await order("a", { do: "datagrams", address, port: 9000, count: 40 + family, bytes: 10 });
      await order("outside", { do: "datagrams", address, port: 8080, count: 60 + family, bytes: 10 });
    }
    const sums = await lab.next();
    for (const family of [4, 6] as const) {
      const destination = lab.addressOf("b", family);
      const size = 10 + HEADERS[family];
      const byRule = {
        destination,
        source: lab.addressOf("a", family),
        destinationPort: 9000,
        verdict: "Deny" as const,
      };
      expect(total(sums, byRule)).toMatchObject({ packets: 40 + family, bytes: (40 + family) * size });
      expect(sums.find((sum) => sum.destination === destination && sum.destinationPort === 9000)).toMatchObject({
        ...{ reason: "policy_workload_ingress", egress: ["kns.default;egress;0"] },
        ingress: ["gnp/default.web;ingress;0"],
      });
      const byEnd = {
        destination,
        source: lab.addressOf("outside", family),
        destinationPort: 8080,
        verdict: "Deny" as const,
      };
      expect(total(sums, byEnd)).toMatchObject({ packets: 60 + family });
      expect(sums.find((sum) => sum.destination === destination && sum.destinationPort === 8080)).toMatchObject({
        ...{ reason: "policy_workload_ingress", egress: undefined, ingress: ["default;end"] },
      });
      expect(total(sums, { destination, destinationPort: 80, verdict: "Allow" })).toMatchObject({ packets: 10 });
    }
    // What was read is not read again.
    expect((await lab.next()).filter(({ verdict }) => verdict === "Deny")).toEqual([]);
  });

  it("counts packets of protocols without ports", async () => {
    const kind = vendorNames.kinds.globalNetworkPolicy.kind;
    lab.setStored(kind, "default.no-esp", {
      ...{ tier: "default", selector: "app == 'b'", types: ["Ingress"] },
      ingress: [{ action: "Deny", protocol: ESP }, { action: "Allow" }],
    });
    await lab.settle();
    await lab.next();
    for (const family of [4, 6] as const) {
      sendRaw(lab, "a", "b", { family, protocol: ESP, count: 20 + family });
      sendRaw(lab, "b", "a", { family, protocol: ESP, count: 30 + family });
      sendRaw(lab, "a", "b", { family, protocol: family === 4 ? 1 : 58, count: 5, payload: echo(family) });
    }
    await expect.poll(async () => total(await sumsSoFar(lab), { verdict: "Deny" }).packets).toBe(20 + 4 + 20 + 6);
    const sums = await sumsSoFar(lab);
    for (const family of [4, 6] as const) {
      const [a, b] = [lab.addressOf("a", family), lab.addressOf("b", family)];
      const denied = { source: a, destination: b, protocol: ESP, destinationPort: 0, verdict: "Deny" } as const;
      expect(total(sums, denied)).toMatchObject({ packets: 20 + family });
      expect(sums.find((sum) => sum.source === a && sum.verdict === "Deny")?.ingress).toEqual([
        "gnp/default.no-esp;ingress;0",
      ]);
      expect(total(sums, { source: b, destination: a, protocol: ESP, destinationPort: 0 })).toMatchObject({
        packets: 30 + family,
      });
    }
    expect(total(sums, { protocol: 1, source: lab.addressOf("a") })).toMatchObject({ packets: 5, replyPackets: 5 });
  });

  it("misses nothing and counts nothing twice, whenever the agent is killed", { timeout: 300_000 }, async () => {
    denyFromOutside();
    await lab.settle();
    // Ten seconds by default, which on a busy machine an agent may take to start.
    lab.setNodeSysctl("netfilter/nf_conntrack_tcp_timeout_close", "120");
    await lab.next();
    const address = lab.addressOf("b");
    const until = new AbortController();
    const sent = { udp: 0, answers: 0, connections: 0, reset: 0, denied: 0 };
    let resets = 0;
    const traffic = [
      repeated(until.signal, async () => {
        const what = { do: "datagrams", address, port: 80, count: 200, bytes: 50, answered: true };
        const done = (await order("a", what)) as { sent: number; answers: number };
        sent.udp += done.sent;
        sent.answers += done.answers;
      }),
      repeated(until.signal, async () => {
        const what = { do: "connections", address, port: 8080, count: 20, bytes: 100 };
        sent.connections += (await order("a", what)) as number;
      }),
      repeated(until.signal, async () => {
        // Never the same port twice: an entry that is replaced while no agent listens is missed (ADR 0047).
        const what = { do: "connections", address, port: 9000, count: 1, bytes: 100, reset: true };
        sent.reset += (await order("a", { ...what, sourcePort: FIRST_PORT + resets++ })) as number;
      }),
      repeated(until.signal, async () => {
        const what = { do: "datagrams", address, port: 9000, count: 100, bytes: 50 };
        sent.denied += ((await order("outside", what)) as { sent: number }).sent;
      }),
    ];
    const random = new Random(20);
    let countedAt = performance.now();
    const count = async () => {
      await lab.next();
      countedAt = performance.now();
    };
    for (let life = 0; life < KILLS; life++) {
      // In the middle of whatever it does: starting, ending an interval, counting. The kernel forgets a reset connection after ten seconds.
      const pending = count().catch(() => undefined);
      if (performance.now() - countedAt > AWAY) await pending;
      await sleep(random.below(random.chance(25) ? 60 : 1_500));
      await lab.restart();
      await pending;
    }
    until.abort();
    await Promise.all(traffic);
    await lab.next();
    await lab.next();
    const sums = lab.all();
    expect(sent.udp).toBeGreaterThan(KILLS * 50);
    expect(total(sums, { destinationPort: 80 })).toMatchObject({ packets: sent.udp, replyPackets: sent.answers });
    expect(total(sums, { destinationPort: 8080 }).started).toBe(sent.connections);
    expect(total(sums, { destinationPort: 9000, verdict: "Allow" }).started).toBe(sent.reset);
    expect(total(sums, { destinationPort: 9000, verdict: "Deny" }).packets).toBe(sent.denied);
    expect(
      sums.every(({ packets, bytes, replyPackets, started }) => Math.min(packets, bytes, replyPackets, started) >= 0),
    ).toBe(true);
    expect(lab.flows.shed()).toEqual({ merged: 0, unattributed: 0 });
  });

  it("is switched on and off without a break, of packets or of counters of rules", async () => {
    denyFromOutside();
    await lab.settle();
    const address = lab.addressOf("b");
    await order("a", { do: "hold", name: "kept", address, port: 80 });
    const denied = { do: "datagrams", address, port: 9000, count: 30, bytes: 10 };
    const counters = async () =>
      (await lab.dataplane.show("counters")).rows.filter(([rule]) => /outside;ingress;0/.test(rule!));
    for (let round = 1; round <= 3; round++) {
      await order("outside", denied);
      expect(await counters()).toEqual([
        ["gnp/default.not-outside;ingress;0", String(round * 60 - 30), expect.any(String)],
      ]);
      await lab.next();
      await order("outside", denied);
      expect(total(await lab.next(), { verdict: "Deny" }).packets).toBe(30);
      await lab.flows.stop();
      expect(await lab.flows.intervals()).toEqual([]);
      expect(await counters()).toEqual([["gnp/default.not-outside;ingress;0", String(round * 60), expect.any(String)]]);
      expect(await order("a", { do: "say", name: "kept", patience: 5_000 })).toBe(true);
      expect(JSON.stringify(await lab.nft.list(`list table inet ${TABLE}`))).not.toContain("denied4");
    }
  });

  it("keeps what policy ended apart from what it carried before", async () => {
    await lab.next();
    const address = lab.addressOf("b");
    const held = { do: "datagrams", address, port: 80, bytes: 10, sourcePort: 40_002 };
    await order("a", { ...held, count: 50, answered: true });
    denyFrom("a");
    await lab.settle();
    await lab.next();
    await order("a", { ...held, count: 25 });
    await lab.next();
    const of = { destinationPort: 80, protocol: UDP } as const;
    expect(total(lab.all(), { ...of, verdict: "Allow" })).toMatchObject({ packets: 50, replyPackets: 50 });
    expect(total(lab.all(), { ...of, verdict: "Deny" })).toMatchObject({ packets: 25, replyPackets: 0 });
    expect(lab.all().find(({ verdict }) => verdict === "Deny")).toMatchObject({
      ...{ reason: "policy_workload_ingress", ingress: ["gnp/default.not-a;ingress;0"] },
    });
  });

  function denyFromOutside() {
    const source = { nets: [`${lab.addressOf("outside")}/32`] };
    setDeny("not-outside", [{ action: "Deny", source }, { action: "Allow" }]);
  }

  function denyFrom(app: string) {
    setDeny(`not-${app}`, [{ action: "Deny", source: { selector: `app == '${app}'` } }, { action: "Allow" }]);
  }

  function setDeny(name: string, ingress: object[]) {
    const kind = vendorNames.kinds.globalNetworkPolicy.kind;
    lab.setStored(kind, `default.${name}`, { tier: "default", selector: "app == 'b'", types: ["Ingress"], ingress });
  }
});

async function repeated(signal: AbortSignal, act: () => Promise<void>): Promise<void> {
  while (!signal.aborted) await act();
}

async function sumsSoFar(lab: FlowLab) {
  await lab.next();
  return lab.all();
}

/** As a pod's raw socket would: packets from one pod to another. */
function sendRaw(
  lab: FlowLab,
  from: string,
  to: string,
  {
    family,
    protocol,
    count,
    payload = Buffer.alloc(16),
  }: { family: 4 | 6; protocol: number; count: number; payload?: Buffer },
): void {
  const netns = lab.kernel.netns.open(lab.placeOf(from));
  const netlink = lab.kernel.netlink(netns);
  const frames = lab.kernel.frames(netns);
  const mac = netlink.link("eth0")!.mac!.replaceAll(":", "");
  const [source, destination] = [lab.addressOf(from, family), lab.addressOf(to, family)];
  const socket = frames.open(
    { device: netlink.link("eth0")!.index, protocol: family === 4 ? 0x0800 : 0x86dd },
    () => {},
  );
  const packet =
    family === 4 ? ipv4(protocol, source, destination, payload) : ipv6(protocol, source, destination, payload);
  const frame = Buffer.concat([Buffer.from(`eeeeeeeeeeee${mac}${family === 4 ? "0800" : "86dd"}`, "hex"), packet]);
  for (let index = 0; index < count; index++) socket.send(frame);
  socket.close();
  netlink.close();
  netns.close();
}

function ipv4(protocol: number, source: string, destination: string, payload: Buffer): Buffer {
  const header = Buffer.alloc(20);
  header.set([0x45, 0, 0, 20 + payload.length, 0, 0, 0, 0, 64, protocol]);
  header.set(addressBytes(source).bytes, 12);
  header.set(addressBytes(destination).bytes, 16);
  header.writeUInt16BE(checksum(header), 10);
  return Buffer.concat([header, payload]);
}

function ipv6(protocol: number, source: string, destination: string, payload: Buffer): Buffer {
  const header = Buffer.alloc(40);
  header.set([0x60, 0, 0, 0, 0, payload.length, protocol, 64]);
  header.set(addressBytes(source).bytes, 8);
  header.set(addressBytes(destination).bytes, 24);
  return Buffer.concat([header, payload]);
}

/** A question; that of IPv6 has no right checksum, so nothing answers it, but it is a packet. */
function echo(family: 4 | 6): Buffer {
  const message = Buffer.from([family === 4 ? 8 : 128, 0, 0, 0, 1, 2, 0, 1]);
  if (family === 4) message.writeUInt16BE(checksum(message), 2);
  return message;
}

function checksum(bytes: Buffer): number {
  let sum = 0;
  for (let at = 0; at < bytes.length; at += 2) sum += bytes.readUInt16BE(at);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}

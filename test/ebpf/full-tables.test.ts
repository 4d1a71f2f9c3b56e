import { readFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import type { ServicePort } from "../../src/calc/model.ts";
import { CONNTRACK_FLAG, conntrackEntryLayout, fiveTupleLayout } from "../../src/gen/bpf/layout.gen.ts";
import type { BpfMap, MapEntry } from "../../src/kernel/bpf/bpf-port.ts";
import { kernelTime, sinceBoot } from "../../src/kernel/kernel-time.ts";
import { TCP, tcp, v4 } from "./frames.ts";
import { whyNoPrograms } from "./kernel-needed.ts";
import { deltaOf, NODE, OUTSIDE, POD_A, POD_B } from "./packet-lab.ts";
import { ANY_CLIENT, ServiceLab, servicePort } from "./service-lab.ts";

const missing = whyNoPrograms();
const FULL = process.env["FULL_TABLES"] === "full";
/** As on a node, where the size is what the programs say. */
const FLOWS = FULL ? 1_000_000 : 100_000;
const VIP = "10.96.0.10";
const WEB = servicePort("web", [`*${POD_B.v4}:8080`], { clusterAddress: VIP, nodePort: 30_080 });
/** Of an IPv4 address in the sixteen bytes both families have. */
const LAST_FOUR = 12;
/** Entries cannot be older than the machine, which may have just booted; what is in use must not grow old on one that is busy. */
const shortTimeoutNs = () => kernelTime() / 4n;
const to = (source: string, destination: string) => ({ source, destination });

describe.skipIf(missing)(`tables that are full${missing ? ` (${missing})` : ""}`, () => {
  let lab: ServiceLab;
  afterEach(() => lab?.close());

  const line = (...args: Parameters<ServiceLab["put"]>) => lab.put(...args).line;
  const asks = (port: number, flags?: number) => line("a", v4(to(POD_A.v4, VIP), tcp(port, 80, flags)));
  const answers = (port: number, flags: number) => line("b", v4(to(POD_B.v4, POD_A.v4), tcp(8080, port, flags)));
  const openFlow = (port: number) => [asks(port), answers(port, TCP.synAck), asks(port, TCP.ack)];
  const OPENED = (port: number) => [
    `redirect PASS_POLICY | tcp 10.65.0.1:${port} > 10.65.0.2:8080`,
    `redirect PASS_ESTABLISHED | tcp 10.96.0.10:80 > 10.65.0.1:${port}`,
    `redirect PASS_ESTABLISHED | tcp 10.65.0.1:${port} > 10.65.0.2:8080`,
  ];
  const fillOf = (map: string) => lab.packets.dataplane.fill().find((one) => one.map === map)!;

  it("of flows: a new one begins, those in use go on, and those not used longest make room, and are told so when they speak", async () => {
    lab = await ServiceLab.open({}, { flows: FLOWS });
    await lab.serve([WEB]);
    const flows = lab.packets.map("flows");
    expect(flows.info.maxEntries).toBe(FLOWS);
    // More than the kernel keeps apart for each processor, out of the order in which they make room.
    const idle = Array.from({ length: 400 }, (_, at) => 5_000 + at);
    for (const port of idle) openFlow(port);
    const like = pairOf(flows);
    const busy = Array.from({ length: 20 }, (_, at) => 2_000 + at);
    for (const port of busy) expect(openFlow(port)).toEqual(OPENED(port));
    const use = () => {
      const seen = busy.flatMap((port) => [asks(port, TCP.ack), answers(port, TCP.ack)]);
      expect(seen.filter((one) => !one.startsWith("redirect PASS_ESTABLISHED"))).toEqual([]);
    };
    const began = performance.now();
    // Half as much again as there is room for: what is there was all written since.
    await fill({ flows, like, entries: FLOWS * 1.5, between: use });
    const filledMs = performance.now() - began;
    use();
    for (let port = 10_000; port < 10_200; port++) expect(openFlow(port)).toEqual(OPENED(port));
    // Now by flows that are used too: of those nobody uses any more most make room.
    await fill({ flows, like, entries: FLOWS * 1.5, between: use, used: true });
    const seen = idle.map((port) => asks(port, TCP.ack));
    const gone = seen.filter((one) => one.startsWith("redirect REJECT_UNKNOWN_FLOW"));
    expect(gone.length).toBeGreaterThan(idle.length / 2);
    const lookedAt = performance.now();
    await lab.packets.dataplane.resync();
    const { entries, max } = fillOf("flows");
    process.stdout.write(
      `${entries} of ${max} flows, ${gone.length} of ${idle.length} idle ones gone, filled in ${Math.round(filledMs)} ms, counted in ${Math.round(performance.now() - lookedAt)} ms, ${memoryOf(flows)} MB\n`,
    );
    expect(entries / max).toBeGreaterThan(0.95);
    expect(entries).toBeLessThanOrEqual(max);
    const timeout = shortTimeoutNs();
    await lab.packets.restart();
    const bpfConntrackTimeouts = { tcpEstablished: `${timeout}ns` };
    await lab.serve([WEB], { keepConntrack: true, configuration: { bpfConntrackTimeouts } });
    // A restarted agent begins a new policy epoch: the first packet each way is checked against policy once more.
    for (const port of busy) expect([asks(port, TCP.ack), answers(port, TCP.ack)].join()).toContain("PASS_POLICY");
    await fill({ flows, like, entries: FLOWS / 2, between: use, age: 2n * timeout });
    await lab.packets.dataplane.resync();
    expect(fillOf("flows").entries / max).toBeLessThan(0.6);
    use();
    flows.close();
  });

  it("of ports: a flow that finds none is dropped and counted, and nobody else's is", async () => {
    lab = await ServiceLab.open({}, { flows: 65_536 });
    await lab.serve([WEB]);
    await lab.packets.logFlows();
    openFlow(1_000);
    const flows = lab.packets.map("flows");
    const [, [key, value]] = pairOf(flows);
    // Every port the client could have towards this backend is another flow's.
    const ports = [1_001, ...Array.from({ length: 28_232 }, (_, at) => 32_768 + at)];
    const taken = ports.map((port) => {
      const one = Buffer.from(key);
      one.writeUInt16LE(port, fiveTupleLayout.at.dport);
      return [one, value] as const;
    });
    await flows.updateMany(taken);
    expect(asks(1_001)).toMatch(/^drop DROP_NO_FREE_PORT/);
    expect(lab.packets.counts().get("DROP_NO_FREE_PORT")).toBe(1n);
    expect((await lab.packets.droppedAndLogged())[1]).toEqual({ no_free_port: 1 });
    expect(openFlow(1_000)).toEqual(OPENED(1_000));
    const other = v4(to(OUTSIDE.v4, NODE.v4), tcp(1_001, 30_080));
    expect(line("uplink", other)).toMatch(/^redirect PASS_POLICY/);
    // One of them ends.
    for (const [one] of taken.slice(0, 20_000)) flows.delete(one);
    await expect.poll(() => asks(1_001)).toMatch(/^redirect PASS_POLICY/);
    flows.close();
  });

  it("of clients that stay with a backend: new ones are remembered, those who came lately keep theirs", async () => {
    lab = await ServiceLab.open();
    const two = [`*${POD_A.v4}:8080`, `*${POD_B.v4}:8080`];
    await lab.serve([servicePort("sticky", two, { clusterAddress: VIP, nodePort: 30_080, affinitySeconds: 3600 })]);
    const affinities = lab.packets.map("affinities");
    const asksFrom = (client: string, port: number) =>
      line("uplink", v4(to(client, NODE.v4), tcp(port, 30_080))).split(" > ")[1];
    const backend = asksFrom(OUTSIDE.v4, 1_000);
    const [[key, value] = []] = affinities.entries();
    let port = 1_001;
    await fillClients(affinities, [key!, value!], affinities.info.maxEntries * 1.5, () => {
      expect(asksFrom(OUTSIDE.v4, port++)).toBe(backend);
    });
    for (let last = 1; last < 50; last++) {
      const client = `203.0.113.${last}`;
      const first = asksFrom(client, 1);
      expect(Array.from({ length: 8 }, (_, at) => asksFrom(client, 2 + at))).toEqual(Array(8).fill(first));
    }
    await lab.packets.dataplane.resync();
    const { entries, max } = fillOf("affinities");
    expect(max).toBe(65_536);
    expect(entries / max).toBeGreaterThan(0.95);
    affinities.close();
  });

  it("of services: one that does not fit is named and refuses, the others are served, and it comes in when there is room", async () => {
    lab = await ServiceLab.open({}, FULL ? {} : { frontends: 64 });
    await lab.serve([WEB]);
    const most = fillOf("frontends").max;
    const many = Array.from({ length: most }, (_, at) => {
      const address = `10.${112 + (at >> 16)}.${(at >> 8) & 255}.${at & 255}`;
      return servicePort(`many-${at}`, at % 8 === 0 ? [`*${POD_B.v4}:9000`] : [], { clusterAddress: address });
    });
    const began = performance.now();
    // At full size there are more cluster addresses than fit, too, which is told beside.
    const told = (await apply(many, [])).filter((one) => !one.startsWith("(cluster addresses)"));
    process.stdout.write(
      `${most} services, ${told.length} did not fit, in ${Math.round(performance.now() - began)} ms\n`,
    );
    expect(told.length).toBeGreaterThan(0);
    expect(told.length).toBeLessThan(most / 10);
    for (const one of told)
      expect(one).toMatch(
        /^many-\d+: SERVICE_MAP_FULL: many-\d+ does not fit: all \d+ entries of the map frontends are taken$/,
      );
    expect(fillOf("frontends").entries / most).toBeGreaterThan(0.95);
    expect(openFlow(1_000)).toEqual(OPENED(1_000));
    const left = many.find(({ id }) => told[0]!.startsWith(`${id}:`))!;
    const asksLeft = () => line("a", v4(to(POD_A.v4, left.clusterAddress!), tcp(1_000, 80)));
    expect(asksLeft()).toMatch(/^redirect REJECT_NO_PORT/);
    await apply([], many.filter((one) => one !== left).slice(0, told.length));
    // What waited is tried again with the next change, and by the agent also without one.
    const answered = servicePort(left.id, [`*${POD_B.v4}:9000`], { clusterAddress: left.clusterAddress });
    expect(await apply([answered], [])).toEqual([]);
    expect(asksLeft()).toBe("redirect PASS_POLICY | tcp 10.65.0.1:1000 > 10.65.0.2:9000");
  });

  it("of addresses of services: it is told while so, and no longer", async () => {
    lab = await ServiceLab.open({}, { cluster_addresses: 2 });
    await lab.serve([WEB]);
    const more = [2, 3].map((last) => servicePort(`more-${last}`, [], { clusterAddress: `10.96.0.${last}` }));
    expect(await apply(more, [])).toEqual([
      "(cluster addresses): KERNEL_REFUSED: the kernel refused update of map cluster_address: E2BIG",
    ]);
    expect(openFlow(1_000)).toEqual(OPENED(1_000));
    await apply([], more.slice(0, 1));
    expect(await apply([], [])).toEqual([]);
  });

  /** What did not fit. */
  const apply = async (set: ServicePort[], gone: ServicePort[]) => {
    const { ipSets, inSync, settings } = deltaOf(ANY_CLIENT);
    const nothing = { set: [], remove: [] };
    const { objects } = await lab.packets.dataplane.apply({
      ...{ inSync, settings, ipSets, policies: nothing, profiles: nothing, endpoints: nothing, hostEndpoints: nothing },
      ...{ nodes: nothing, routes: nothing, problems: nothing },
      services: { set, remove: gone.map(({ id }) => id) },
    });
    return objects.flatMap(({ id, failed }) => (failed ? [`${id}: ${failed.code}: ${failed.message}`] : []));
  };
});

/** Both entries of a flow: as it is asked, and as it is answered. */
function pairOf(flows: BpfMap): [MapEntry, MapEntry] {
  const isReply = ([, value]: MapEntry) => (value[conntrackEntryLayout.at.flags]! & CONNTRACK_FLAG.CT_REPLY) !== 0;
  const all = flows.entries();
  return [all.find((one) => !isReply(one))!, all.find(isReply)!];
}

interface FillOptions {
  flows: BpfMap;
  like: [MapEntry, MapEntry];
  entries: number;
  between: () => void;
  /** How long ago they were seen. */
  age?: bigint;
  used?: boolean;
}

/**
 * Live flows of other clients, like one that is there: two entries each. `between`: again and again meanwhile, after a twentieth of the map at
 * most. The kernel only approximates which entries were used last: after a third of the map it may have forgotten.
 */
async function fill({ flows, like, entries, between, age = 0n, used = false }: FillOptions): Promise<void> {
  const [asked, answered] = like;
  const { src, dst } = fiveTupleLayout.at;
  const { to: becomes, lastSeen } = conntrackEntryLayout.at;
  const at = { asked: [src, becomes + src], answered: [dst, becomes + dst] };
  const CLIENTS = Math.floor(flows.info.maxEntries / 40);
  for (let first = 0; first * 2 < entries; first += CLIENTS) {
    const seen = sinceBoot(kernelTime(), age);
    const write = ([key, value]: MapEntry, [inKey, inValue]: number[]) => {
      const keys = Buffer.alloc(CLIENTS * key.length);
      const values = Buffer.alloc(CLIENTS * value.length);
      for (let client = 0; client < CLIENTS; client++) {
        const address = 0x0b00_0000 + first + client + (used ? 0x40_0000 : 0) + (age > 0n ? 0x80_0000 : 0);
        const [k, v] = [client * key.length, client * value.length];
        key.copy(keys, k);
        value.copy(values, v);
        keys.writeUInt32BE(address, k + inKey! + LAST_FOUR);
        values.writeUInt32BE(address, v + inValue! + LAST_FOUR);
        values.writeBigUInt64LE(seen, v + lastSeen);
      }
      return flows.updatePacked(keys, values);
    };
    await write(asked, at.asked);
    await write(answered, at.answered);
    // What is written again is as good as used: so the kernel takes it.
    if (used) await write(asked, at.asked);
    if (used) await write(answered, at.answered);
    between();
  }
}

async function fillClients(map: BpfMap, [key, value]: MapEntry, count: number, between: () => void): Promise<void> {
  for (let first = 0; first < count; first += 4096) {
    const some = Array.from({ length: 4096 }, (_, at) => {
      const one = Buffer.from(key);
      one.writeUInt32BE(0x0b00_0000 + first + at, LAST_FOUR);
      return [one, value] as const;
    });
    await map.updateMany(some);
    between();
  }
}

/** What the kernel says the map takes, in megabytes. */
function memoryOf({ fd }: BpfMap): number {
  const [, bytes] = /memlock:\s*(\d+)/.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "utf8"))!;
  return Math.round(Number(bytes) / 1e6);
}

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Random } from "../calc/random.ts";
import { arp, frame, icmp, ipBytes, ports, TCP, tcp, udp, v4, v6 } from "./frames.ts";
import { whyNoPrograms } from "./kernel-needed.ts";
import { allow, type Interface, NODE, OUTSIDE, type PacketLab, POD_A, POD_B, REMOTE, VERDICTS } from "./packet-lab.ts";
import { PEER, ServiceLab, servicePort } from "./service-lab.ts";

/** `EBPF_FRAMES` runs for longer: 1000000 is the nightly run. `EBPF_SEED` begins elsewhere. */
const FRAMES = Number(process.env["EBPF_FRAMES"] ?? 20_000);
const SEED = Number(process.env["EBPF_SEED"] ?? 1);
const SHORTEST = 15;
/** Ports services are asked on are among those of the frames. */
const ASKED = { v4: "10.96.0.10", v6: "fd96::10" };
const EMPTY = { v4: "10.96.0.11", v6: "fd96::11" };
const SERVICES = (["v4", "v6"] as const).flatMap((family) => {
  const common = { family: family === "v4" ? 4 : 6, clusterAddress: ASKED[family] } as const;
  const backends = [`*[${POD_A[family]}]:80`, `*[${POD_B[family]}]:80`, `[${REMOTE[family]}]:80`];
  return [
    servicePort(`web ${family}`, backends, { ...common, nodePort: 40_000, affinitySeconds: 1 }),
    servicePort(`dns ${family}`, backends, { ...common, protocol: 17, port: 53, nodePort: 2000 }),
    servicePort(`none ${family}`, [], { ...common, clusterAddress: EMPTY[family] }),
  ];
});

const missing = whyNoPrograms();

describe.skipIf(missing)(`any frame at all${missing ? ` (${missing})` : ""}`, () => {
  let lab: PacketLab;
  beforeAll(async () => {
    const services = await ServiceLab.open();
    lab = services.packets;
    const some = [allow({ protocol: 6, dstPorts: [[1, 1024]] }), allow({ protocol: 17 }), allow({ icmp: {} })];
    const host = { ingress: some, egress: some };
    await services.serve(SERVICES, { rules: { aEgress: some, aIngress: some, bEgress: some, bIngress: some, host } });
    await lab.logFlows();
  });
  afterAll(() => lab?.close());

  it(`${FRAMES} random and mutated frames: a verdict we know, each with one reason`, {
    timeout: 60_000 + FRAMES,
  }, () => {
    const random = new Random(SEED);
    const places = (["a", "b", "uplink", "overlay"] as const).flatMap((at) => [
      [at, "ingress"] as const,
      [at, "egress"] as const,
    ]);
    const before = total(lab.counts());
    const verdicts = new Map<number, number>();
    for (let index = 0; index < FRAMES; index++) {
      // Two thirds of the way as ever, the rest draining.
      if (index === Math.floor((FRAMES * 2) / 3)) lab.dataplane.setMode("Draining", 1);
      const [at, direction] = random.of(places);
      const from = random.chance(50) ? random.of<Interface>(["a", "b", "uplink"]) : undefined;
      const { verdict } = lab.run(at, direction, randomFrame(random), from);
      verdicts.set(verdict, (verdicts.get(verdict) ?? 0) + 1);
    }
    const names = [...verdicts.keys()].map((verdict) => VERDICTS[verdict] ?? `unknown ${verdict}`).sort();
    expect(names).toEqual(["drop", "next", "redirect"]);
    const counts = lab.counts();
    // The interfaces are real: a packet of the kernel's own may pass meanwhile and be counted too.
    expect(Number(total(counts) - before)).toBeGreaterThanOrEqual(FRAMES);
    expect(Number(total(counts) - before)).toBeLessThan(FRAMES + 200);
    expect([...counts.keys()].filter((name) => name.startsWith("unnamed") && counts.get(name)! > 0n)).toEqual([]);
  });

  it("every drop is in the flow logs, by its reason", async () => {
    const [dropped, logged] = await lab.droppedAndLogged();
    expect(logged).toEqual(dropped);
    expect(Object.keys(logged)).toEqual(expect.arrayContaining([]));
  });
});

function total(counts: Map<string, bigint>): bigint {
  return [...counts.values()].reduce((sum, count) => sum + count, 0n);
}

/** Sometimes noise, mostly something nearly right: what is refused at the first look tests only the first look. */
function randomFrame(random: Random): Buffer {
  const made = random.chance(10) ? noise(random, SHORTEST + random.below(200)) : frame(randomPacket(random));
  const bytes = Buffer.from(made);
  for (let flips = random.chance(50) ? random.below(6) : 0; flips > 0; flips--) {
    bytes[12 + random.below(bytes.length - 12)] = random.below(256);
  }
  const cut = random.chance(15) ? bytes.subarray(0, Math.max(SHORTEST, random.below(bytes.length))) : bytes;
  // The kernel runs no test with less than the header the frame announces.
  const least = { 2048: 34, 34525: 54 }[cut.readUInt16BE(12)] ?? SHORTEST;
  return cut.length < least ? Buffer.concat([cut, Buffer.alloc(least - cut.length)]) : cut;
}

function noise(random: Random, length: number): Buffer {
  const bytes = Buffer.from(Array.from({ length }, () => random.below(256)));
  if (length >= SHORTEST && random.chance(70)) bytes.writeUInt16BE(random.of([0x0800, 0x86dd, 0x0806, 0x8100]), 12);
  return bytes;
}

function randomPacket(random: Random): { type: number; bytes: Buffer } {
  if (random.chance(5)) return arp({ mac: "02:00:00:00:00:0a", address: random.of([POD_A.v4, POD_B.v4]) });
  const family = random.of(["v4", "v6"] as const);
  const ends = [POD_A, POD_B, REMOTE, NODE, OUTSIDE, PEER, ASKED, ASKED, EMPTY];
  const [source, destination] = [random.of(ends)[family], random.of(ends)[family]];
  const payload = randomPayload(random, family, { source: destination, destination: source });
  if (family === "v4") {
    const options = random.chance(20) ? noise(random, 4 * random.below(11)) : undefined;
    const fragment = random.chance(20) ? { offset: random.below(3), more: random.chance(50), id: random.below(4) } : {};
    return v4(
      { source, destination, ttl: random.of([0, 1, 2, 64]), ...fragment, ...(options ? { options } : {}) },
      payload,
    );
  }
  const extensions = random.some(
    0,
    8,
    () => [random.of([0, 43, 44, 51, 60]), noise(random, 8 * random.of([1, 1, 2]))] as const,
  );
  return v6(
    { source, destination, hops: random.of([0, 1, 64, 255]), ...(random.chance(30) ? { extensions } : {}) },
    payload,
  );
}

function randomPayload(random: Random, family: "v4" | "v6", back: { source: string; destination: string }) {
  const port = () => random.of([22, 53, 80, 2000, 40_000]);
  const protocol = family === "v4" ? 1 : 58;
  const kind = random.below(6);
  if (kind < 2)
    return tcp(port(), port(), random.of([TCP.syn, TCP.synAck, TCP.ack, TCP.fin | TCP.ack, TCP.rst, 0, 255]));
  if (kind === 2) return udp(port(), port(), "x".repeat(random.below(64)));
  if (kind === 3) return ports(random.of([132, 47, 50, 59, 136]), port(), port(), noise(random, random.below(40)));
  if (kind === 4)
    return icmp(protocol, random.of([0, 8, 128, 129, 133, 134, 135, 136, 137, 143, 13]), 0, 7, ipBytes(back.source));
  const inner = family === "v4" ? v4(back, tcp(port(), port())) : v6(back, udp(port(), port()));
  return icmp(
    protocol,
    random.of([1, 2, 3, 4, 5, 11, 12]),
    0,
    0,
    inner.bytes.subarray(0, random.below(inner.bytes.length)),
  );
}

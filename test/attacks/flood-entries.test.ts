import { afterEach, describe, expect, it } from "vitest";
import { conntrackEntryLayout, workloadShareLayout } from "../../src/gen/bpf/layout.gen.ts";
import { kernelTime } from "../../src/kernel/kernel-time.ts";
import { frame, TCP, tcp, udp, v4 } from "../ebpf/frames.ts";
import { whyNoPrograms } from "../ebpf/kernel-needed.ts";
import { OUTSIDE, POD_A, POD_B, REMOTE } from "../ebpf/packet-lab.ts";
import { ANY_CLIENT, ServiceLab, servicePort } from "../ebpf/service-lab.ts";

const missing = whyNoPrograms();
const FULL = process.env["FLOOD"] === "full";
const FLOWS = FULL ? 262_144 : 8_192;
/** Two entries each: several times what the table holds. */
const FLOOD = FULL ? 600_000 : 4 * FLOWS;
const SHARE = FLOWS / 4;
const VIP = "10.96.0.10";
const WEB = servicePort("web", [`*${POD_A.v4}:8080`], { clusterAddress: VIP });
const to = (source: string, destination: string) => ({ source, destination });
const said = (line: string) => line.split(" | ")[0];

/** Pod a floods; pod b has connections to a Service. */
describe.skipIf(missing)(`a pod that floods the conntrack table${missing ? ` (${missing})` : ""}`, () => {
  let lab: ServiceLab;
  afterEach(() => lab?.close());

  const asks = (port: number, flags?: number) => said(lab.put("b", v4(to(POD_B.v4, VIP), tcp(port, 80, flags))).line);
  const answers = (port: number, flags: number) =>
    said(lab.put("a", v4(to(POD_A.v4, POD_B.v4), tcp(8080, port, flags))).line);
  const open = (port: number) => [asks(port), answers(port, TCP.synAck), asks(port, TCP.ack)];
  const OPENED = ["redirect PASS_POLICY", "redirect PASS_ESTABLISHED", "redirect PASS_ESTABLISHED"];
  /**
   * Two datagrams each of as many connections, to as many addresses and ports outside. The kernel keeps what was used more than once: with one
   * each, the flood would evict nothing but itself.
   */
  const flood = (count: number, first = 0) => {
    for (let at = first; at < first + count; at++) {
      const destination = `203.0.${113 + (at >> 16)}.${1 + ((at >> 8) & 127)}`;
      const bytes = frame(v4(to(POD_A.v4, destination), udp(1024 + (at & 255), 5000 + (at >> 7))));
      for (let time = 0; time < 2; time++) lab.packets.run("a", "ingress", bytes);
    }
  };
  const start = async (configuration?: Record<string, number>) => {
    lab = await ServiceLab.open(configuration, { flows: FLOWS });
    await lab.serve([WEB], { rules: { ...ANY_CLIENT, settings: { workloadConntrackPercent: 25 } } });
    // What was opened before the table was emptied is counted no more.
    await lab.packets.dataplane.resync();
  };
  const counted = () => {
    const shares = lab.packets.map("workload_shares");
    const key = Buffer.alloc(4);
    key.writeUInt32LE(lab.packets.ifindex("a"));
    const entries = shares.lookup(key)?.readInt32LE(workloadShareLayout.at.entries);
    shares.close();
    return entries;
  };
  const inTable = (address: string) => {
    const flows = lab.packets.map("flows");
    const bytes = Buffer.from(address.split(".").map(Number));
    let count = 0;
    for (const chunk of flows.chunks(4096))
      for (const [key] of chunk) if (key.subarray(12, 16).equals(bytes) || key.subarray(28, 32).equals(bytes)) count++;
    flows.close();
    return count;
  };

  it("has its share, and no other pod loses a connection or cannot open one; it is named", async () => {
    await start();
    const established = Array.from({ length: 20 }, (_, at) => 2_000 + at);
    for (const port of established) expect(open(port)).toEqual(OPENED);
    const began = performance.now();
    flood(FLOOD);
    const ms = performance.now() - began;
    const alive = established.filter((port) => asks(port, TCP.ack) === "redirect PASS_ESTABLISHED");
    process.stdout.write(
      `${FLOOD} connections of one pod in ${Math.round(ms)} ms: ${alive.length} of 20 service connections of another alive, ` +
        `${inTable(POD_A.v4)} entries of ${FLOWS} are the flood's\n`,
    );
    expect(alive).toEqual(established);
    expect(established.map((port) => answers(port, TCP.ack))).toEqual(Array(20).fill("redirect PASS_ESTABLISHED"));
    for (let port = 3_000; port < 3_050; port++) expect(open(port)).toEqual(OPENED);
    expect(lab.packets.counts().get("DROP_WORKLOAD_LIMIT")).toBe(BigInt(2 * FLOOD - SHARE));
    expect(await lab.packets.dataplane.checkShares()).toEqual([
      { id: "default/a", table: "conntrack", entries: SHARE, limit: SHARE },
    ]);
    // Its own connections are not affected.
    const own = frame(v4(to(POD_A.v4, "203.0.113.1"), udp(1024, 5000)));
    expect(lab.packets.send("a", "ingress", own)).toMatchObject({ reason: "PASS_ESTABLISHED" });
  });

  it("is let in again when its connections are over", async () => {
    // No entry is older than the machine, which may have just booted.
    const timeout = kernelTime() / 4n;
    await start({ timeout_udp: Number(timeout) });
    flood(SHARE);
    expect(said(lab.put("a", v4(to(POD_A.v4, OUTSIDE.v4), udp(9, 9))).line)).toBe("drop DROP_WORKLOAD_LIMIT");
    const flows = lab.packets.map("flows");
    for (const chunk of flows.chunks(4096)) {
      const aged = chunk.map(([key, value]) => {
        value.writeBigUInt64LE(kernelTime() - 2n * timeout, conntrackEntryLayout.at.lastSeen);
        return [key, value] as const;
      });
      await flows.updateMany(aged);
    }
    flows.close();
    await lab.packets.dataplane.resync();
    expect(counted()).toBe(0);
    expect(await lab.packets.dataplane.checkShares()).toEqual([]);
    expect(said(lab.put("a", v4(to(POD_A.v4, OUTSIDE.v4), udp(9, 9))).line)).toBe("next PASS_POLICY");
  });

  it("is charged once for a connection that it opens again and again, and what it was wrongly charged for is corrected", async () => {
    await start();
    const syn = (port: number) => lab.put("a", v4(to(POD_A.v4, "10.65.9.9"), tcp(port, 80)));
    const rst = (port: number) => lab.put("a", v4(to(POD_A.v4, "10.65.9.9"), tcp(port, 80, TCP.rst)));
    for (let round = 0; round < 5; round++) {
      syn(4_000);
      rst(4_000);
    }
    expect(counted()).toBe(2);
    // As after a kill in the middle of a count.
    const shares = lab.packets.map("workload_shares");
    for (const [key, value] of shares.entries()) {
      value.writeInt32LE(1_000_000, workloadShareLayout.at.entries);
      shares.update(key, value);
    }
    shares.close();
    await lab.packets.dataplane.resync();
    expect(counted()).toBe(2);
    await lab.packets.restart();
    await lab.serve([WEB], { keepConntrack: true });
    expect(counted()).toBe(2);
  });

  it("of first fragments: has its share of those, and fragmented packets of others pass; it writes none for another pod", async () => {
    const PER_SECOND = 50;
    lab = await ServiceLab.open({ fragments_per_second: PER_SECOND }, { fragments: 1024 });
    await lab.serve([WEB]);
    const later = { protocol: 17, bytes: Buffer.alloc(16) };
    const firstOf = (source: string, id: number) => frame(v4({ ...to(source, REMOTE.v4), id, more: true }, udp(9, 53)));
    const laterOf = (source: string, id: number) => frame(v4({ ...to(source, REMOTE.v4), id, offset: 2 }, later));
    const seen = (at: "a" | "b", bytes: Buffer) => lab.packets.send(at, "ingress", bytes).reason;
    expect(seen("b", firstOf(POD_B.v4, 1))).toBe("PASS_POLICY");
    for (let id = 0; id < 3_000; id++) lab.packets.run("a", "ingress", firstOf(POD_A.v4, id));
    expect(lab.packets.counts().get("DROP_FRAGMENT_LIMIT")).toBeGreaterThan(0n);
    expect(seen("b", laterOf(POD_B.v4, 1))).toBe("PASS_ESTABLISHED");
    expect(seen("a", firstOf(POD_B.v4, 2))).toBe("DROP_SPOOFED_SOURCE");
    expect(seen("b", laterOf(POD_B.v4, 2))).toBe("DROP_FRAGMENT_WITHOUT_FIRST");
  });

  it("is not charged for what others open to it, nor for replies", async () => {
    await start();
    for (let port = 5_000; port < 5_100; port++) expect(open(port)).toEqual(OPENED);
    expect(counted()).toBe(0);
    const outside = v4(to("10.65.9.9", POD_A.v4), tcp(6_000, 8080));
    expect(said(lab.put("uplink", outside).line)).toBe("redirect PASS_POLICY");
    expect(counted()).toBe(0);
    await lab.packets.dataplane.resync();
    expect(counted()).toBe(0);
  });
});

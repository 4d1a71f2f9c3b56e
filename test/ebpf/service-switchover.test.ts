import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { conntrackEntryLayout, fiveTupleLayout, nfConntrackEntryLayout } from "../../src/gen/bpf/layout.gen.ts";
import type { ConntrackTuple, NewConntrackEntry } from "../../src/kernel/conntrack/conntrack-port.ts";
import { frame, ipBytes, TCP, tcp, udp, v4 } from "./frames.ts";
import { whyNoPrograms } from "./kernel-needed.ts";
import { allow, NODE, OUTSIDE, POD_A, POD_B, REMOTE } from "./packet-lab.ts";
import { ANY_CLIENT, PEER, ServiceLab, servicePort } from "./service-lab.ts";

const missing = whyNoPrograms();
const UDP = 17;
const VIP = "10.96.0.10";
const GENERATION = 5;
const SERVICES = [
  servicePort("web", [`*${POD_B.v4}:8080`], { clusterAddress: VIP, nodePort: 30080 }),
  servicePort("dns", [`*${POD_B.v4}:5353`], { protocol: UDP, clusterAddress: VIP, port: 53 }),
  servicePort("twin", [`*${POD_B.v4}:8080`], { clusterAddress: "10.96.0.20" }),
];
const to = (source: string, destination: string) => ({ source, destination });
const backend = (port: number) => ({ address: POD_B.v4, port });

function tuple(protocol: number, source: string, sourcePort: number, destination: string, destinationPort: number) {
  return { protocol, source, sourcePort, destination, destinationPort };
}

describe.skipIf(missing)(`connections during a switchover${missing ? ` (${missing})` : ""}`, () => {
  let lab: ServiceLab;
  const inserted: ConntrackTuple[] = [];
  beforeAll(async () => {
    lab = await ServiceLab.open();
    await lab.serve(SERVICES);
  });
  beforeEach(() => {
    withKernel((kernel) => {
      for (const original of inserted.splice(0)) kernel.delete(original);
    });
    lab.packets.dataplane.setMode("Active");
    lab.forget();
  });
  afterAll(() => lab?.close());

  const line = (...args: Parameters<ServiceLab["put"]>) => lab.put(...args).line;
  const withKernel = (act: (kernel: ReturnType<typeof lab.packets.kernel.conntrack>) => void) => {
    const kernel = lab.packets.kernel.conntrack(lab.packets.netns);
    act(kernel);
    kernel.close();
  };
  /** As a proxy's rules left it there, or a switchover wrote it. */
  const kernelHas = (flow: Omit<NewConntrackEntry, "timeout">) => {
    withKernel((kernel) => kernel.insert({ ...flow, timeout: 60 }));
    inserted.push(flow.original);
  };

  describe("to eBPF", () => {
    it("a UDP flow the kernel translates stays with its backend, both ways", () => {
      kernelHas({ original: tuple(UDP, POD_A.v4, 1000, VIP, 53), destinationNat: backend(5353) });
      expect(line("a", v4(to(POD_A.v4, VIP), udp(1000, 53)))).toBe(
        "next PASS_POLICY | udp 10.65.0.1:1000 > 10.96.0.10:53",
      );
      expect(line("a", v4(to(POD_A.v4, VIP), udp(1000, 53)))).toContain("next PASS_ESTABLISHED");
      expect(line("b", v4(to(POD_B.v4, POD_A.v4), udp(5353, 1000)))).toBe(
        "next PASS_POLICY | udp 10.65.0.2:5353 > 10.65.0.1:1000",
      );
      const back = v4(to(VIP, POD_A.v4), udp(53, 1000));
      expect(line("a", back, { direction: "egress", from: "b" })).toContain("next PASS_ESTABLISHED");
    });

    it("its answers pass though they come first, and though the client lets nobody in", async () => {
      await lab.serve(SERVICES, { rules: { ...ANY_CLIENT, aIngress: [] } });
      kernelHas({ original: tuple(UDP, POD_A.v4, 1000, VIP, 53), destinationNat: backend(5353) });
      expect(line("b", v4(to(POD_B.v4, POD_A.v4), udp(5353, 1000)))).toContain("next PASS_POLICY");
      const back = v4(to(VIP, POD_A.v4), udp(53, 1000));
      expect(line("a", back, { direction: "egress", from: "b" })).toContain("next PASS_POLICY");
      expect(line("a", v4(to(VIP, POD_A.v4), udp(53, 1001)), { direction: "egress", from: "b" })).toContain("drop");
      await lab.serve(SERVICES);
    });

    it("policy is asked about the backend the kernel chose", async () => {
      const rules = { ...ANY_CLIENT, aEgress: [allow({ dstNets: [`${POD_B.v4}/32`] })] };
      await lab.serve(SERVICES, { rules });
      kernelHas({ original: tuple(UDP, POD_A.v4, 1000, VIP, 53), destinationNat: backend(5353) });
      kernelHas({ original: tuple(UDP, POD_A.v4, 1001, VIP, 53), destinationNat: { address: REMOTE.v4, port: 5353 } });
      expect(line("a", v4(to(POD_A.v4, VIP), udp(1000, 53)))).toContain("next PASS_POLICY");
      expect(line("a", v4(to(POD_A.v4, VIP), udp(1001, 53)))).toContain("drop DROP_POLICY_WORKLOAD_EGRESS");
      // And again when policy changes, in either direction.
      const wider = { ...rules, aEgress: [...rules.aEgress, allow({ dstNets: ["192.0.2.0/24"] })] };
      await lab.serve(SERVICES, { rules: wider, keepConntrack: true });
      expect(line("b", v4(to(POD_B.v4, POD_A.v4), udp(5353, 1000)))).toContain("next PASS_POLICY");
      expect(line("a", v4(to(POD_A.v4, VIP), udp(1000, 53)))).toContain("next PASS_POLICY");
      await lab.serve(SERVICES);
    });

    it("once the kernel has forgotten it, it is ours", () => {
      const original = tuple(UDP, POD_A.v4, 1000, VIP, 53);
      kernelHas({ original, destinationNat: backend(5353) });
      expect(line("a", v4(to(POD_A.v4, VIP), udp(1000, 53)))).toContain("next PASS_POLICY");
      withKernel((kernel) => kernel.delete(original));
      expect(line("a", v4(to(POD_A.v4, VIP), udp(1000, 53)))).toContain(
        "redirect PASS_POLICY | udp 10.65.0.1:1000 > 10.65.0.2:5353",
      );
    });

    it("a TCP connection goes on in the kernel, and a half-open one too", () => {
      kernelHas({
        original: tuple(6, POD_A.v4, 1000, VIP, 80),
        destinationNat: backend(8080),
        tcpState: "established",
      });
      kernelHas({ original: tuple(6, POD_A.v4, 1001, VIP, 80), destinationNat: backend(8080), tcpState: "synSent" });
      expect(line("a", v4(to(POD_A.v4, VIP), tcp(1000, 80, TCP.ack)))).toContain("next PASS_POLICY");
      expect(line("b", v4(to(POD_B.v4, POD_A.v4), tcp(8080, 1000, TCP.ack)))).toContain("next PASS_POLICY");
      expect(line("a", v4(to(POD_A.v4, VIP), tcp(1001, 80)))).toContain("next PASS_POLICY");
    });

    it("a SYN on the addresses of one that is over is a new one", () => {
      kernelHas({ original: tuple(6, POD_A.v4, 1000, VIP, 80), destinationNat: backend(8080), tcpState: "timeWait" });
      expect(line("a", v4(to(POD_A.v4, VIP), tcp(1000, 80)))).toContain("redirect PASS_POLICY");
    });

    it("a connection straight to its backend, from the same port, is kept apart from it to the end of either", () => {
      const original = tuple(6, POD_A.v4, 1000, VIP, 80);
      kernelHas({ original, destinationNat: backend(8080), tcpState: "established" });
      const kernelAnswers = (flags: number) => line("b", v4(to(POD_B.v4, POD_A.v4), tcp(8080, 1000, flags)));
      const kernelAsks = (flags: number) =>
        line("b", v4(to(POD_A.v4, POD_B.v4), tcp(1000, 8080, flags)), { direction: "egress", from: "a" });
      const straight = (flags?: number) => line("a", v4(to(POD_A.v4, POD_B.v4), tcp(1000, 8080, flags)));
      expect(kernelAnswers(TCP.ack)).toContain("next PASS_POLICY");
      const port = Number(/10\.65\.0\.1:(\d+) >/.exec(straight())?.[1]);
      expect(port).not.toBe(1000);
      const answers = () => line("b", v4(to(POD_B.v4, POD_A.v4), tcp(8080, port, TCP.synAck)));
      expect(answers()).toBe("redirect PASS_ESTABLISHED | tcp 10.65.0.2:8080 > 10.65.0.1:1000");
      const goesOn = `redirect PASS_ESTABLISHED | tcp 10.65.0.1:${port} > 10.65.0.2:8080`;
      expect(kernelAnswers(TCP.ack)).toContain("next PASS_POLICY");
      expect(straight(TCP.ack)).toBe(goesOn);
      expect(kernelAsks(TCP.ack)).toContain("next PASS_POLICY");
      expect(kernelAnswers(TCP.rst)).toContain("next PASS_ESTABLISHED");
      expect(kernelAsks(TCP.rst)).toContain("next PASS_POLICY");
      withKernel((kernel) => kernel.delete(original));
      kernelAnswers(TCP.ack);
      expect(straight(TCP.ack)).toBe(goesOn);
    });

    it("one that is over, of ours or the kernel's, still has its port at the backend: whoever comes by a service gets another", () => {
      const portOf = (text: string) => Number(/10\.65\.0\.1:(\d+) > 10\.65\.0\.2:8080/.exec(text)?.[1]);
      kernelHas({ original: tuple(6, POD_A.v4, 1000, POD_B.v4, 8080), tcpState: "timeWait" });
      expect(portOf(line("a", v4(to(POD_A.v4, VIP), tcp(1000, 80))))).toBeGreaterThan(32_767);
      line("a", v4(to(POD_A.v4, POD_B.v4), tcp(1001, 8080)));
      line("b", v4(to(POD_B.v4, POD_A.v4), tcp(8080, 1001, TCP.rst)));
      expect(portOf(line("a", v4(to(POD_A.v4, VIP), tcp(1001, 80))))).toBeGreaterThan(32_767);
      // Of its own it takes the place.
      line("a", v4(to(POD_A.v4, VIP), tcp(1002, 80)));
      line("b", v4(to(POD_B.v4, POD_A.v4), tcp(8080, 1002, TCP.rst)));
      expect(portOf(line("a", v4(to(POD_A.v4, VIP), tcp(1002, 80))))).toBe(1002);
    });

    it("what is left of a flow that is over does not take the answers of the one that has its port since", () => {
      const twin = v4(to(POD_A.v4, "10.96.0.20"), tcp(2000, 80));
      line("a", twin);
      const flows = lab.packets.map("flows");
      const [src, dst] = [POD_A.v4, VIP].map((text) =>
        Buffer.concat([Buffer.alloc(10), Buffer.from([0xff, 0xff]), ipBytes(text)]),
      ) as [Buffer, Buffer];
      const [, open] = flows.entries().find(([key]) => fiveTupleLayout.read(key).sport === 2000)!;
      const over = { ...conntrackEntryLayout.read(open), lastSeen: 0n };
      flows.update(
        fiveTupleLayout.write({ src, dst, sport: 1000, dport: 80, protocol: 6 }),
        conntrackEntryLayout.write(over),
      );
      flows.close();
      expect(line("a", v4(to(POD_A.v4, VIP), tcp(1000, 80)))).toContain("redirect PASS_POLICY");
      expect(line("b", v4(to(POD_B.v4, POD_A.v4), tcp(8080, 2000, TCP.synAck)))).toBe(
        "redirect PASS_ESTABLISHED | tcp 10.96.0.20:80 > 10.65.0.1:2000",
      );
    });

    it("a client at a node port stays in the kernel too", () => {
      kernelHas({ original: tuple(6, OUTSIDE.v4, 1000, NODE.v4, 30080), destinationNat: backend(8080) });
      expect(line("uplink", v4(to(OUTSIDE.v4, NODE.v4), tcp(1000, 30080, TCP.ack)))).toContain("next PASS_NO_POLICY");
    });
  });

  describe("and back, draining", () => {
    const open = () => {
      line("a", v4(to(POD_A.v4, VIP), tcp(1000, 80)));
      line("b", v4(to(POD_B.v4, POD_A.v4), tcp(8080, 1000, TCP.synAck)));
      line("a", v4(to(POD_A.v4, VIP), udp(1000, 53)));
    };
    const drain = () => lab.packets.dataplane.setMode("Draining", GENERATION);

    it("known flows go on, new ones are the kernel's", () => {
      open();
      drain();
      expect(lab.packets.dataplane.mode()).toBe("Draining");
      expect(line("a", v4(to(POD_A.v4, VIP), tcp(1000, 80, TCP.ack)))).toBe(
        "redirect PASS_ESTABLISHED | tcp 10.65.0.1:1000 > 10.65.0.2:8080",
      );
      expect(line("b", v4(to(POD_B.v4, POD_A.v4), udp(5353, 1000)))).toContain(
        "redirect PASS_ESTABLISHED | udp 10.96.0.10:53",
      );
      expect(line("a", v4(to(POD_A.v4, VIP), tcp(1001, 80)))).toBe(
        "next PASS_DRAINING | tcp 10.65.0.1:1001 > 10.96.0.10:80",
      );
      expect(line("uplink", v4(to(OUTSIDE.v4, NODE.v4), tcp(1001, 30080)))).toContain("next PASS_DRAINING");
      expect(line("a", v4(to(NODE.v4, POD_A.v4), tcp(1, 2)), { direction: "egress" })).toContain("next PASS_DRAINING");
    });

    it("a flow the kernel was given in this generation is its own, from either side", () => {
      for (const first of ["request", "answer"] as const) {
        lab.forget();
        lab.packets.dataplane.setMode("Active");
        open();
        const original = tuple(6, POD_A.v4, 1000, VIP, 80);
        kernelHas({ original, destinationNat: backend(8080), mark: GENERATION << 16 });
        drain();
        const request = () => line("a", v4(to(POD_A.v4, VIP), tcp(1000, 80, TCP.ack)));
        const answer = () => line("b", v4(to(POD_B.v4, POD_A.v4), tcp(8080, 1000, TCP.ack)));
        expect(first === "request" ? request() : answer()).toContain("next PASS_GIVEN");
        expect(first === "request" ? answer() : request()).toContain("next PASS_DRAINING");
        withKernel((kernel) => kernel.delete(original));
      }
    });

    it("a mark of an earlier drain, or of the proxy, gives nothing", () => {
      open();
      kernelHas({ original: tuple(6, POD_A.v4, 1000, VIP, 80), destinationNat: backend(8080), mark: 4 << 16 });
      drain();
      expect(line("a", v4(to(POD_A.v4, VIP), tcp(1000, 80, TCP.ack)))).toContain("redirect PASS_ESTABLISHED");
    });

    it("an answer to a UDP flow the kernel began meanwhile is the kernel's; the request of ours is not", () => {
      open();
      kernelHas({ original: tuple(UDP, POD_A.v4, 1000, POD_B.v4, 5353) });
      drain();
      expect(line("a", v4(to(POD_A.v4, VIP), udp(1000, 53)))).toContain("redirect PASS_ESTABLISHED");
      expect(line("b", v4(to(POD_B.v4, POD_A.v4), udp(5353, 1000)))).toContain("next PASS_GIVEN");
    });

    it("a SYN on a flow of ours that stands, and a SYN-ACK on one that closes, are the kernel's", () => {
      open();
      drain();
      expect(line("a", v4(to(POD_A.v4, VIP), tcp(1000, 80)))).toContain("next PASS_DRAINING");
      lab.packets.dataplane.setMode("Active");
      open();
      line("a", v4(to(POD_A.v4, VIP), tcp(1000, 80, TCP.rst)));
      drain();
      expect(line("b", v4(to(POD_B.v4, POD_A.v4), tcp(8080, 1000, TCP.synAck)))).toContain("next PASS_DRAINING");
    });

    it("what a peer still sends through the tunnel with a client's address is still ours: the kernel could not answer it", () => {
      drain();
      expect(lab.put("overlay", v4(to(OUTSIDE.v4, POD_B.v4), tcp(1000, 8080)), { fromMac: PEER.mac }).line).toContain(
        "redirect PASS_POLICY",
      );
      expect(line("overlay", v4(to(REMOTE.v4, POD_B.v4), tcp(1000, 8080)))).toContain("next PASS_DRAINING");
    });

    it("a flow straight to a pod that would be taken for one of ours is kept apart", () => {
      open();
      drain();
      expect(line("a", v4(to(POD_A.v4, POD_B.v4), tcp(1000, 8080)))).toMatch(
        /^redirect PASS_POLICY \| tcp 10\.65\.0\.1:\d{5} > 10\.65\.0\.2:8080$/,
      );
      expect(line("a", v4(to(POD_A.v4, POD_B.v4), tcp(1001, 8080)))).toContain("next PASS_DRAINING");
    });
  });

  it("a table that is full keeps the flows in use through a flood of new ones; of those in use it loses the oldest", () => {
    const mine = () => line("a", v4(to(POD_A.v4, VIP), tcp(999, 80, TCP.ack)));
    const flood = (packets: number) => {
      for (let port = 1000; port < 11_000; port++) {
        const packet = frame(v4(to(POD_A.v4, "10.96.0.20"), tcp(port, 80)));
        for (let sent = 0; sent < packets; sent++) lab.packets.run("a", "ingress", packet);
      }
    };
    line("a", v4(to(POD_A.v4, VIP), tcp(999, 80)));
    line("b", v4(to(POD_B.v4, POD_A.v4), tcp(8080, 999, TCP.synAck)));
    flood(1);
    expect(mine()).toContain("redirect PASS_ESTABLISHED");
    flood(3);
    // A translated flow cannot be met in the middle: nobody knows any more whom it was with.
    expect(mine()).toBe("redirect REJECT_UNKNOWN_FLOW | tcp 10.96.0.10:80 > 10.65.0.1:999");
    const flows = lab.packets.map("flows");
    expect(flows.entries().length).toBeLessThanOrEqual(4096);
    flows.close();
  });
});

describe.skipIf(missing)(`where programs cannot ask the kernel${missing ? ` (${missing})` : ""}`, () => {
  let lab: ServiceLab;
  beforeAll(async () => {
    lab = await ServiceLab.open({ has_ct_lookup: 0 });
    await lab.serve(SERVICES);
  });
  afterAll(() => lab?.close());

  it("what the agent told them of its flows is believed", () => {
    const old = lab.packets.map("old_flows");
    const mapped = (text: string) => Buffer.concat([Buffer.alloc(10), Buffer.from([0xff, 0xff]), ipBytes(text)]);
    const [src, dst] = [mapped(POD_A.v4), mapped(VIP)];
    old.update(
      fiveTupleLayout.write({ src, dst, sport: 1000, dport: 53, protocol: UDP }),
      nfConntrackEntryLayout.write({
        until: 1n << 62n,
        dst: mapped(POD_B.v4),
        dport: 5353,
        mark: 0,
        reply: 0,
        tcpState: 0,
      }),
    );
    old.update(
      fiveTupleLayout.write({ src: mapped(POD_B.v4), dst: src, sport: 5353, dport: 1000, protocol: UDP }),
      nfConntrackEntryLayout.write({ until: 1n << 62n, dst: src, dport: 1000, mark: 0, reply: 1, tcpState: 0 }),
    );
    const say = (at: "a" | "b", packet: ReturnType<typeof v4>) => lab.put(at, packet).line;
    expect(say("a", v4(to(POD_A.v4, VIP), udp(1000, 53)))).toContain("next PASS_POLICY");
    expect(say("b", v4(to(POD_B.v4, POD_A.v4), udp(5353, 1000)))).toContain("next PASS_POLICY");
    expect(say("a", v4(to(POD_A.v4, VIP), udp(1001, 53)))).toContain("redirect PASS_POLICY");
    // One that the kernel will have forgotten by now.
    old.update(
      fiveTupleLayout.write({ src, dst, sport: 1002, dport: 53, protocol: UDP }),
      nfConntrackEntryLayout.write({ until: 1n, dst: mapped(POD_B.v4), dport: 5353, mark: 0, reply: 0, tcpState: 0 }),
    );
    expect(say("a", v4(to(POD_A.v4, VIP), udp(1002, 53)))).toContain("redirect PASS_POLICY");
    for (const [key] of old.entries()) old.delete(key);
    old.close();
    expect(say("a", v4(to(POD_A.v4, VIP), udp(1000, 53)))).toContain("redirect PASS_POLICY");
  });

  it("TCP without a beginning is left to the kernel, which knows it or resets it", () => {
    lab.forget();
    expect(lab.put("a", v4(to(POD_A.v4, VIP), tcp(1000, 80, TCP.ack))).line).toContain("next PASS_POLICY");
  });
});

import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { MARK } from "../../src/gen/bpf/layout.gen.ts";
import type { NewConntrackEntry } from "../../src/kernel/conntrack/conntrack-port.ts";
import { frame, icmp, quoted, TCP, tcp, udp, v4, v6 } from "./frames.ts";
import { whyNoPrograms } from "./kernel-needed.ts";
import { allow, NODE, OUTSIDE, OVERLAY_MAC, POD_A, POD_B, REMOTE } from "./packet-lab.ts";
import { ANY_CLIENT, PEER, ServiceLab, servicePort } from "./service-lab.ts";

const missing = whyNoPrograms();
const UDP = 17;
const VIP = "10.96.0.10";
const VIP6 = "fd96::10";
const WEB = servicePort("web", [`*${POD_B.v4}:8080`], { clusterAddress: VIP, nodePort: 30080 });
const WEB6 = servicePort("web6", [`*[${POD_B.v6}]:8080`], { family: 6, clusterAddress: VIP6, nodePort: 30080 });
const DNS = servicePort("dns", [`*${POD_B.v4}:5353`], {
  protocol: UDP,
  clusterAddress: VIP,
  port: 53,
  nodePort: 30053,
});
const FAR = servicePort("far", [`${REMOTE.v4}:8080`], { clusterAddress: "10.96.0.11", nodePort: 30081 });
const FAR6 = servicePort("far6", [`[${REMOTE.v6}]:8080`], { family: 6, clusterAddress: "fd96::11", nodePort: 30081 });
const SELF = servicePort("self", [`*${POD_A.v4}:8080`], { clusterAddress: "10.96.0.12" });
const SELF6 = servicePort("self6", [`*[${POD_A.v6}]:8080`], { family: 6, clusterAddress: "fd96::12" });
const SELF_DNS = servicePort("self-dns", [`*${POD_A.v4}:5353`], {
  protocol: UDP,
  clusterAddress: "10.96.0.12",
  port: 53,
});
const SELF_DNS6 = servicePort("self-dns6", [`*[${POD_A.v6}]:5353`], {
  ...{ protocol: UDP, family: 6, clusterAddress: "fd96::12", port: 53 },
});
const ALL = [WEB, WEB6, DNS, FAR, FAR6, SELF];

const to = (source: string, destination: string) => ({ source, destination });

describe.skipIf(missing)(`scenarios of translated connections${missing ? ` (${missing})` : ""}`, () => {
  let lab: ServiceLab;
  beforeAll(async () => {
    lab = await ServiceLab.open();
    await lab.serve(ALL);
    await lab.packets.logFlows();
  });
  beforeEach(async () => {
    lab.packets.dataplane.setMode?.("Active");
  });
  afterAll(() => lab?.close());

  const line = (...args: Parameters<ServiceLab["put"]>) => {
    const seen = lab.put(...args);
    expect(seen.wrong).toEqual([]);
    return seen.line;
  };
  const backendOf = (text: string) => text.split(" > ")[1];

  describe("ways back", () => {
    it("a backend here answers as the service it was asked as", async () => {
      await lab.serve(ALL);
      line("a", v4(to(POD_A.v4, VIP), tcp(1000, 80)));
      expect(line("b", v4(to(POD_B.v4, POD_A.v4), tcp(8080, 1000, TCP.synAck)))).toBe(
        "redirect PASS_ESTABLISHED | tcp 10.96.0.10:80 > 10.65.0.1:1000",
      );
      expect(line("a", v4(to(POD_A.v4, VIP), tcp(1000, 80, TCP.ack, "GET")))).toBe(
        "redirect PASS_ESTABLISHED | tcp 10.65.0.1:1000 > 10.65.0.2:8080",
      );
      line("a", v6(to(POD_A.v6, VIP6), tcp(1000, 80)));
      expect(line("b", v6(to(POD_B.v6, POD_A.v6), tcp(8080, 1000, TCP.synAck)))).toBe(
        "redirect PASS_ESTABLISHED | tcp [fd96::10]:80 > [fd65::1]:1000",
      );
    });

    it("a backend elsewhere answers through the overlay or the wire", async () => {
      await lab.serve(ALL);
      line("a", v4(to(POD_A.v4, "10.96.0.11"), tcp(1000, 80)));
      for (const at of ["overlay", "uplink"] as const) {
        const seen = lab.put(at, v4(to(REMOTE.v4, POD_A.v4), tcp(8080, 1000, TCP.synAck)));
        expect([seen.line, seen.wrong]).toEqual(["redirect PASS_ESTABLISHED | tcp 10.96.0.11:80 > 10.65.0.1:1000", []]);
      }
    });

    it("a pod that asked itself hears itself as the service", async () => {
      await lab.serve(ALL);
      expect(line("a", v4(to(POD_A.v4, "10.96.0.12"), tcp(1000, 80)))).toContain("10.96.0.12:1000 > 10.65.0.1:8080");
      expect(line("a", v4(to(POD_A.v4, "10.96.0.12"), tcp(8080, 1000, TCP.synAck)))).toBe(
        "redirect PASS_ESTABLISHED | tcp 10.96.0.12:80 > 10.65.0.1:1000",
      );
    });

    it("a client of a node port is answered from the address it asked, straight out of the node", async () => {
      await lab.serve(ALL);
      line("uplink", v4(to(OUTSIDE.v4, NODE.v4), tcp(1000, 30080)));
      const seen = lab.put("b", v4(to(POD_B.v4, OUTSIDE.v4), tcp(8080, 1000, TCP.synAck)));
      expect([seen.line, seen.wrong]).toEqual([
        "redirect PASS_ESTABLISHED | tcp 192.0.2.1:30080 > 198.51.100.7:1000",
        [],
      ]);
      expect([seen.toMac, seen.hops]).toEqual(["02:00:00:00:02:02", 63]);
      line("uplink", v6(to(OUTSIDE.v6, NODE.v6), tcp(1000, 30080)));
      expect(line("b", v6(to(POD_B.v6, OUTSIDE.v6), tcp(8080, 1000, TCP.synAck)))).toBe(
        "redirect PASS_ESTABLISHED | tcp [2001:db8::1]:30080 > [2001:db8:f::7]:1000",
      );
    });

    it("a client's address goes through the tunnel to the backend's node, and the answer comes back by it", async () => {
      await lab.serve(ALL);
      const there = lab.put("uplink", v4(to(OUTSIDE.v4, NODE.v4), tcp(1000, 30081)));
      expect([there.line, there.leftTo, there.toMac, there.fromMac]).toEqual([
        "redirect PASS_NO_POLICY | tcp 198.51.100.7:1000 > 192.0.2.1:30081",
        ...["10.65.9.9:8080", PEER.mac, OVERLAY_MAC],
      ]);
      const back = lab.put("overlay", v4(to(NODE.v4, OUTSIDE.v4), tcp(30081, 1000, TCP.synAck)), {
        fromMac: PEER.mac,
      });
      expect([back.line, back.wrong]).toEqual([
        "redirect PASS_ESTABLISHED | tcp 192.0.2.1:30081 > 198.51.100.7:1000",
        [],
      ]);
    });

    it("on the backend's node it is translated, and the answer goes back to whom it came from", async () => {
      await lab.serve(ALL);
      const handed = v4(to(OUTSIDE.v4, PEER.v4), tcp(1000, 30080));
      expect(lab.put("overlay", handed, { fromMac: PEER.mac }).line).toBe(
        "redirect PASS_POLICY | tcp 198.51.100.7:1000 > 10.65.0.2:8080",
      );
      const back = lab.put("b", v4(to(POD_B.v4, OUTSIDE.v4), tcp(8080, 1000, TCP.synAck)));
      expect([back.line, back.toMac, back.wrong]).toEqual([
        "redirect PASS_ESTABLISHED | tcp 192.0.2.2:30080 > 198.51.100.7:1000",
        ...[PEER.mac, []],
      ]);
    });

    it("a client that has one port through two nodes has two connections to the backend", async () => {
      await lab.serve(ALL);
      const portOf = (text: string) => Number(/198\.51\.100\.7:(\d+) > 10\.65\.0\.2:8080/.exec(text)?.[1]);
      const first = lab.put("overlay", v4(to(OUTSIDE.v4, PEER.v4), tcp(1000, 30080)), { fromMac: PEER.mac });
      expect(portOf(first.line)).toBe(1000);
      const other = portOf(line("uplink", v4(to(OUTSIDE.v4, NODE.v4), tcp(1000, 30080))));
      expect(other).toBeGreaterThan(32_767);
      const answer = (port: number) => lab.put("b", v4(to(POD_B.v4, OUTSIDE.v4), tcp(8080, port, TCP.synAck)));
      expect([answer(1000), answer(other)].map((one) => [one.line, one.toMac])).toEqual([
        ["redirect PASS_ESTABLISHED | tcp 192.0.2.2:30080 > 198.51.100.7:1000", PEER.mac],
        ["redirect PASS_ESTABLISHED | tcp 192.0.2.1:30080 > 198.51.100.7:1000", "02:00:00:00:02:02"],
      ]);
    });

    it("what is sent through the tunnel to a pod itself is answered by it too", async () => {
      await lab.serve(ALL);
      const client = to(OUTSIDE.v4, POD_B.v4);
      expect(lab.put("overlay", v4(client, tcp(1000, 8080)), { fromMac: PEER.mac }).line).toBe(
        "redirect PASS_POLICY | tcp 198.51.100.7:1000 > 10.65.0.2:8080",
      );
      const back = lab.put("b", v4(to(POD_B.v4, OUTSIDE.v4), tcp(8080, 1000, TCP.synAck)));
      expect([back.line, back.toMac, back.wrong]).toEqual([
        "redirect PASS_ESTABLISHED | tcp 10.65.0.2:8080 > 198.51.100.7:1000",
        ...[PEER.mac, []],
      ]);
    });

    it("where the backend's node has another data plane the kernel hides the client, and undoes it", async () => {
      await lab.serve(ALL, { peer: "Nftables" });
      const there = lab.put("uplink", v4(to(OUTSIDE.v4, NODE.v4), tcp(1000, 30081)));
      expect([there.line, there.mark, there.wrong]).toEqual([
        "next PASS_NO_POLICY | tcp 198.51.100.7:1000 > 10.65.9.9:8080",
        ...[MARK.MARK_MASQUERADE, []],
      ]);
      const again = lab.put("uplink", v4(to(OUTSIDE.v4, NODE.v4), tcp(1000, 30081, TCP.ack)));
      expect([again.line, again.mark]).toEqual([
        "next PASS_ESTABLISHED | tcp 198.51.100.7:1000 > 10.65.9.9:8080",
        MARK.MARK_MASQUERADE,
      ]);
      const back = v4(to(REMOTE.v4, OUTSIDE.v4), tcp(8080, 1000, TCP.synAck));
      expect(line("uplink", back, { direction: "egress", from: "overlay" })).toBe(
        "next PASS_ESTABLISHED | tcp 192.0.2.1:30081 > 198.51.100.7:1000",
      );
    });

    it("what a pod asked of the node itself comes back through the stack, and is turned back at the pod", async () => {
      const node = servicePort("api", [`*${NODE.v4}:6443`], { clusterAddress: "10.96.0.1", port: 443 });
      await lab.serve([node]);
      expect(line("a", v4(to(POD_A.v4, "10.96.0.1"), tcp(1000, 443)))).toBe(
        "next PASS_POLICY | tcp 10.65.0.1:1000 > 192.0.2.1:6443",
      );
      const back = v4(to(NODE.v4, POD_A.v4), tcp(6443, 1000, TCP.synAck));
      expect(line("a", back, { direction: "egress" })).toBe(
        "next PASS_ESTABLISHED | tcp 10.96.0.1:443 > 10.65.0.1:1000",
      );
    });
  });

  describe("a pod that policy denies everything", () => {
    const denied = { bEgress: [allow()], bIngress: [allow()] };
    const SERVICES = [SELF, SELF6, SELF_DNS, SELF_DNS6];
    const four = (source: string, destination: string, transport: ReturnType<typeof tcp>) =>
      v4(to(source, destination), transport);
    const six = (source: string, destination: string, transport: ReturnType<typeof tcp>) =>
      v6(to(source, destination), transport);
    const out = { direction: "egress" } as const;

    it("reaches itself through its Service, also when its policy changes meanwhile", async () => {
      for (const rules of [denied, ANY_CLIENT, denied]) {
        await lab.serve(SERVICES, { rules, keepConntrack: rules !== denied });
        expect(line("a", four(POD_A.v4, "10.96.0.12", tcp(1000, 80)))).toBe(
          "redirect PASS_ITSELF | tcp 10.96.0.12:1000 > 10.65.0.1:8080",
        );
        await lab.serve(SERVICES, { rules: denied, keepConntrack: true });
        expect(line("a", four(POD_A.v4, "10.96.0.12", tcp(8080, 1000, TCP.synAck)))).toContain(
          "tcp 10.96.0.12:80 > 10.65.0.1:1000",
        );
        lab.forget();
      }
      expect(line("a", six(POD_A.v6, "fd96::12", tcp(1000, 80)))).toBe(
        "redirect PASS_ITSELF | tcp [fd96::12]:1000 > [fd65::1]:8080",
      );
      expect(line("a", four(POD_A.v4, "10.96.0.12", udp(1000, 53)))).toBe(
        "redirect PASS_ITSELF | udp 10.96.0.12:1000 > 10.65.0.1:5353",
      );
      expect(line("a", six(POD_A.v6, "fd96::12", udp(1000, 53)))).toBe(
        "redirect PASS_ITSELF | udp [fd96::12]:1000 > [fd65::1]:5353",
      );
      expect(line("a", four(POD_A.v4, "10.96.0.12", udp(5353, 1000)))).toBe(
        "redirect PASS_ESTABLISHED | udp 10.96.0.12:53 > 10.65.0.1:1000",
      );
      // By kube-proxy's rules, until the node's own take over.
      expect(line("a", four(NODE.v4, POD_A.v4, tcp(1001, 8080)), { ...out, from: "a" })).toContain("next PASS_ITSELF");
    });

    it("is reached by nobody else, whatever source is forged, and reaches nobody else", async () => {
      await lab.serve(SERVICES, { rules: denied });
      for (const [make, own, service] of [
        [four, POD_A.v4, "10.96.0.12"],
        [six, POD_A.v6, "fd96::12"],
      ] as const) {
        for (const [ports, text] of [
          [tcp(1000, 80), tcp(1000, 8080)],
          [udp(1000, 53), udp(1000, 5353)],
        ] as const) {
          expect(line("b", make(own, service, ports))).toContain("drop DROP_SPOOFED_SOURCE");
          expect(line("b", make(own, own, text))).toContain("drop DROP_SPOOFED_SOURCE");
          for (const at of ["uplink", "overlay"] as const) {
            expect(line(at, make(own, service, ports))).toMatch(/^drop /);
            expect(line(at, make(own, own, text))).toMatch(/^drop /);
          }
          // What came by another interface and was put into the stack: it leaves there with any source.
          for (const from of ["b", "uplink"] as const) {
            expect(line("a", make(own, own, text), { ...out, from })).toContain("drop DROP_POLICY_WORKLOAD_INGRESS");
          }
        }
      }
      expect(line("b", four(POD_B.v4, "10.96.0.12", tcp(1000, 80)))).toContain("drop DROP_POLICY_WORKLOAD_INGRESS");
      expect(line("a", four(POD_A.v4, POD_B.v4, tcp(1000, 8080)))).toContain("drop DROP_POLICY_WORKLOAD_EGRESS");
      // An answer to another's question is no question to itself.
      expect(line("a", four(POD_A.v4, POD_B.v4, tcp(8080, 1000, TCP.synAck)))).toMatch(/^drop /);
    });
  });

  describe("the node itself, where no hook translated its socket", () => {
    const out = { direction: "egress" } as const;
    /** The port that a packet of the node has now: of those that nobody's masquerading keeps. */
    const portIn = (sent: string) => {
      const port = Number(/192\.0\.2\.1:(\d+) > /.exec(sent)?.[1]);
      expect(port, sent).toBeGreaterThanOrEqual(61_000);
      return port;
    };

    it("reaches a pod here, and hears the service", async () => {
      await lab.serve(ALL);
      const sent = line("uplink", v4(to(NODE.v4, VIP), tcp(1000, 80)), out);
      const port = portIn(sent);
      expect(sent).toBe(`redirect PASS_NO_POLICY | tcp 192.0.2.1:${port} > 10.65.0.2:8080`);
      const atPod = v4(to(NODE.v4, POD_B.v4), tcp(port, 8080));
      expect(line("b", atPod, out)).toContain("next PASS_FROM_HOST");
      const back = lab.put("b", v4(to(POD_B.v4, NODE.v4), tcp(8080, port, TCP.synAck)));
      expect([back.line, back.toMac]).toEqual([
        ...["redirect PASS_FROM_HOST | tcp 10.96.0.10:80 > 192.0.2.1:1000", "02:00:00:00:01:01"],
      ]);
      expect(line("uplink", v4(to(VIP, NODE.v4), tcp(80, 1000, TCP.synAck)))).toContain("next PASS");
      expect(line("uplink", v4(to(NODE.v4, VIP), tcp(1000, 80, TCP.ack)), out)).toContain("redirect PASS_ESTABLISHED");
    });

    it("reaches a pod elsewhere by its routes", async () => {
      await lab.serve(ALL);
      const sent = line("uplink", v4(to(NODE.v4, "10.96.0.11"), tcp(1000, 80)), out);
      const port = portIn(sent);
      expect(sent).toContain(`192.0.2.1:${port} > 10.65.9.9:8080`);
      expect(line("uplink", v4(to(REMOTE.v4, NODE.v4), tcp(8080, port, TCP.synAck)))).toBe(
        "redirect PASS_ESTABLISHED | tcp 10.96.0.11:80 > 192.0.2.1:1000",
      );
    });

    it("reaches its own processes as the service, and they answer it as that", async () => {
      const own = [
        servicePort("api", [`*${NODE.v4}:6443`], { clusterAddress: "10.96.0.1", port: 443 }),
        servicePort("api6", [`*[${NODE.v6}]:6443`], { family: 6, clusterAddress: "fd96::1", port: 443 }),
      ];
      await lab.serve(own);
      expect(line("uplink", v4(to(NODE.v4, "10.96.0.1"), tcp(1000, 443)), out)).toBe(
        "redirect PASS_NO_POLICY | tcp 10.96.0.1:1000 > 192.0.2.1:6443",
      );
      expect(line("uplink", v4(to("10.96.0.1", NODE.v4), tcp(1000, 6443)))).toContain("next PASS");
      expect(line("uplink", v4(to(NODE.v4, "10.96.0.1"), tcp(6443, 1000, TCP.synAck)), out)).toBe(
        "redirect PASS_ESTABLISHED | tcp 10.96.0.1:443 > 192.0.2.1:1000",
      );
      expect(line("uplink", v4(to("10.96.0.1", NODE.v4), tcp(443, 1000, TCP.synAck)))).toContain("next PASS");
      expect(line("uplink", v6(to(NODE.v6, "fd96::1"), tcp(1000, 443)), out)).toBe(
        "redirect PASS_NO_POLICY | tcp [fd96::1]:1000 > [2001:db8::1]:6443",
      );
    });

    it("is refused where nobody answers, and at ports a service does not have, and sees what it is told", async () => {
      const none = servicePort("none", [], { clusterAddress: "10.96.0.13" });
      const noneUdp = servicePort("none-udp", [], { protocol: UDP, clusterAddress: "10.96.0.13" });
      await lab.serve([...ALL, none, noneUdp]);
      const refused = lab.put("uplink", v4(to(NODE.v4, "10.96.0.13"), tcp(1000, 80)), out);
      expect([refused.line, refused.mark, refused.wrong]).toEqual([
        "redirect REJECT_NO_BACKEND | tcp 10.96.0.13:80 > 192.0.2.1:1000",
        ...[MARK.MARK_REJECT, []],
      ]);
      expect(line("uplink", v4(to(NODE.v4, "10.96.0.13"), udp(1000, 80)), out)).toBe(
        "redirect REJECT_NO_BACKEND | icmp 3/3 10.96.0.13 > 192.0.2.1",
      );
      expect(line("uplink", v4(to(NODE.v4, VIP), tcp(1000, 81)), out)).toBe(
        "redirect REJECT_NO_PORT | tcp 10.96.0.10:81 > 192.0.2.1:1000",
      );
    });

    it("is asked for its address where a load balancer takes only some clients", async () => {
      const balanced = (...sourceRanges: string[]) =>
        servicePort("lb", [`*${POD_B.v4}:8080`], { loadBalancerAddresses: ["203.0.113.20"], sourceRanges });
      const first = () => line("uplink", v4(to(NODE.v4, "203.0.113.20"), tcp(1000, 80)), out);
      await lab.serve([balanced("198.51.100.0/24")]);
      expect(first()).toContain("drop DROP_SOURCE_RANGE");
      await lab.serve([balanced("198.51.100.0/24", `${NODE.v4}/32`)]);
      expect(first()).toContain("> 10.65.0.2:8080");
    });

    it("is left alone in everything else it says, and what it forwards too", async () => {
      await lab.serve(ALL);
      expect(line("uplink", v4(to(NODE.v4, OUTSIDE.v4), tcp(1000, 80)), out)).toContain("next PASS_NOT_OURS");
      expect(line("uplink", v4(to(NODE.v4, VIP), tcp(1000, 80, TCP.ack)), out)).toContain("next PASS_NOT_OURS");
      const forwarded = v4(to("192.0.2.77", VIP), tcp(1000, 80));
      expect(line("uplink", forwarded, { ...out, from: "overlay" })).toContain("next PASS_NOT_OURS");
    });
  });

  describe("straight answers", () => {
    it("the first node leaves the packet as it is, and stays with the node it chose", async () => {
      await lab.serve(ALL, { direct: true });
      for (const flags of [TCP.syn, TCP.ack, TCP.ack]) {
        const seen = lab.put("uplink", v4(to(OUTSIDE.v4, NODE.v4), tcp(1000, 30081, flags)));
        expect(seen.line).toMatch(
          /redirect PASS_(?:NO_POLICY|ESTABLISHED) \| tcp 198\.51\.100\.7:1000 > 192\.0\.2\.1:30081/,
        );
        expect([seen.toMac, seen.hops, seen.wrong]).toEqual([PEER.mac, 63, []]);
      }
      const { rows } = await lab.packets.dataplane.show("conntrack");
      expect(rows.find(([, from]) => from === "198.51.100.7:1000")?.slice(4, 6)).toEqual(["established", "overlay"]);
    });

    it("the backend's node answers the client itself, as the address that was asked", async () => {
      await lab.serve(ALL, { direct: true });
      expect(lab.put("overlay", v4(to(OUTSIDE.v4, PEER.v4), tcp(1000, 30080)), { fromMac: PEER.mac }).line).toBe(
        "redirect PASS_POLICY | tcp 198.51.100.7:1000 > 10.65.0.2:8080",
      );
      const back = lab.put("b", v4(to(POD_B.v4, OUTSIDE.v4), tcp(8080, 1000, TCP.synAck)));
      expect([back.line, back.toMac, back.wrong]).toEqual([
        "redirect PASS_ESTABLISHED | tcp 192.0.2.2:30080 > 198.51.100.7:1000",
        ...["02:00:00:00:02:02", []],
      ]);
    });

    /** The first node sees no answer then: a flow of which the client's acknowledgement alone says that it was answered. */
    const isStraight = async (client: string, node: string, port = 1000) => {
      const packet = client.includes(":") ? v6 : v4;
      for (const flags of [TCP.syn, TCP.ack]) line("uplink", packet(to(client, node), tcp(port, 30081, flags)));
      const { rows } = await lab.packets.dataplane.show("conntrack");
      const from = client.includes(":") ? `[${client}]:${port}` : `${client}:${port}`;
      return rows.find((row) => row[1] === from)?.[4] === "established";
    };

    it("clients who must not be answered straight are not, and others beside them are", async () => {
      await lab.serve(ALL, { direct: true, neverDirect: ["198.51.100.6/31", "2001:db8:f::/64"] });
      expect(await isStraight(OUTSIDE.v4, NODE.v4)).toBe(false);
      expect(await isStraight("198.51.100.8", NODE.v4)).toBe(true);
      expect(await isStraight(OUTSIDE.v6, NODE.v6)).toBe(false);
      expect(await isStraight("2001:db8:e::7", NODE.v6)).toBe(true);
      // One more time: what is in the kernel is compared, and what nobody wants is swept.
      await lab.packets.dataplane.resync();
      await lab.packets.dataplane.sweep();
      expect(await isStraight(OUTSIDE.v4, NODE.v4, 1001)).toBe(false);
      await lab.serve(ALL, { direct: true, neverDirect: ["198.51.100.8/32"] });
      expect(await isStraight(OUTSIDE.v4, NODE.v4)).toBe(true);
      expect(await isStraight("198.51.100.8", NODE.v4)).toBe(false);
      expect(await isStraight(OUTSIDE.v6, NODE.v6)).toBe(true);
    });

    it("a flow stays with the answer it began with, whatever is said about its client later", async () => {
      const client = v4(to(OUTSIDE.v4, PEER.v4), tcp(1000, 30080));
      const answer = () => lab.put("b", v4(to(POD_B.v4, OUTSIDE.v4), tcp(8080, 1000, TCP.synAck))).toMac;
      await lab.serve(ALL, { direct: true });
      lab.put("overlay", client, { fromMac: PEER.mac });
      expect(answer()).not.toBe(PEER.mac);
      await lab.serve(ALL, { direct: true, neverDirect: ["198.51.100.0/24"], keepConntrack: true });
      expect(answer()).not.toBe(PEER.mac);
      expect(await isStraight(OUTSIDE.v4, NODE.v4, 1001)).toBe(false);
      lab.forget();
      lab.put("overlay", client, { fromMac: PEER.mac });
      expect(answer()).toBe(PEER.mac);
    });

    it("pods and backends here are served as ever", async () => {
      await lab.serve(ALL, { direct: true });
      expect(line("a", v4(to(POD_A.v4, NODE.v4), tcp(1000, 30081)))).toContain("> 10.65.9.9:8080");
      expect(line("uplink", v4(to(OUTSIDE.v4, NODE.v4), tcp(1000, 30080)))).toContain("> 10.65.0.2:8080");
    });
  });

  describe("who is chosen", () => {
    const MANY = ["1", "2", "3", "4"].map((last) => `${POD_B.v4}${last}:80`);

    it("everybody as often as the others, within chance", async () => {
      await lab.serve([servicePort("many", MANY, { clusterAddress: VIP })]);
      const chosen = new Map<string, number>();
      for (let port = 1; port <= 2000; port++) {
        const { packet } = lab.packets.run("a", "ingress", frame(v4(to(POD_A.v4, VIP), tcp(port, 80))));
        const key = packet.subarray(30, 34).join(".");
        chosen.set(key, (chosen.get(key) ?? 0) + 1);
      }
      // Two thousand throws at four: five standard deviations are 97.
      for (const times of chosen.values()) expect(Math.abs(times - 500)).toBeLessThan(100);
      expect(chosen.size).toBe(4);
    });

    it("a client stays with its backend where the service says so, and others do not", async () => {
      await lab.serve([servicePort("sticky", MANY, { clusterAddress: VIP, affinitySeconds: 60, nodePort: 30080 })]);
      const ports = Array.from({ length: 30 }, (_, index) => 1000 + index);
      const of = (at: "a" | "uplink", source: string, destination: string, port: number) =>
        new Set(ports.map((own) => backendOf(lab.put(at, v4(to(source, destination), tcp(own, port))).line)));
      const first = of("a", POD_A.v4, VIP, 80);
      expect(first.size).toBe(1);
      expect(of("a", POD_A.v4, NODE.v4, 30080)).toEqual(first);
      const clients = new Set(ports.map((own) => [...of("uplink", `198.51.100.${own - 900}`, NODE.v4, 30080)].join()));
      expect(clients.size).toBeGreaterThan(1);
    });

    it("no longer than its time", async () => {
      await lab.serve([servicePort("sticky", MANY, { clusterAddress: VIP, affinitySeconds: 1 })]);
      const chosen = new Set<string | undefined>();
      const affinities = lab.packets.map("affinities");
      for (let port = 1000; port < 1040; port++) {
        chosen.add(backendOf(lab.put("a", v4(to(POD_A.v4, VIP), tcp(port, 80))).line));
        // As if two seconds had passed since.
        for (const [key, value] of affinities.entries()) {
          value.writeBigUInt64LE(value.readBigUInt64LE(24) - 2_000_000_000n, 24);
          affinities.update(key, value);
        }
      }
      affinities.close();
      expect(chosen.size).toBeGreaterThan(1);
    });

    it("a SYN sent again before its answer goes to the same backend", async () => {
      await lab.serve([servicePort("many", MANY, { clusterAddress: VIP })]);
      for (let port = 1000; port < 1020; port++) {
        const seen = [1, 2, 3].map(() => backendOf(lab.put("a", v4(to(POD_A.v4, VIP), tcp(port, 80))).line));
        expect(new Set(seen).size).toBe(1);
      }
    });

    it("a backend that was taken away gets no new flows, and keeps those it has", async () => {
      await lab.serve([servicePort("web", MANY.slice(0, 1), { clusterAddress: VIP })]);
      const first = lab.put("a", v4(to(POD_A.v4, VIP), tcp(1000, 80))).line;
      await lab.packets.apply(ANY_CLIENT, {
        services: { set: [servicePort("web", MANY.slice(1, 2), { clusterAddress: VIP })], remove: [] },
      });
      expect(backendOf(lab.put("a", v4(to(POD_A.v4, VIP), tcp(1000, 80, TCP.ack))).line)).toBe(backendOf(first));
      expect(backendOf(lab.put("a", v4(to(POD_A.v4, VIP), tcp(1001, 80))).line)).toBe("10.65.0.22:80");
    });
  });

  describe("addresses of services", () => {
    const other = () => line("a", v4(to(POD_A.v4, VIP), tcp(1000, 81)));

    it("refuse ports they do not have as long as one of theirs is there, also over a restart of the agent", async () => {
      await lab.serve([WEB, DNS]);
      expect(other()).toContain("redirect REJECT_NO_PORT");
      await lab.serve([DNS]);
      expect(other()).toContain("redirect REJECT_NO_PORT");
      expect(line("a", v4(to(POD_A.v4, VIP), tcp(1000, 80)))).toContain("redirect REJECT_NO_PORT");
      await lab.packets.restart();
      await lab.serve([DNS]);
      expect(other()).toContain("redirect REJECT_NO_PORT");
      await lab.packets.restart();
      await lab.serve([]);
      expect(other()).toContain("next PASS_POLICY");
    });

    it("are tidied up when somebody else wrote into the map", async () => {
      await lab.serve([WEB]);
      const addresses = lab.packets.map("cluster_addresses");
      for (const [key] of addresses.entries()) addresses.delete(key);
      addresses.close();
      expect(other()).toContain("next");
      await lab.packets.dataplane.resync();
      lab.forget();
      expect(other()).toContain("redirect REJECT_NO_PORT");
    });
  });

  describe("two flows that would look like one", () => {
    it("get different ports behind the translation, and each its own answers", async () => {
      const twin = servicePort("twin", [`*${POD_B.v4}:8080`], { clusterAddress: "10.96.0.20" });
      await lab.serve([WEB, twin]);
      expect(line("a", v4(to(POD_A.v4, VIP), tcp(1000, 80)))).toContain("10.65.0.1:1000 > 10.65.0.2:8080");
      const second = line("a", v4(to(POD_A.v4, "10.96.0.20"), tcp(1000, 80)));
      const port = Number(/10\.65\.0\.1:(\d+) > 10\.65\.0\.2:8080/.exec(second)![1]);
      expect(port).toBeGreaterThan(32767);
      const third = line("a", v4(to(POD_A.v4, POD_B.v4), tcp(1000, 8080)));
      const direct = Number(/10\.65\.0\.1:(\d+) > 10\.65\.0\.2:8080/.exec(third)![1]);
      expect(new Set([1000, port, direct]).size).toBe(3);
      const answer = (own: number) => line("b", v4(to(POD_B.v4, POD_A.v4), tcp(8080, own, TCP.synAck)));
      expect(answer(1000)).toContain("10.96.0.10:80 > 10.65.0.1:1000");
      expect(answer(port)).toContain("10.96.0.20:80 > 10.65.0.1:1000");
      expect(answer(direct)).toContain("10.65.0.2:8080 > 10.65.0.1:1000");
    });

    it("also where the other is the kernel's", async () => {
      await lab.serve(ALL);
      const original = tuple(6, POD_A.v4, 1777, POD_B.v4, 8080);
      await inKernel(lab, { original, timeout: 60, tcpState: "established" }, () => {
        const seen = line("a", v4(to(POD_A.v4, VIP), tcp(1777, 80)));
        expect(seen).toMatch(/10\.65\.0\.1:\d{5} > 10\.65\.0\.2:8080/);
      });
    });
  });

  describe("errors about a flow", () => {
    it("from behind the translation are turned back, with what they quote", async () => {
      await lab.serve(ALL);
      line("a", v4(to(POD_A.v4, VIP), tcp(1000, 80)));
      const inner = v4(to(POD_A.v4, POD_B.v4), tcp(1000, 8080)).bytes.subarray(0, 28);
      const seen = lab.put("b", v4(to(POD_B.v4, POD_A.v4), icmp(1, 3, 3, 0, inner)));
      expect([seen.line, quoted(seen.packet), seen.wrong]).toEqual([
        "redirect PASS_RELATED | icmp 3/3 10.96.0.10 > 10.65.0.1",
        "tcp 10.65.0.1:1000 > 10.96.0.10:80",
        [],
      ]);
      line("a", v6(to(POD_A.v6, VIP6), tcp(1000, 80)));
      const inner6 = v6(to(POD_A.v6, POD_B.v6), tcp(1000, 8080)).bytes.subarray(0, 48);
      const seen6 = lab.put("b", v6(to(POD_B.v6, POD_A.v6), icmp(58, 1, 4, 0, inner6)));
      expect([seen6.line, quoted(seen6.packet), seen6.wrong]).toEqual([
        "redirect PASS_RELATED | icmp 1/4 [fd96::10] > [fd65::1]",
        "tcp [fd65::1]:1000 > [fd96::10]:80",
        [],
      ]);
    });

    it("from a router keep their sender", async () => {
      await lab.serve(ALL);
      line("a", v4(to(POD_A.v4, "10.96.0.11"), tcp(1000, 80)));
      const inner = v4(to(POD_A.v4, REMOTE.v4), tcp(1000, 8080)).bytes.subarray(0, 28);
      const seen = lab.put("uplink", v4(to("192.0.2.77", POD_A.v4), icmp(1, 3, 4, 1400, inner)));
      expect([seen.line, quoted(seen.packet), seen.wrong]).toEqual([
        "redirect PASS_RELATED | icmp 3/4 192.0.2.77 > 10.65.0.1",
        "tcp 10.65.0.1:1000 > 10.96.0.11:80",
        [],
      ]);
    });

    it("from the client's side reach the backend, as if it had been asked itself", async () => {
      await lab.serve(ALL);
      line("uplink", v4(to(OUTSIDE.v4, NODE.v4), udp(1000, 30053)));
      const inner = v4(to(NODE.v4, OUTSIDE.v4), udp(30053, 1000)).bytes.subarray(0, 28);
      const seen = lab.put("uplink", v4(to("198.51.100.1", NODE.v4), icmp(1, 3, 4, 1400, inner)));
      expect([seen.line, quoted(seen.packet), seen.wrong]).toEqual([
        "redirect PASS_RELATED | icmp 3/4 198.51.100.1 > 10.65.0.2",
        "udp 10.65.0.2:5353 > 198.51.100.7:1000",
        [],
      ]);
      line("uplink", v6(to(OUTSIDE.v6, NODE.v6), tcp(1000, 30080)));
      const inner6 = v6(to(NODE.v6, OUTSIDE.v6), tcp(30080, 1000)).bytes.subarray(0, 48);
      const seen6 = lab.put("uplink", v6(to("2001:db8:f::1", NODE.v6), icmp(58, 2, 0, 1400, inner6)));
      expect([seen6.line, quoted(seen6.packet), seen6.wrong]).toEqual([
        "redirect PASS_RELATED | icmp 2/0 [2001:db8:f::1] > [fd65::2]",
        "tcp [fd65::2]:8080 > [2001:db8:f::7]:1000",
        [],
      ]);
    });

    it("about no flow of ours are the node's own", async () => {
      await lab.serve(ALL);
      const inner = v4(to(NODE.v4, OUTSIDE.v4), udp(777, 1000)).bytes.subarray(0, 28);
      expect(line("uplink", v4(to("198.51.100.1", NODE.v4), icmp(1, 3, 3, 0, inner)))).toBe(
        "next PASS_NO_POLICY | icmp 3/3 198.51.100.1 > 192.0.2.1",
      );
    });
  });

  describe("packets of every shape", () => {
    it("fragments follow their first, both ways; without it they are the stack's", async () => {
      await lab.serve(ALL);
      const part = (id: number, offset: number, more: boolean) =>
        v4(
          { ...to(OUTSIDE.v4, NODE.v4), id, offset, more },
          offset === 0 ? udp(1000, 30053, "x".repeat(24)) : { protocol: UDP, bytes: Buffer.alloc(16) },
        );
      expect(lab.put("uplink", part(7, 0, true)).line).toContain("198.51.100.7:1000 > 10.65.0.2:5353");
      const later = lab.put("uplink", part(7, 4, false), { unsummed: true });
      expect(later.line).toMatch(/^redirect PASS_ESTABLISHED/);
      expect([[...later.packet.subarray(30, 34)].join("."), later.wrong]).toEqual([POD_B.v4, []]);
      expect(lab.put("uplink", part(8, 4, false), { unsummed: true }).line).toMatch(/^next PASS_NOT_OURS/);
      const back = (offset: number, more: boolean) =>
        v4(
          { ...to(POD_B.v4, OUTSIDE.v4), id: 9, offset, more },
          offset === 0 ? udp(5353, 1000, "x".repeat(24)) : { protocol: UDP, bytes: Buffer.alloc(16) },
        );
      expect(lab.put("b", back(0, true)).line).toContain("192.0.2.1:30053 > 198.51.100.7:1000");
      const last = lab.put("b", back(4, false), { unsummed: true });
      expect([[...last.packet.subarray(26, 30)].join("."), last.wrong]).toEqual([NODE.v4, []]);
    });

    it("UDP without a checksum stays without, with one it is never lost", async () => {
      await lab.serve(ALL);
      const bare = lab.put("a", v4(to(POD_A.v4, VIP), udp(1000, 53)), { unsummed: true });
      expect([bare.line, bare.packet.readUInt16BE(40)]).toEqual([
        ...["redirect PASS_POLICY | udp 10.65.0.1:1000 > 10.65.0.2:5353", 0],
      ]);
      for (let port = 2000; port < 2200; port++) {
        const seen = lab.put("a", v4(to(POD_A.v4, VIP), udp(port, 53, `n${port}`)));
        expect([seen.wrong, seen.packet.readUInt16BE(40) === 0]).toEqual([[], false]);
      }
    });

    it("options before the ports are stepped over", async () => {
      await lab.serve(ALL);
      const options = Buffer.from("0101010194040000", "hex");
      expect(line("a", v4({ ...to(POD_A.v4, VIP), options }, tcp(1000, 80)))).toContain("> 10.65.0.2:8080");
    });

    it("what would not fit into the tunnel is said to its sender, with what does", async () => {
      await lab.serve(ALL);
      const large = tcp(1000, 30081, TCP.syn, "x".repeat(1420));
      const whole = v4(to(OUTSIDE.v4, NODE.v4), large);
      expect(line("uplink", whole)).toContain("redirect PASS_NO_POLICY");
      lab.forget();
      // Do not fragment.
      whole.bytes.writeUInt16BE(0x4000, 6);
      whole.bytes.writeUInt16BE(0, 10);
      const seen = lab.put("uplink", headerSummed(whole));
      expect([seen.line, quoted(seen.packet), seen.packet.readUInt16BE(40), seen.wrong, seen.mark]).toEqual([
        "redirect REJECT_TOO_BIG | icmp 3/4 192.0.2.1 > 198.51.100.7",
        "tcp 198.51.100.7:1000 > 192.0.2.1:30081",
        ...[1450, [], MARK.MARK_REJECT],
      ]);
      const seen6 = lab.put("uplink", v6(to(OUTSIDE.v6, NODE.v6), large));
      expect([seen6.line, seen6.packet.readUInt32BE(58), seen6.wrong]).toEqual([
        "redirect REJECT_TOO_BIG | icmp 2/0 [2001:db8::1] > [2001:db8:f::7]",
        ...[1450, []],
      ]);
    });

    it("our own answers pass the hooks they leave by", async () => {
      await lab.serve(ALL, { rules: {} });
      const context = lab.put("a", v4(to(POD_A.v4, VIP), tcp(1000, 81)));
      expect([context.line, context.mark]).toEqual([
        ...["redirect REJECT_NO_PORT | tcp 10.96.0.10:81 > 10.65.0.1:1000", MARK.MARK_REJECT],
      ]);
      expect(context.toMac).toBe("02:00:00:00:00:0a");
      const { packet } = context;
      const at = packet.subarray(34);
      expect([at[13], at.readUInt32BE(8)]).toEqual([TCP.rst | TCP.ack, 1]);
    });

    it("tunnels come from nodes only, ours at least", async () => {
      await lab.serve(ALL);
      const vxlan = (vni: number) => {
        const header = Buffer.alloc(8);
        header[0] = 8;
        header.writeUIntBE(vni, 4, 3);
        return udp(999, 4789, header.toString("latin1"));
      };
      expect(line("uplink", v4(to(OUTSIDE.v4, NODE.v4), vxlan(0x1000)))).toContain("drop DROP_TUNNEL_SOURCE");
      expect(line("uplink", v4(to(PEER.v4, NODE.v4), vxlan(0x1000)))).toContain("next PASS_OVERLAY");
      expect(line("uplink", v4(to(OUTSIDE.v4, NODE.v4), vxlan(77)))).toContain("next PASS");
      expect(line("uplink", v4(to(OUTSIDE.v4, "203.0.113.77"), vxlan(0x1000)))).toContain("next PASS");
    });
  });

  describe("policy", () => {
    it("of pods is asked about who answers, not about the service's address", async () => {
      const rules = {
        ...ANY_CLIENT,
        aEgress: [allow({ protocol: 6, dstNets: [`${POD_B.v4}/32`], dstPorts: [[8080, 8080]] })],
      };
      await lab.serve([WEB, FAR], { rules });
      expect(line("a", v4(to(POD_A.v4, VIP), tcp(1000, 80)))).toContain("redirect PASS_POLICY");
      expect(line("a", v4(to(POD_A.v4, "10.96.0.11"), tcp(1000, 80)))).toContain("drop DROP_POLICY_WORKLOAD_EGRESS");
      await lab.serve([WEB], { rules: { ...rules, aEgress: [allow({ dstNets: [`${VIP}/32`] })] } });
      expect(line("a", v4(to(POD_A.v4, VIP), tcp(1000, 80)))).toContain("drop DROP_POLICY_WORKLOAD_EGRESS");
    });

    it("of the backend sees the client, also one from outside", async () => {
      const rules = { ...ANY_CLIENT, bIngress: [allow({ srcNets: [`${OUTSIDE.v4}/32`] })] };
      await lab.serve([WEB], { rules });
      expect(line("uplink", v4(to(OUTSIDE.v4, NODE.v4), tcp(1000, 30080)))).toContain("redirect PASS_POLICY");
      expect(line("uplink", v4(to("198.51.100.8", NODE.v4), tcp(1000, 30080)))).toContain(
        "DROP_POLICY_WORKLOAD_INGRESS",
      );
      expect(line("a", v4(to(POD_A.v4, VIP), tcp(1000, 80)))).toContain("DROP_POLICY_WORKLOAD_INGRESS");
    });

    it("that changes cuts translated flows too, whichever way the next packet goes", async () => {
      for (const first of ["request", "answer"]) {
        await lab.serve([WEB]);
        line("a", v4(to(POD_A.v4, VIP), tcp(1000, 80)));
        line("b", v4(to(POD_B.v4, POD_A.v4), tcp(8080, 1000, TCP.synAck)));
        await lab.packets.apply({ ...ANY_CLIENT, bIngress: [allow({ protocol: UDP })] });
        const seen =
          first === "request"
            ? line("a", v4(to(POD_A.v4, VIP), tcp(1000, 80, TCP.ack)))
            : line("b", v4(to(POD_B.v4, POD_A.v4), tcp(8080, 1000, TCP.ack)));
        expect(seen).toContain("drop DROP_POLICY_WORKLOAD_INGRESS");
      }
    });

    it("that changes and still allows leaves them alone", async () => {
      await lab.serve([WEB]);
      line("a", v4(to(POD_A.v4, VIP), tcp(1000, 80)));
      await lab.packets.apply({ ...ANY_CLIENT, bIngress: [allow({ protocol: 6, dstPorts: [[8080, 8080]] })] });
      expect(line("b", v4(to(POD_B.v4, POD_A.v4), tcp(8080, 1000, TCP.synAck)))).toBe(
        "redirect PASS_POLICY | tcp 10.96.0.10:80 > 10.65.0.1:1000",
      );
      expect(line("a", v4(to(POD_A.v4, VIP), tcp(1000, 80, TCP.ack)))).toBe(
        "redirect PASS_ESTABLISHED | tcp 10.65.0.1:1000 > 10.65.0.2:8080",
      );
    });

    it("of the node is asked about forwarded packets, and not again about their answers", async () => {
      const host = { forwardIngress: [allow({ protocol: 6 })], egress: [] };
      await lab.serve(ALL, { rules: { ...ANY_CLIENT, host } });
      expect(line("uplink", v4(to(OUTSIDE.v4, NODE.v4), tcp(1000, 30080)))).toContain("redirect PASS_POLICY");
      expect(line("uplink", v4(to(OUTSIDE.v4, NODE.v4), udp(1000, 30053)))).toContain("drop DROP_POLICY_HOST");
      expect(line("b", v4(to(POD_B.v4, OUTSIDE.v4), tcp(8080, 1000, TCP.synAck)))).toContain("192.0.2.1:30080 >");
      const leaving = v4(to(NODE.v4, OUTSIDE.v4), tcp(30080, 1000, TCP.synAck));
      expect(line("uplink", leaving, { direction: "egress", from: "b" })).toContain("next PASS_ESTABLISHED");
      await lab.packets.apply(ANY_CLIENT);
    });
  });

  it("every drop is in the flow logs, by its reason", async () => {
    const [dropped, logged] = await lab.packets.droppedAndLogged();
    expect(logged).toEqual(dropped);
  });
});

function tuple(protocol: number, source: string, sourcePort: number, destination: string, destinationPort: number) {
  return { protocol, source, sourcePort, destination, destinationPort };
}

/** With a flow in the kernel's connection tracking while the story lasts. */
async function inKernel(lab: ServiceLab, flow: NewConntrackEntry, act: () => void): Promise<void> {
  const kernel = lab.packets.kernel.conntrack(lab.packets.netns);
  kernel.insert(flow);
  try {
    act();
  } finally {
    kernel.delete(flow.original);
    kernel.close();
  }
}

function headerSummed(packet: { type: number; bytes: Buffer }): { type: number; bytes: Buffer } {
  let sum = 0;
  for (let at = 0; at < 20; at += 2) sum += packet.bytes.readUInt16BE(at);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  packet.bytes.writeUInt16BE(~sum & 0xffff, 10);
  return packet;
}

import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { frame, TCP, tcp, udp, v4, v6 } from "../ebpf/frames.ts";
import { whyNoPrograms } from "../ebpf/kernel-needed.ts";
import { allow, PacketLab, POD_A, POD_B } from "../ebpf/packet-lab.ts";

const missing = whyNoPrograms();
const DENIED = "drop DROP_POLICY_WORKLOAD_INGRESS";
const FAMILIES = [
  { name: "IPv4", wrap: v4, a: POD_A.v4, b: POD_B.v4 },
  { name: "IPv6", wrap: v6, a: POD_A.v6, b: POD_B.v6 },
] as const;

/** Pod a was let into pod b and no longer is; b may open connections to a. What is left of the old ones must not pass for such a one. */
describe.skipIf(missing).each(FAMILIES)(
  `entries of connections that policy ended, eBPF, $name${missing ? ` (${missing})` : ""}`,
  ({ wrap, a, b }) => {
    let lab: PacketLab;
    beforeAll(async () => {
      lab = await PacketLab.open();
    });
    beforeEach(async () => {
      await open();
      lab.clearConntrack();
    });
    afterAll(() => lab?.close());

    const rules = { aEgress: [allow()], aIngress: [allow()], bEgress: [allow()] };
    const open = () => lab.apply({ ...rules, bIngress: [allow()] });
    const revoke = () => lab.apply({ ...rules, bIngress: [allow({ dstPorts: [[1, 1]], protocol: 6 })] });
    const said = ({ verdict, reason }: { verdict: string; reason: string }) => `${verdict} ${reason}`;
    type Transport = Parameters<typeof v4>[1];
    const client = (part: Transport) =>
      said(lab.send("a", "ingress", frame(wrap({ source: a, destination: b }, part))));
    const server = (part: Transport) =>
      said(lab.send("b", "ingress", frame(wrap({ source: b, destination: a }, part))));

    it("half open: the answer of the server does not finish the handshake", async () => {
      client(tcp(40000, 80));
      await revoke();
      expect(server(tcp(80, 40000, TCP.synAck))).toBe(DENIED);
      expect(server(tcp(80, 40000, TCP.synAck))).toBe(DENIED);
      expect(client(tcp(40000, 80, TCP.ack))).toBe(DENIED);
    });

    it("established: the server's segments open nothing, nor does a SYN of the client make room for them", async () => {
      client(tcp(40000, 80));
      server(tcp(80, 40000, TCP.synAck));
      await revoke();
      for (const round of [1, 2]) {
        expect([round, server(tcp(80, 40000, TCP.ack))]).toEqual([round, DENIED]);
        expect([round, client(tcp(40000, 80, TCP.ack))]).toEqual([round, DENIED]);
        expect([round, client(tcp(40000, 80))]).toEqual([round, DENIED]);
        expect([round, client(tcp(40000, 80, TCP.rst))]).toEqual([round, DENIED]);
      }
    });

    it("UDP: the server's datagrams open nothing", async () => {
      client(udp(40000, 53));
      await revoke();
      for (const round of [1, 2]) {
        expect([round, server(udp(53, 40000))]).toEqual([round, DENIED]);
        expect([round, client(udp(40000, 53))]).toEqual([round, DENIED]);
      }
    });

    it("forgotten: each direction of TCP in its middle is asked about by itself", async () => {
      client(tcp(40000, 80));
      await revoke();
      lab.clearConntrack();
      expect(server(tcp(80, 40000, TCP.ack))).toBe("redirect PASS_POLICY");
      expect(server(tcp(80, 40000, TCP.ack))).toBe("redirect PASS_ESTABLISHED");
      expect(client(tcp(40000, 80, TCP.ack))).toBe(DENIED);
      // A handshake that is answered before it was opened is no other.
      lab.clearConntrack();
      server(tcp(80, 40000, TCP.synAck));
      expect(client(tcp(40000, 80, TCP.ack))).toBe(DENIED);
      // A change of policy approves of the one direction, and not of the other with it.
      await lab.apply({ ...rules, bIngress: [allow({ dstPorts: [[2, 2]], protocol: 6 })] });
      server(tcp(80, 40000, TCP.ack));
      expect(client(tcp(40000, 80, TCP.ack))).toBe(DENIED);
    });

    it("where policy allows both, a connection that was forgotten goes on", async () => {
      expect(server(tcp(80, 40000, TCP.ack))).toBe("redirect PASS_POLICY");
      expect(client(tcp(40000, 80, TCP.ack))).toBe("redirect PASS_POLICY");
      for (const round of [1, 2]) {
        expect([round, server(tcp(80, 40000, TCP.ack))]).toEqual([round, "redirect PASS_ESTABLISHED"]);
        expect([round, client(tcp(40000, 80, TCP.ack))]).toEqual([round, "redirect PASS_ESTABLISHED"]);
      }
    });

    it("allowed again, it goes on, and so does a new one of the same ports", async () => {
      client(tcp(40000, 80));
      server(tcp(80, 40000, TCP.synAck));
      await revoke();
      expect(server(tcp(80, 40000, TCP.ack))).toBe(DENIED);
      await open();
      expect(server(tcp(80, 40000, TCP.ack))).toBe("redirect PASS_POLICY");
      expect(client(tcp(40000, 80, TCP.ack))).toBe("redirect PASS_ESTABLISHED");
      await revoke();
      expect(client(tcp(40000, 80))).toBe(DENIED);
      await open();
      expect(client(tcp(40000, 80))).toBe("redirect PASS_POLICY");
      expect(server(tcp(80, 40000, TCP.synAck))).toBe("redirect PASS_ESTABLISHED");
      expect(client(tcp(40000, 80, TCP.ack))).toBe("redirect PASS_ESTABLISHED");
    });
  },
);

import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Rule } from "../../src/calc/model.ts";
import { frame, type Payload, ports, udp, v4, v6 } from "../ebpf/frames.ts";
import { whyNoPrograms } from "../ebpf/kernel-needed.ts";
import { allow, PacketLab, POD_A, POD_B } from "../ebpf/packet-lab.ts";

const missing = whyNoPrograms();
const SCTP = 132;
/** The common header, and the head of a chunk. */
const sctp = (source: number, destination: number) => ports(SCTP, source, destination, Buffer.alloc(12));
const FAMILIES = [
  { name: "IPv4", wrap: v4, source: POD_A.v4, destination: POD_B.v4 },
  { name: "IPv6", wrap: v6, source: POD_A.v6, destination: POD_B.v6 },
] as const;

/** A rule that a data plane cannot enforce must not be one that it ignores. */
describe.skipIf(missing)(`rules that programs could ignore, eBPF${missing ? ` (${missing})` : ""}`, () => {
  let lab: PacketLab;
  beforeAll(async () => {
    lab = await PacketLab.open();
    await lab.apply({});
  });
  beforeEach(() => lab.clearConntrack());
  afterAll(() => lab?.close());

  const deny = (match: Omit<Rule, "id" | "action">): Rule => ({ id: "deny", action: "deny", ...match });

  describe.each(FAMILIES)("$name", ({ wrap, source, destination }) => {
    const send = (part: Payload, from: "a" | "b" = "a") => {
      const [here, there] = from === "a" ? [source, destination] : [destination, source];
      const { verdict, reason } = lab.send(from, "ingress", frame(wrap({ source: here, destination: there }, part)));
      return `${verdict} ${reason}`;
    };

    it("a port of SCTP is denied, and no other", async () => {
      const rules = [deny({ protocol: SCTP, dstPorts: [[5000, 5000]] }), allow()];
      await lab.apply({ aEgress: [allow()], bIngress: rules });
      expect(send(sctp(40000, 5000))).toBe("drop DROP_POLICY_WORKLOAD_INGRESS");
      expect(send(sctp(40000, 5001))).toBe("redirect PASS_POLICY");
      expect(send(sctp(40000, 5001))).toBe("redirect PASS_ESTABLISHED");
      expect(send(udp(40000, 5000))).toBe("redirect PASS_POLICY");
      // An association that is allowed opens no other port.
      expect(send(sctp(40000, 5000))).toBe("drop DROP_POLICY_WORKLOAD_INGRESS");
    });

    it("a port of SCTP is allowed, and no other; answers come back", async () => {
      const rules = [allow({ protocol: SCTP, dstPorts: [[5000, 5000]] })];
      await lab.apply({ aEgress: [allow()], bIngress: rules });
      expect(send(sctp(40000, 5001))).toBe("drop DROP_POLICY_WORKLOAD_INGRESS");
      expect(send(sctp(40000, 5000))).toBe("redirect PASS_POLICY");
      expect(send(sctp(5000, 40000), "b")).toBe("redirect PASS_ESTABLISHED");
      expect(send(sctp(5000, 40001), "b")).toBe("drop DROP_POLICY_WORKLOAD_EGRESS");
      expect(send(ports(SCTP, 40000, 5000, Buffer.alloc(4)))).toBe("drop DROP_TRUNCATED");
    });

    it("a criterion that the programs do not know denies", async () => {
      const later = { id: "later", action: "allow", hostName: "example.org" } as Rule;
      await lab.apply({ aEgress: [allow()], bIngress: [later, allow()] });
      expect(send(udp(40000, 5000))).toBe("drop DROP_POLICY_WORKLOAD_INGRESS");
    });
  });
});

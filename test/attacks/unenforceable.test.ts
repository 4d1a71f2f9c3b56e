import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import type { ModelDelta, Rule } from "../../src/calc/model.ts";
import { frame, type Payload, ports, udp, v4, v6 } from "../ebpf/frames.ts";
import { whyNoPrograms } from "../ebpf/kernel-needed.ts";
import { allow, PacketLab, POD_A, POD_B } from "../ebpf/packet-lab.ts";
import { whyNoNftables } from "../kernel/why-not.ts";
import { Lab } from "../nft/lab.ts";

const missing = whyNoPrograms();
const noNftables = whyNoNftables();
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

describe.skipIf(noNftables)(`rules that programs could ignore, nftables${noNftables ? ` (${noNftables})` : ""}`, () => {
  let lab: Lab;
  beforeAll(async () => {
    lab = new Lab();
    for (const app of ["a", "b"]) lab.addPod(app, { app });
    await lab.settle();
  });
  afterAll(() => lab?.stop());

  /** As of a newer calculator: its rules ask what the chains do not know. */
  const later = ({ policies, ...delta }: ModelDelta): ModelDelta => {
    const asking = (rules: readonly Rule[]) => rules.map((rule) => ({ ...rule, hostName: "example.org" }) as Rule);
    const set = policies.set.map((policy) => ({ ...policy, ingress: asking(policy.ingress) }));
    return { ...delta, policies: { ...policies, set } };
  };

  it.each([
    { name: "IPv4", family: 4 },
    { name: "IPv6", family: 6 },
  ] as const)("$name: a criterion that the chains do not know denies", async ({ family }) => {
    const target = { protocol: "udp", address: lab.addressOf("b", family), port: 80 } as const;
    const rule = (name: string) =>
      lab.setStored(vendorNames.kinds.globalNetworkPolicy.kind, `default.${name}`, {
        ...{ tier: "default", selector: "app == 'b'", types: ["Ingress"], ingress: [{ action: "Allow" }] },
      });
    rule(`known-${family}`);
    await lab.settle();
    expect(await lab.who("a").reaches(target, true)).toBe(true);
    lab.remove(vendorNames.kinds.globalNetworkPolicy.kind, `default.known-${family}`);
    const { dataplane } = lab;
    const apply = dataplane.apply.bind(dataplane);
    dataplane.apply = (delta) => apply(later(delta));
    rule(`later-${family}`);
    await lab.settle();
    dataplane.apply = apply;
    expect(await lab.who("a").reaches(target, false)).toBe(false);
    lab.remove(vendorNames.kinds.globalNetworkPolicy.kind, `default.later-${family}`);
  });
});

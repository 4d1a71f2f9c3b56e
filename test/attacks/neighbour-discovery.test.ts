import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { frame, icmp, ipBytes, v6 } from "../ebpf/frames.ts";
import { whyNoPrograms } from "../ebpf/kernel-needed.ts";
import { allow, NODE, OUTSIDE, PacketLab, POD_A, POD_B, REMOTE } from "../ebpf/packet-lab.ts";

const missing = whyNoPrograms();
const SOLICIT_ROUTER = 133;
const SOLICIT = 135;
const ADVERTISE = 136;
const LISTENER_REPORT = 143;
const SOLICITED_NODE = "ff02::1:ff00:1";

/** In a message of the link a pod may carry what it likes: such messages must not be a way past its egress policy. */
describe.skipIf(missing)(`neighbour discovery of a pod, eBPF${missing ? ` (${missing})` : ""}`, () => {
  let lab: PacketLab;
  beforeAll(async () => {
    lab = await PacketLab.open();
    await lab.apply({});
  });
  beforeEach(() => lab.clearConntrack());
  afterAll(() => lab?.close());

  const say = (type: number, destination: string, { source = POD_A.v6, hops = 255 } = {}) => {
    const target = type === ADVERTISE ? POD_A.v6 : "fe80::1";
    const packet = v6({ source, destination, hops }, icmp(58, type, 0, 0, ipBytes(target)));
    const { verdict, reason } = lab.send("a", "ingress", frame(packet));
    return `${verdict} ${reason}`;
  };

  it.each([SOLICIT_ROUTER, SOLICIT, ADVERTISE])("type %i leaves the link by policy only", async (type) => {
    await lab.apply({});
    for (const destination of [POD_B.v6, REMOTE.v6, OUTSIDE.v6, "ff05::2"]) {
      expect([destination, say(type, destination)]).toEqual([destination, "drop DROP_POLICY_WORKLOAD_EGRESS"]);
      expect([destination, say(type, destination, { source: "fe80::a" })]).toEqual([
        destination,
        "drop DROP_SPOOFED_SOURCE",
      ]);
    }
    await lab.apply({ aEgress: [allow({ protocol: 58 })] });
    expect(say(type, OUTSIDE.v6)).toBe("next PASS_POLICY");
  });

  it("is not asked of policy on the link, where the pod could not live without it", async () => {
    await lab.apply({});
    for (const destination of ["fe80::ecee:eeff:feee:eeee", SOLICITED_NODE, "ff02::1", "ff02::2", NODE.v6]) {
      for (const type of [SOLICIT_ROUTER, SOLICIT, ADVERTISE]) {
        expect([destination, say(type, destination)]).toEqual([destination, "next PASS_NEIGHBOUR_DISCOVERY"]);
      }
    }
  });

  it("nor do reports of listeners leave the link", async () => {
    await lab.apply({});
    const own = { source: "fe80::a", hops: 1 };
    expect(say(LISTENER_REPORT, "ff02::16", own)).toBe("next PASS_NEIGHBOUR_DISCOVERY");
    expect(say(LISTENER_REPORT, OUTSIDE.v6, own)).toBe("drop DROP_SPOOFED_SOURCE");
  });
});

import { setImmediate } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { u32 } from "../../src/dataplane/ebpf/programs/programs.ts";
import type { FlowSum } from "../../src/dataplane/flow-sums.ts";
import { NODE_FIELD } from "../../src/gen/bpf/layout.gen.ts";
import { frame, TCP, tcp, udp, v4, v6 } from "./frames.ts";
import { whyNoPrograms } from "./kernel-needed.ts";
import { allow, NODE, OUTSIDE, PacketLab, POD_A, POD_B, type PodRules } from "./packet-lab.ts";

const missing = whyNoPrograms();
const ANY: PodRules = { aEgress: [allow()], bIngress: [allow()] };
const RULE = allow().id;
const ETHERNET = 14;

const families = [
  ["IPv4", "v4", v4],
  ["IPv6", "v6", v6],
] as const;

describe.skipIf(missing).each(["what there is", "no iterators"] as const)(
  `flow logs, swept by %s${missing ? ` (${missing})` : ""}`,
  (by) => {
    let lab: PacketLab;
    beforeAll(async () => {
      lab = await PacketLab.open({}, by);
    });
    beforeEach(async () => {
      await lab.apply(ANY);
      await flows().stop();
      lab.clearConntrack();
    });
    afterAll(() => lab?.close());

    const flows = () => lab.dataplane.flows!();
    /** What is counted from here on, once the interval is over. */
    const counted = async (interval: number): Promise<FlowSum[]> => {
      await flows().begin(interval + 1);
      return flows().read(interval);
    };
    /** A frame from a pod's or the uplink's side; its IP bytes. */
    const send = (at: "a" | "b" | "uplink", bytes: Buffer, from?: "a" | "b") => {
      lab.send(at, from ? "egress" : "ingress", bytes, from);
      return bytes.length - ETHERNET;
    };

    it.each(families)("a connection is counted both ways, with what allowed it: %s", async (_, family, ip) => {
      await flows().begin(7);
      const [there, back] = [
        { source: POD_A[family], destination: POD_B[family] },
        { source: POD_B[family], destination: POD_A[family] },
      ];
      const asked = [TCP.syn, TCP.ack, TCP.ack].map((flags) => send("a", frame(ip(there, tcp(40000, 80, flags)))));
      const answered = [TCP.synAck, TCP.ack].map((flags) => send("b", frame(ip(back, tcp(80, 40000, flags)))));
      const [sum, ...others] = await counted(7);
      expect(others).toEqual([]);
      expect(sum).toEqual({
        source: POD_A[family],
        destination: POD_B[family],
        ...{ destinationPort: 80, protocol: 6, service: undefined, verdict: "Allow", reason: undefined },
        ...{ egress: [RULE], ingress: [RULE] },
        ...{ packets: 3, bytes: total(asked), replyPackets: 2, replyBytes: total(answered) },
        ...{ started: 1, ended: 0, live: 1, lastSeen: sum!.lastSeen },
      });
      expect(Math.abs(sum!.lastSeen - Date.now())).toBeLessThan(60_000);
      send("b", frame(ip(back, tcp(80, 40000, TCP.rst))));
      expect(await counted(8)).toMatchObject([{ packets: 0, replyPackets: 1, started: 0, ended: 1, live: 0 }]);
      // It is over, and says no more.
      expect(await counted(9)).toEqual([]);
    });

    it("what was there before is not new, and while they are off nothing is written", async () => {
      const packet = frame(v4({ source: POD_A.v4, destination: POD_B.v4 }, udp(1000, 53)));
      send("a", packet);
      lab.send("b", "ingress", frame(v4({ source: POD_B.v4, destination: POD_A.v4 }, udp(9, 9))));
      expect([lab.map("sums").entries(), lab.map("traces").entries()]).toEqual([[], []]);
      await flows().begin(1);
      send("a", packet);
      expect(await counted(1)).toMatchObject([{ packets: 1, bytes: packet.length - ETHERNET, started: 0, live: 1 }]);
      await flows().stop();
      send("a", packet);
      expect(await flows().intervals()).toEqual([]);
      await flows().begin(9);
      expect(await counted(9)).toMatchObject([{ packets: 0, started: 0, live: 1 }]);
    });

    it("an interval stays as it is until it is forgotten, over lives that end at any moment", async () => {
      const packet = frame(v4({ source: POD_A.v4, destination: POD_B.v4 }, udp(1000, 53)));
      await flows().begin(1);
      send("a", packet);
      await lab.restart();
      await lab.apply(ANY);
      send("a", packet);
      expect(await flows().intervals()).toEqual([1]);
      const first = await counted(1);
      expect(first).toMatchObject([{ packets: 2, started: 1, egress: [RULE], ingress: [RULE] }]);
      send("a", packet);
      await lab.restart();
      await lab.apply(ANY);
      expect(await flows().read(1)).toMatchObject([{ packets: 2, live: 1 }]);
      expect(await counted(2)).toMatchObject([{ packets: 1, started: 0, live: 1 }]);
      expect(await flows().intervals()).toEqual([1, 2, 3]);
      await flows().forget(1);
      expect(await flows().intervals()).toEqual([2, 3]);
      expect(await flows().read(1)).toEqual([]);
      await expect(flows().read(3)).rejects.toMatchObject({ code: "EBPF_INTERVAL_RUNS" });
      expect(flows().shed()).toEqual({ merged: 0, unattributed: 0 });
    });

    it("a packet that comes while a life begins is not told as missing", async () => {
      await flows().begin(1);
      await lab.restart();
      await lab.apply(ANY);
      let isBegun = false;
      const begun = flows()
        .begin(2)
        .finally(() => {
          isBegun = true;
        });
      for (let port = 40_000; !isBegun; port++) {
        send("a", frame(v4({ source: POD_A.v4, destination: POD_B.v4 }, tcp(port, 80))));
        send("a", frame(v4({ source: POD_A.v4, destination: POD_B.v4 }, tcp(port, 80, TCP.rst))));
        await setImmediate();
      }
      await begun;
      await counted(2);
      expect(flows().shed()).toEqual({ merged: 0, unattributed: 0 });
    });

    it("a SYN that is sent again is one connection; one whose ports are used again is two, and loses no packet", async () => {
      const syn = frame(v4({ source: POD_A.v4, destination: POD_B.v4 }, tcp(40000, 80)));
      await flows().begin(1);
      for (let times = 0; times < 3; times++) send("a", syn);
      send("a", frame(v4({ source: POD_A.v4, destination: POD_B.v4 }, tcp(40000, 80, TCP.rst))));
      for (let times = 0; times < 2; times++) send("a", syn);
      expect(await counted(1)).toMatchObject([{ packets: 6, started: 2, ended: 1, live: 1 }]);
    });

    it("a packet that passes two programs is counted once, and one that leaves by the stack", async () => {
      await flows().begin(1);
      const out = frame(v4({ source: POD_A.v4, destination: OUTSIDE.v4 }, udp(1000, 53)));
      for (let times = 0; times < 2; times++) {
        send("a", out);
        lab.send("uplink", "egress", out, "a");
      }
      // The answer is for the node, which translates it back: it is first seen where it goes into the pod.
      lab.send("a", "egress", frame(v4({ source: OUTSIDE.v4, destination: POD_A.v4 }, udp(53, 1000))), "uplink");
      const own = frame(v4({ source: NODE.v4, destination: POD_B.v4 }, udp(2000, 9)));
      lab.send("b", "egress", own);
      const sums = await counted(1);
      expect(sums.find(({ destination }) => destination === OUTSIDE.v4)).toMatchObject({
        ...{ packets: 2, replyPackets: 1, started: 1, egress: [RULE], ingress: undefined },
      });
      expect(sums.find(({ source }) => source === NODE.v4)).toMatchObject({
        ...{ packets: 1, egress: undefined, ingress: undefined, verdict: "Allow" },
      });
    });

    it("what a policy denies is a sum of its own, and is not counted as allowed", async () => {
      await flows().begin(1);
      const packet = frame(v4({ source: POD_A.v4, destination: POD_B.v4 }, udp(1000, 53)));
      const reply = frame(v4({ source: POD_B.v4, destination: POD_A.v4 }, udp(53, 1000)));
      send("a", packet);
      send("b", reply);
      await lab.apply({ ...ANY, bIngress: [allow({ protocol: 6 })] });
      send("a", packet);
      send("b", reply);
      send("b", frame(v4({ source: POD_B.v4, destination: POD_A.v4 }, udp(9, 9))));
      const sums = await counted(1);
      const by = (verdict: string, source: string) =>
        sums.filter((sum) => sum.verdict === verdict && sum.source === source);
      expect(by("Allow", POD_A.v4)).toMatchObject([{ packets: 1, replyPackets: 1, started: 1, ended: 1, live: 0 }]);
      const denied = { reason: "policy_workload_ingress", ingress: ["default;end"], started: 0, live: 0 };
      const [asked, answered] = by("Deny", POD_A.v4).sort((one, other) => other.packets - one.packets);
      expect(asked).toMatchObject({ ...denied, egress: [RULE], packets: 1, replyPackets: 0 });
      // Asked about its answer, the policy of its destination comes first, and is enough.
      expect(answered).toMatchObject({ ...denied, egress: undefined, packets: 0, replyPackets: 1 });
      expect(by("Deny", POD_B.v4)).toMatchObject([
        { packets: 1, reason: "policy_workload_egress", egress: ["default;end"], ingress: undefined },
      ]);
    });

    it("a pod over its share, and a flow that may be on its way here, are named", async () => {
      const tight = await PacketLab.open({ fragments_per_second: 1 }, by);
      await tight.apply({ ...ANY, settings: { workloadConntrackPercent: 0.1 } });
      await tight.logFlows();
      const [there, back] = [
        { source: POD_A.v4, destination: POD_B.v4 },
        { source: POD_B.v4, destination: POD_A.v4 },
      ];
      for (let port = 1; port <= 4; port++) tight.send("a", "ingress", frame(v4(there, udp(port, 53))));
      for (let id = 1; id <= 3; id++)
        tight.send("a", "ingress", frame(v4({ ...there, id, more: true }, udp(1, 53, "12345678"))));
      const node = tight.map("node");
      node.update(u32(NODE_FIELD.NODE_MIGRATING), u32(1));
      tight.send("b", "ingress", frame(v4(back, tcp(80, 40000, TCP.synAck))));
      node.close();
      const [dropped, logged] = await tight.droppedAndLogged();
      await tight.close();
      expect(logged).toEqual(dropped);
      expect(Object.keys(logged)).toEqual(["flows_moving", "fragment_limit", "workload_limit"]);
    });

    it("where all sums are taken, those that are new are added up without addresses and port, and nothing is lost", async () => {
      const small = await PacketLab.open({}, by, { sizes: { sums: 8 } });
      await small.apply(ANY);
      const few = small.dataplane.flows!();
      await few.begin(1);
      let bytes = 0;
      for (let port = 1; port <= 50; port++) {
        const packet = frame(v4({ source: POD_A.v4, destination: POD_B.v4 }, udp(1000, port)));
        small.send("a", "ingress", packet);
        bytes += packet.length - ETHERNET;
      }
      await few.begin(2);
      const sums = await few.read(1);
      expect([total(sums.map((sum) => sum.packets)), total(sums.map((sum) => sum.bytes))]).toEqual([50, bytes]);
      expect([total(sums.map((sum) => sum.started)), total(sums.map((sum) => sum.live))]).toEqual([50, 50]);
      const coarse = sums.filter(({ source }) => source === "");
      expect(coarse).toMatchObject([
        { destination: "", destinationPort: 0, protocol: 17, packets: 42, egress: [RULE], ingress: [RULE] },
      ]);
      expect(few.shed().merged).toBe(42);
      await small.close();
    });
  },
);

function total(numbers: readonly number[]): number {
  return numbers.reduce((sum, one) => sum + one, 0);
}

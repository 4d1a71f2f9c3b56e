import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createEbpfDataplane } from "../../src/dataplane/ebpf/ebpf-dataplane.ts";
import { u32 } from "../../src/dataplane/ebpf/programs/programs.ts";
import type { VerdictEvent } from "../../src/dataplane/ebpf/verdict-events.ts";
import { NODE_FIELD } from "../../src/gen/bpf/layout.gen.ts";
import { Assembler, R0 } from "../../src/kernel/bpf/asm.ts";
import { frame, TCP, tcp, udp, v4 } from "./frames.ts";
import { whyNoPrograms } from "./kernel-needed.ts";
import { allow, deltaOf, PacketLab, POD_A, POD_B } from "./packet-lab.ts";

const missing = whyNoPrograms();
const A_TO_B = { source: POD_A.v4, destination: POD_B.v4 };
const B_TO_A = { source: POD_B.v4, destination: POD_A.v4 };
const RULES = { aEgress: [allow()], bIngress: [allow({ protocol: 6 })] };

const ways = ["what there is", "clsact"] as const;

describe.skipIf(missing).each(ways)(
  `the life of the data plane, attached by %s${missing ? ` (${missing})` : ""}`,
  (by) => {
    let lab: PacketLab;
    beforeEach(async () => {
      lab = await PacketLab.open({}, by);
    });
    afterEach(() => lab?.close());

    const from = (at: "a" | "b", packet: { type: number; bytes: Buffer }) => {
      const { verdict, reason } = lab.send(at, "ingress", frame(packet));
      return `${verdict} ${reason}`;
    };

    /** As an earlier release would have left them: the same maps below another name. */
    const leaveAsBefore = async () => {
      const ours = `${lab.directory}/ours`;
      const before = `${ours}/maps_before`;
      const [current] = lab.kernel.bpf.pins(ours).filter((name) => name.startsWith("maps_"));
      await lab.dataplane.close();
      lab.forgetPrograms();
      lab.kernel.bpf.makePinDirectory(before);
      for (const name of lab.kernel.bpf.pins(`${ours}/${current}`)) {
        const map = lab.kernel.bpf.openMap(`${ours}/${current}/${name}`);
        map.pin(`${before}/${name}`);
        map.close();
        lab.kernel.bpf.unpin(`${ours}/${current}/${name}`);
      }
      return before;
    };

    it("goes on without the agent, and a new one takes it over: nothing denied passes, nothing allowed breaks", async () => {
      await lab.apply(RULES);
      from("a", v4(A_TO_B, tcp(40000, 80)));
      const before = lab.attached();
      expect(before).toHaveLength(6);
      await lab.dataplane.close();
      lab.forgetPrograms();
      expect(from("b", v4(B_TO_A, tcp(80, 40000, TCP.synAck)))).toBe("redirect PASS_ESTABLISHED");
      expect(from("a", v4(A_TO_B, udp(1, 2)))).toBe("drop DROP_POLICY_WORKLOAD_INGRESS");
      lab.forgetPrograms();
      await lab.start();
      // Not in sync yet: what is in the kernel stays as it is.
      await lab.dataplane.apply({ ...deltaOf({}), inSync: false });
      expect(from("a", v4(A_TO_B, tcp(40000, 80, TCP.ack)))).toBe("redirect PASS_ESTABLISHED");
      await lab.apply(RULES);
      lab.forgetPrograms();
      expect(lab.attached()).toEqual(before);
      expect(from("a", v4(A_TO_B, tcp(40000, 80, TCP.ack)))).toBe("redirect PASS_POLICY");
      expect(from("b", v4(B_TO_A, tcp(80, 40000, TCP.ack)))).toBe("redirect PASS_ESTABLISHED");
      expect(from("a", v4(A_TO_B, udp(1, 2)))).toBe("drop DROP_POLICY_WORKLOAD_INGRESS");
      expect((await lab.dataplane.sweep()).removed.join()).toMatch(/^\d+ policy programs$/);
      expect(await lab.dataplane.sweep()).toEqual({ removed: [] });
    });

    it("a pod that went while nobody looked is swept with everything of its", async () => {
      await lab.apply(RULES);
      const gone = { endpoints: { set: deltaOf(RULES).endpoints.set.slice(0, 1), remove: [] } };
      await lab.restart();
      await lab.apply(RULES, gone);
      const { removed } = await lab.dataplane.sweep();
      expect(removed.slice(0, 2).sort()).toEqual(
        ["egress", "ingress"].map((direction) => `program at interface ${lab.ifindex("b")}, ${direction}`),
      );
      expect(lab.attached()).toEqual(["a ingress", "a egress", "uplink ingress", "uplink egress"]);
      expect((await lab.dataplane.show("endpoints")).rows.map(([id]) => id)).toEqual(["(node)", "default/a"]);
      expect(from("a", v4(A_TO_B, tcp(1, 80)))).toMatch(/^next/);
    });

    it("a flow of an older layout of maps is carried over", async () => {
      await lab.apply(RULES);
      from("a", v4(A_TO_B, tcp(40000, 80)));
      const before = await leaveAsBefore();
      await lab.start();
      await lab.apply(RULES);
      expect(from("b", v4(B_TO_A, tcp(80, 40000, TCP.synAck)))).toBe("redirect PASS_POLICY");
      expect((await lab.dataplane.sweep()).removed).toEqual([`maps of another layout at ${before}`]);
    });

    it("while flows of an older layout come over, TCP that may be of one is not judged as a stranger's, and new flows begin", async () => {
      await lab.apply(RULES);
      const node = lab.map("node");
      const tell = (moving: number) => node.update(u32(NODE_FIELD.NODE_MIGRATING), u32(moving));
      tell(1);
      expect(from("a", v4(A_TO_B, tcp(40000, 80, TCP.ack)))).toBe("drop DROP_FLOWS_MOVING");
      expect(from("b", v4(B_TO_A, tcp(80, 40000, TCP.synAck)))).toBe("drop DROP_FLOWS_MOVING");
      expect(from("a", v4(A_TO_B, tcp(40001, 80)))).toBe("redirect PASS_POLICY");
      expect(from("b", v4(B_TO_A, tcp(80, 40001, TCP.synAck)))).toBe("redirect PASS_ESTABLISHED");
      tell(0);
      node.close();
      expect(from("a", v4(A_TO_B, tcp(40000, 80, TCP.ack)))).toBe("redirect PASS_POLICY");
    });

    it("a life that was cut short while it took over is gone on with, also where it had begun to remove what was before", async () => {
      await lab.apply(RULES);
      from("a", v4(A_TO_B, tcp(40000, 80)));
      const before = await leaveAsBefore();
      await lab.start();
      // Our own maps are there, and know no flow yet.
      lab.dataplane.mode();
      await lab.restart();
      await lab.apply(RULES);
      expect(from("b", v4(B_TO_A, tcp(80, 40000, TCP.synAck)))).toBe("redirect PASS_POLICY");
      for (const name of ["flows", "node"]) lab.kernel.bpf.unpin(`${before}/${name}`);
      await lab.restart();
      await lab.apply(RULES);
      expect((await lab.dataplane.sweep()).removed).toContain(`maps of another layout at ${before}`);
    });

    it("everything of ours can be taken off the node", async () => {
      await lab.apply({ ...RULES, host: {} });
      expect(lab.attached()).toHaveLength(6);
      lab.forgetPrograms();
      await lab.dataplane.remove();
      expect(lab.kernel.bpf.pins(lab.directory)).toEqual([]);
      expect(lab.attached()).toEqual([]);
    });

    it("verdicts are told when somebody wants them, no more than asked, and never otherwise", async () => {
      await lab.apply(RULES);
      from("a", v4(A_TO_B, udp(1, 2)));
      const told: VerdictEvent[] = [];
      const watch = lab.dataplane.watchVerdicts(3, (verdict) => told.push(verdict));
      for (let port = 1; port <= 50; port++) from("a", v4(A_TO_B, udp(1, port)));
      await expect.poll(() => told.length).toBeGreaterThanOrEqual(3);
      watch.stop();
      // Three in a second of one processor; the run may take more than one of either.
      expect(told.length).toBeLessThan(50);
      expect(told[0]).toMatchObject({
        hook: "from-workload",
        reason: "drop-policy-workload-ingress",
        source: { address: POD_A.v4, port: 1 },
        destination: { address: POD_B.v4, port: 1 },
        hits: ["rule-{}", "default;end"],
      });
    });

    it("a kernel without programs at interfaces is told so at once; one without ring buffers only when somebody wants to be told", async () => {
      const { kernel, netns, directory } = lab;
      const less = (without: object) => ({
        ...kernel,
        features: async () => ({ ...(await kernel.features()), ...without }),
      });
      const options = { netns, pinDirectory: `${directory}/older`, overlay: "vxlan.vendor" };
      const none = createEbpfDataplane({ ...options, kernel: less({ schedCls: false }) });
      await expect(none).rejects.toMatchObject({ code: "EBPF_KERNEL_LACKS" });
      expect(kernel.bpf.pins(directory)).toEqual(["ours"]);
      await lab.dataplane.remove();
      await lab.dataplane.close();
      lab.forgetPrograms();
      const old = { ringBuffer: false, redirectPeer: false, redirectNeighbour: false };
      lab.dataplane = await createEbpfDataplane({ ...options, kernel: less(old), pinDirectory: `${directory}/ours` });
      await lab.apply(RULES);
      expect(from("a", v4(A_TO_B, tcp(40000, 80)))).toBe("redirect PASS_POLICY");
      expect(from("a", v4(A_TO_B, udp(1, 2)))).toBe("drop DROP_POLICY_WORKLOAD_INGRESS");
      expect(() => lab.dataplane.watchVerdicts(1, () => undefined)).toThrow(/no ring buffers/);
    });

    it("an interface somebody else's filters stand at keeps them, and its discipline, when we leave", async () => {
      await lab.apply(RULES);
      const netlink = lab.kernel.netlink(lab.netns);
      const theirs = lab.kernel.bpf.loadProgram({
        ...{ name: "theirs", type: "schedCls" as const },
        instructions: new Assembler().mov(R0, -1).exit().build(),
      });
      const [a, b] = [lab.ifindex("a"), lab.ifindex("b")];
      netlink.addClsact(a);
      netlink.replaceFilter({ device: a, direction: "ingress", name: "theirs", program: theirs, priority: 7 });
      theirs.close();
      lab.forgetPrograms();
      await lab.dataplane.remove();
      expect(netlink.filters(a, "ingress").map(({ name }) => name)).toEqual(["theirs"]);
      expect(netlink.filters(b, "ingress")).toEqual([]);
      expect(netlink.deleteClsact(b)).toBe(false);
      netlink.close();
    });
  },
);

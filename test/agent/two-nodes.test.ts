import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { requestAgent } from "../../src/agent/admin.ts";
import { type LabPod, type NodeLab, nodeLab, request, serve, until, whyNoNodes } from "./node-lab.ts";

const why = whyNoNodes();

/** Pods on two nodes, each family, each way packets may travel, each data plane. */
const ROWS = [
  { plane: "nftables", bpf: false, vxlanMode: "Always" },
  { plane: "nftables", bpf: false, vxlanMode: "Never" },
  { plane: "eBPF", bpf: true, vxlanMode: "Always" },
  { plane: "eBPF", bpf: true, vxlanMode: "Never" },
] as const;

describe.skipIf(why !== undefined).each(ROWS)(
  `two nodes, $plane, VXLAN $vxlanMode${why ? ` (${why})` : ""}`,
  ({ bpf, vxlanMode }) => {
    let lab: NodeLab;
    const pods: Record<string, LabPod> = {};
    const ends: (() => void)[] = [];
    beforeAll(async () => {
      lab = await nodeLab({
        bpf,
        pools: [
          { cidr: "10.88.0.0/24", vxlanMode, blockSize: 28 },
          { cidr: "fd88::/112", vxlanMode },
        ],
      });
      await Promise.all(lab.nodes.map((node) => node.start()));
      const [one, two] = lab.nodes;
      for (const [name, node] of [
        ["a", one],
        ["b", one],
        ["c", two],
      ] as const)
        pods[name] = await lab.addPod(name, node!);
      for (const pod of [...Object.values(pods), one!, lab.outside])
        ends.push(await serve(pod, 8080, 4), await serve(pod, 8081, 6));
    });
    afterAll(async () => {
      for (const end of ends) end();
      await lab?.close();
    });

    const PORTS = { 0: 8080, 1: 8081 } as const;
    it.each([
      ["IPv4", 0],
      ["IPv6", 1],
    ] as const)("a pod reaches pods of its own and the other node, and its node, with %s", async (_family, at) => {
      const { a, b, c } = pods as Record<string, LabPod>;
      const node = lab.nodes[0]!;
      await until(
        async () => (await request(a!, c!.addresses[at]!, PORTS[at])) !== undefined,
        () => lab.nodes.map((one) => one.log()).join("\n"),
      );
      expect(await request(a!, c!.addresses[at]!, PORTS[at])).toBe(`c saw ${a!.addresses[at]}`);
      expect(await request(a!, b!.addresses[at]!, PORTS[at])).toBe(`b saw ${a!.addresses[at]}`);
      expect(await request(c!, a!.addresses[at]!, PORTS[at])).toBe(`a saw ${c!.addresses[at]}`);
      expect(await request(node, b!.addresses[at]!, PORTS[at])).toMatch(/^b saw /);
      expect(await request(a!, at === 0 ? node.addresses.v4 : node.addresses.v6, PORTS[at])).toMatch(/^node-1 saw /);
    });

    it("no problem is left of what had to wait while pods were connected", async () => {
      for (const { directory } of lab.nodes) {
        const rows = async () => (await requestAgent(join(directory, "run"), { show: "problems" })).table.rows;
        await until(
          async () => (await rows()).length === 0,
          async () => JSON.stringify(await rows()),
        );
      }
    });

    it("a pod that leaves the pools takes its node's address, and one that does not keeps its own", async () => {
      const { v4, v6 } = lab.outside.addresses;
      expect(await request(pods["a"]!, v4, 8080)).toBe("outside saw 10.99.0.1");
      expect(await request(pods["c"]!, v6, 8081)).toBe("outside saw fd99::2");
    });

    it("a pod that is gone leaves no interface, no route, no address and no record", async () => {
      const node = lab.nodes[0]!;
      const pod = await lab.addPod("gone", node);
      await lab.removePod(pod);
      expect(await node.vendor("node", "show", "pods")).not.toContain("gone");
      await until(
        async () => !(await node.vendor("node", "show", "endpoints")).includes("default/gone"),
        () => "the endpoint is still there",
      );
      const again = await node.cni("DEL", pod);
      expect(again.code).toBe(0);
    });
  },
);

import { createSocket } from "node:dgram";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { requestAgent } from "../../src/agent/admin.ts";
import { newNonce, OVERLAY_PROTOCOL, writeRequest } from "../../src/agent/overlay/overlay-frame.ts";
import { readAgentReport } from "../../src/api/protocol/agent-report.ts";
import { PODS } from "../../src/cluster/kinds.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";
import { inside, type LabNode, type LabPod, type NodeLab, nodeLab, until, whyNoNodes } from "./node-lab.ts";

const why = whyNoNodes();
const kernel = realKernel();
const OVERLAY = "vxlan.vendor";
const VXLAN = { port: 4789, vni: 4096 };

/** Each data plane, and each family below the overlay. */
const ROWS = [
  { plane: "nftables", bpf: false, below: "IPv4", ip: "ip", from: "10.99.0.1", to: "10.99.0.2", pool: "10.88.0.0/24" },
  { plane: "eBPF", bpf: true, below: "IPv6", ip: "ip6", from: "fd99::1", to: "fd99::2", pool: "fd88::/112" },
] as const;

describe.skipIf(why !== undefined).each(ROWS)(
  `the overlay between two nodes, $plane over $below${why ? ` (${why})` : ""}`,
  ({ bpf, below, ip, from, to, pool }) => {
    let lab: NodeLab;
    let pod: LabPod;
    beforeAll(async () => {
      lab = await nodeLab({
        bpf,
        pools: [{ cidr: pool, vxlanMode: "Always" }],
        env: (node) => ({ POD_NAME: `agent-${node}`, OVERLAY_PROBE_SECONDS: "1" }),
      });
      if (below === "IPv6") {
        for (const { netns } of lab.nodes) await inside(netns.name, "ip", "-4", "address", "flush", "dev", "eth0");
      }
      for (const { name } of lab.nodes) await createAgentPod(lab, name);
      await Promise.all(lab.nodes.map((node) => node.start()));
      pod = await lab.addPod("attacker", lab.nodes[0]!);
      await lab.addPod("far", lab.nodes[1]!);
      await untilReported("verified");
    });
    afterAll(() => lab?.close());

    /** What agents report: `verified`, or the losses. */
    async function untilReported(expected: "verified" | readonly string[]): Promise<void> {
      const seen = async () =>
        await Promise.all(
          lab.nodes.map(async ({ name }) => {
            const { metadata } = await lab.client.get(PODS, { namespace: "vendor-system", name: `agent-${name}` });
            const { overlay } = readAgentReport(metadata.annotations);
            return overlay?.verifiedSince === undefined ? (overlay?.losses ?? []) : "verified";
          }),
        );
      await until(
        async () => (await seen()).every((one) => JSON.stringify(one) === JSON.stringify(expected)),
        async () => `${JSON.stringify(await seen())}\n${lab.nodes.map((node) => node.log()).join("\n")}`,
        15_000,
      );
    }

    async function problems({ directory }: LabNode): Promise<string[]> {
      const { table } = await requestAgent(join(directory, "run"), { show: "problems" });
      return table.rows.map((row) => row.join(" "));
    }

    const onSegment = async (...command: string[]) => {
      const { ok, output } = await inside(lab.outside.netns.name, ...command);
      expect(ok, output).toBe(true);
    };
    /** What the segment loses of what comes from the first node. */
    const lose = (rule: string) =>
      onSegment(
        "nft",
        `add table netdev lab; add chain netdev lab port1 { type filter hook ingress device port1 priority 0; }; add rule netdev lab port1 ${rule} counter drop`,
      );
    const loseNothing = () => onSegment("nft", "delete table netdev lab");

    it("is verified, and each node is shown with its last answer", async () => {
      for (const { directory } of lab.nodes) {
        const { table } = await requestAgent(join(directory, "run"), { show: "overlay" });
        expect(table.rows).toMatchObject([[/^node-/, expect.any(String), "reached", "ready", /^20/].map(matching)]);
        expect(await problems(lab.nodes[0]!)).toEqual([]);
      }
    });

    it("names the pair and the direction where UDP 4789 is dropped, until it passes again", async () => {
      await lose(`udp dport ${VXLAN.port}`);
      const path = `UDP 4789 from ${from} to ${to}`;
      await untilReported([`node-1 to node-2 (${path})`]);
      const sentence = `node node-2 OVERLAY_UNREACHABLE the overlay loses packets from node node-1 to node node-2 (${path}): 3 of 3 probes`;
      expect(await problems(lab.nodes[0]!)).toEqual([expect.stringContaining(sentence)]);
      await loseNothing();
      await untilReported("verified");
      for (const node of lab.nodes) expect(await problems(node)).toEqual([]);
    });

    it("names the size and the direction where large packets are dropped", async () => {
      await lose(`udp dport ${VXLAN.port} udp length > 1300`);
      const bytes = below === "IPv4" ? 1450 : 1430;
      await untilReported([`node-1 to node-2 (packets of ${bytes} bytes in UDP 4789 from ${from} to ${to})`]);
      expect(await problems(lab.nodes[1]!)).toEqual([
        expect.stringMatching(
          /^node node-1 OVERLAY_MTU .*smaller ones arrive: the network carries less than 1500 bytes/,
        ),
      ]);
      await loseNothing();
      await untilReported("verified");
    });

    it("believes no probe of a pod or of a machine that is no node", async () => {
      const [one, two] = lab.nodes as [LabNode, LabNode];
      const macs = [one, two].map(({ netns }) => linkOf(netns, OVERLAY).mac!);
      // Its agent no longer sends; the cluster does not know yet.
      await two.kill();
      const silent = /OVERLAY_UNREACHABLE .* no probe of node node-2 arrives$/m;
      await until(
        async () => silent.test((await problems(one)).join("\n")),
        async () => (await problems(one)).join("\n"),
      );
      const forged = () =>
        writeRequest({ source: macs[1]!, destination: macs[0]!, size: "small", nonce: newNonce() }, 0);
      const eth0 = { device: linkOf(pod.netns, "eth0").index, protocol: OVERLAY_PROTOCOL };
      const byFrame = kernel.frames(pod.netns).open(eth0, () => {});
      const [byPod, byOutside, byNode] = [pod.netns, lab.outside.netns, two.netns].map((netns) => sender(netns, ip));
      const before = sentBy(one);
      while ((await sentBy(one)) < (await before) + 8) {
        byFrame.send(forged());
        await Promise.all([byPod!, byOutside!].map((send) => send(encapsulated(forged()), from)));
        expect((await problems(one)).join("\n")).toMatch(silent);
      }
      byFrame.close();
      // The same datagram of the other node is a probe.
      await until(
        async () => {
          await byNode!(encapsulated(forged()), from);
          return /OVERLAY_UNREACHABLE .* probes of node node-2 arrive$/m.test((await problems(one)).join("\n"));
        },
        async () => (await problems(one)).join("\n"),
      );
      await two.start();
      await untilReported("verified");
    });
  },
);

const matching = (one: unknown) => (one instanceof RegExp ? expect.stringMatching(one) : one);

/** As the DaemonSet would, and the kubelet that finds it ready. */
async function createAgentPod({ client }: NodeLab, node: string): Promise<void> {
  const metadata = { name: `agent-${node}`, namespace: "vendor-system" };
  const spec = { nodeName: node, containers: [{ name: "vendor-node", image: "vendor" }] };
  await client.create(PODS, { apiVersion: "v1", kind: "Pod", metadata, spec });
  const patch = { status: { conditions: [{ type: "Ready", status: "True" }] } };
  await client.patch(PODS, metadata, { type: "merge", patch }, { subresource: "status" });
}

function linkOf(netns: Netns, name: string) {
  const netlink = kernel.netlink(netns);
  try {
    return netlink.link(name)!;
  } finally {
    netlink.close();
  }
}

/** Packets that a node has sent through the overlay: two at each turn. */
async function sentBy({ netns }: LabNode): Promise<number> {
  const { output } = await inside(netns.name, "ip", "-s", "-j", "link", "show", OVERLAY);
  return (JSON.parse(output) as { stats64: { tx: { packets: number } } }[])[0]!.stats64.tx.packets;
}

/** As a node would send it in UDP. */
function encapsulated(frame: Buffer): Buffer {
  const header = Buffer.alloc(8);
  header[0] = 8;
  header.writeUIntBE(VXLAN.vni, 4, 3);
  return Buffer.concat([header, frame]);
}

/** Sends one datagram to the overlay's port. */
function sender(netns: Netns, ip: "ip" | "ip6"): (bytes: Buffer, address: string) => Promise<void> {
  return async (bytes, address) => {
    const socket = createSocket(ip === "ip" ? "udp4" : "udp6");
    const fd = kernel.netns.bind(netns, { kind: "datagram", address: ip === "ip" ? "0.0.0.0" : "::", port: 0 });
    await new Promise<void>((resolve) => socket.bind({ fd }, resolve));
    await new Promise<void>((resolve) => socket.send(bytes, VXLAN.port, address, () => resolve()));
    socket.close();
  };
}

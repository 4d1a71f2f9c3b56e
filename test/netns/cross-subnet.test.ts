import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import { readAgentReport } from "../../src/api/protocol/agent-report.ts";
import { PODS } from "../../src/cluster/kinds.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import { contains, parseAddress, parseCidr } from "../../src/kit/ip.ts";
import type { Machine } from "../../src/local/runtime/netns/machine.ts";
import type { RealPod } from "../../src/local/runtime/netns/real-pod.ts";
import { eventually } from "../../src/local/testing/bare-server.ts";
import { whyNoIpip } from "../kernels/ipip-scenario.ts";
import { createPod, installNetwork, type RealCluster, readyPods, startReal, whyNoRealNodes } from "./real-cluster.ts";
import { answerIn, askFrom, type Listener } from "./sockets.ts";

const VXLAN = { encapsulation: "VXLANCrossSubnet", overlay: "vxlan.vendor" } as const;
const IPIP = { encapsulation: "IPIPCrossSubnet", overlay: "ipip.vendor" } as const;
/** One every time, all in the long run of the matrix this belongs to; IPIP where the kernel has it, `test:kernels` has some that do. */
const ROWS = [
  { dataplane: "BPF", ...VXLAN } as const,
  ...(process.env["NETNS_MATRIX"] === "full" ? [{ dataplane: "Nftables", ...VXLAN } as const] : []),
  ...(process.env["NETNS_MATRIX"] === "full" && !whyNoRealNodes && !whyNoIpip(realKernel())
    ? [{ dataplane: "Nftables", ...IPIP } as const]
    : []),
];
const PORT = 7000;
/** More than anybody else sends over an overlay meanwhile. */
const QUESTIONS = 50;

const run = promisify(execFile);

describe.skipIf(whyNoRealNodes).each(ROWS)(
  `$dataplane, nodes on two subnets, $encapsulation${whyNoRealNodes ? `: ${whyNoRealNodes}` : ""}`,
  ({ dataplane, encapsulation, overlay }) => {
    let cluster: RealCluster;
    let pods: Map<string, RealPod>;
    const listeners: Listener[] = [];
    beforeAll(async () => {
      cluster = await startReal({ nodes: 3, subnets: 2 });
      await installNetwork(cluster, { dataplane, encapsulation, families: [4] });
      // Nodes are on the subnets in turn.
      const names = ["here", "across", "beside"];
      for (const [i, name] of names.entries()) await createPod(cluster, { name, node: cluster.nodeNames[i] as string });
      pods = await readyPods(cluster, "default", names.length);
      for (const [name, pod] of pods) listeners.push(await answerIn(pod.sandbox!.netns, name, { udp: [PORT] }));
    });
    afterAll(async () => {
      for (const listener of listeners) listener.close();
      await cluster?.close();
    });

    const ways = [
      ["beside", "in the same subnet", "as they are", "eth0"],
      ["across", "in the other subnet", "in the tunnel", overlay],
    ] as const;
    it.each(ways)(
      "packets to a pod %s, %s, go %s",
      async (name, _where, _how, device) => {
        const [here, there] = [pods.get("here")!, pods.get(name)!];
        const address = there.podIPs[0] as string;
        expect(wayTo(here.machine, address)).toBe(device);
        const before = await sentBy(overlay, here.machine);
        for (let asked = 0; asked < QUESTIONS; asked++) {
          const answer = await askFrom(here.sandbox!.netns, { host: address, port: PORT, protocol: "udp" });
          expect(answer).toMatchObject({ host: name, client: here.podIPs[0] });
        }
        const sent = (await sentBy(overlay, here.machine)) - before;
        if (device === overlay) expect(sent).toBeGreaterThanOrEqual(QUESTIONS);
        else expect(sent).toBeLessThan(QUESTIONS);
      },
      60_000,
    );

    it.runIf(overlay === VXLAN.overlay)("agents verify by probes that VXLAN passes between all nodes", async () => {
      const reports = async () => {
        const { items } = await cluster.client.list(PODS, { namespace: vendorNames.namespaces.system });
        return items.flatMap(({ metadata }) => readAgentReport(metadata.annotations).overlay ?? []);
      };
      const seen = await eventually(
        reports,
        (all) => all.length === 3 && all.every(({ verifiedSince }) => verifiedSince !== undefined),
        30_000,
      );
      expect(seen.flatMap(({ losses }) => losses)).toEqual([]);
    });
  },
);

/** The device a node's routes send packets for a pod of another node to. */
function wayTo({ netns }: Machine, address: string): string | undefined {
  const netlink = realKernel().netlink(netns);
  try {
    const route = netlink.routes().find(({ destination }) => {
      const prefix = parseCidr(destination);
      return prefix !== undefined && prefix.length > 0 && contains(prefix, parseAddress(address)!);
    });
    return netlink.links().find(({ index }) => index === route?.device)?.name;
  } finally {
    netlink.close();
  }
}

async function sentBy(overlay: string, { netns }: Machine): Promise<number> {
  const command = ["ip", "-s", "-j", "link", "show", overlay];
  const { stdout } = await run("nsenter", [`--net=/run/netns/${netns.name}`, ...command]);
  return (JSON.parse(stdout) as { stats64: { tx: { packets: number } } }[])[0]!.stats64.tx.packets;
}

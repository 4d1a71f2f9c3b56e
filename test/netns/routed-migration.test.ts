import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { IPPool } from "../../src/api/resources/ip-pool.ts";
import { overlaps, parseCidr } from "../../src/kit/ip.ts";
import { storedKind } from "../../src/operator/managed-kinds.ts";
import { whyNoBgp } from "../agent/frr-router.ts";
import { openTool, type Tool } from "../procedures/kill-sweep/tool-process.ts";
import { installNetwork, untilActs, whyNoRealNodes } from "./real-cluster.ts";
import { peerWithRacks, wayTo } from "./routed-bgp.ts";
import { type Rack, type RoutedCluster, startRouted } from "./routed-lab.ts";
import { lossesOf, measuredIn, NOTHING_LOST, type SteadyTraffic, steadyTraffic } from "./steady-traffic.ts";

/** Two changes of a whole cluster, both measured, and killed on their way: minutes. */
const why =
  whyNoRealNodes ??
  whyNoBgp() ??
  (process.env["NETNS_SWITCH"] === "full" ? undefined : "a long run: npm run test:long -- switch");
const POOL = "10.244.0.0/16";
/** A machine with other things to do may be late; a connection is lost or it is not. */
const MEASURED = ["--budget", "connections=0,silence=20s,datagrams=5%", "-y", "-o", "json"];

describe.skipIf(why)(
  `pods routed by BGP between three subnets change to VXLAN, then to eBPF, under traffic${why ? `: ${why}` : ""}`,
  () => {
    let cluster: RoutedCluster;
    let tool: Tool;
    let live: SteadyTraffic;

    beforeAll(async () => {
      cluster = await startRouted({ proxy: "iptables" });
      await installNetwork(cluster, { dataplane: "Nftables", encapsulation: "None", bgp: "Enabled", families: [4] });
      await peerWithRacks(cluster, POOL);
      tool = openTool(cluster.kubeconfig);
      // Its rack has no other node: what it sends to others, routers carry.
      live = await steadyTraffic(cluster, cluster.nodeNames[1] as string);
    });
    afterAll(async () => {
      tool?.close();
      await cluster?.close();
    });

    /** Killed as soon as each of these steps is under way; another process goes on each time. */
    async function killedAt(steps: readonly RegExp[], ...command: string[]): Promise<string> {
      let running = tool.start(...command, ...MEASURED);
      for (const step of steps) {
        await running.said(new RegExp(`"id":"${step.source}".*"state":"running"`));
        await running.kill();
        running = tool.start("resume", "-y", "-o", "json");
      }
      const ended = await running.ended;
      expect(ended.status, ended.err).toBe(0);
      return ended.out;
    }
    const blocks = async () =>
      Object.fromEntries(
        await Promise.all(cluster.racks.map(async (rack) => [rack.name, [...(await blocksAt(rack, POOL))].sort()])),
      );
    /** Paths with a lost connection, or with no traffic. Datagrams that come while a node's routes change are lost, as the budget allows. */
    const lost = async () => {
      const rows = await live.figures();
      expect(lossesOf(rows)).toMatchObject({ ways: NOTHING_LOST.ways, silent: [] });
      return rows.filter((row) => row.lost > 0);
    };
    const lossesIn = (out: string) => measuredIn(out).filter(({ lost, reached }) => lost > 0 || !reached);

    it("to VXLAN, killed at each step: no connection is lost, and routers know the blocks as before", async () => {
      const known = await blocks();
      const out = await killedAt([/prepare-.*/, /change-.*/, /settle-.*/], "migrate", "encapsulation", "--to", "vxlan");
      expect(lossesIn(out)).toEqual([]);
      expect(await lost()).toEqual([]);
      expect(await live.deniedHeard()).toBe(false);
      const { items } = await cluster.client.list<IPPool & { metadata: { name: string } }>(storedKind("ipPool"));
      expect(items.map(({ spec }) => [spec.ipipMode, spec.vxlanMode])).toEqual([["Never", "Always"]]);
      const [own, other] = [cluster.nodeNames[1], cluster.nodeNames[2]] as [string, string];
      const address = await podAddressOn(other);
      expect(await wayTo(cluster, own, address)).toMatchObject({ dev: "vxlan.vendor" });
      expect(await blocks()).toEqual(known);
    });

    it("to eBPF, killed as waves begin: no connection is lost, and routers know the blocks as before", async () => {
      const known = await blocks();
      const out = await killedAt([/select-dataplane/, /release-canary/, /release-wave-1/], "switch", "--to", "BPF");
      expect(lossesIn(out)).toEqual([]);
      expect(await lost()).toEqual([]);
      expect(await live.deniedHeard()).toBe(false);
      await untilActs(cluster.client, "BPF");
      expect(await blocks()).toEqual(known);
    });

    async function podAddressOn(node: string): Promise<string> {
      const [pod] = [...cluster.runtime.pods()].filter(
        ({ machine, podIPs }) => machine.spec.name === node && podIPs[0],
      );
      return pod!.podIPs[0] as string;
    }
  },
);

/** Blocks inside of the pods' network that the router of a rack knows, by next hop. */
async function blocksAt({ router }: Rack, pods: string): Promise<Map<string, string[]>> {
  const around = parseCidr(pods)!;
  const routes = [...(await router.routes(4))].filter(([net]) => overlaps(around, parseCidr(net)!));
  return new Map(routes.map(([net, { used }]) => [net, used]));
}

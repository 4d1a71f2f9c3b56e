import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { READY_TUNNELS } from "../../src/api/protocol/pool-tunnels.ts";
import type { IPPool } from "../../src/api/resources/ip-pool.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import { storedKind } from "../../src/operator/managed-kinds.ts";
import { whyNoIpip } from "../kernels/ipip-scenario.ts";
import { type InProcessVendorctl, inProcessVendorctl } from "../support/in-process-vendorctl.ts";
import { installNetwork, type RealCluster, startReal, whyNoRealNodes } from "./real-cluster.ts";
import { lossesOf, measuredIn, NOTHING_LOST, type SteadyTraffic, steadyTraffic } from "./steady-traffic.ts";

/** A change and its way back, both measured: minutes. */
const why =
  whyNoRealNodes ?? (process.env["NETNS_SWITCH"] === "full" ? undefined : "a long run: npm run test:long -- switch");
/** A machine with other things to do may be late; a connection is lost or it is not. */
const BUDGET = ["--budget", "connections=0,silence=20s,datagrams=5%"];
const STARTS = why || whyNoIpip(realKernel()) ? (["None"] as const) : (["None", "IPIP"] as const);

describe.skipIf(why).each(STARTS)(
  `pools without a tunnel or with IPIP change to VXLAN under traffic, from %s${why ? `: ${why}` : ""}`,
  (encapsulation) => {
    let cluster: RealCluster;
    let tool: InProcessVendorctl;
    let live: SteadyTraffic;
    const modes = async () =>
      (
        await cluster.client.list<IPPool & { metadata: { name: string; annotations?: Record<string, string> } }>(
          storedKind("ipPool"),
        )
      ).items.map(({ metadata, spec }) => [spec.ipipMode, spec.vxlanMode, metadata.annotations?.[READY_TUNNELS]]);
    const change = ["migrate", "encapsulation", "--to", "vxlan", "-y", "-o", "json", ...BUDGET];

    beforeAll(async () => {
      cluster = await startReal({ nodes: 2, proxy: "iptables" });
      await installNetwork(cluster, { dataplane: "Nftables", encapsulation, families: [4] });
      tool = inProcessVendorctl(cluster.kubeconfig);
      live = await steadyTraffic(cluster, cluster.nodeNames[1] as string);
    });
    afterAll(async () => {
      tool?.close();
      await cluster?.close();
    });

    it("without a lost connection, by node ports too, and nothing is left of the change", async () => {
      const rows = measuredIn(await tool.ok(...change));
      expect(rows.length).toBeGreaterThan(0);
      expect(rows.filter(({ lost, reached }) => lost > 0 || !reached)).toEqual([]);
      expect(lossesOf(await live.figures())).toEqual(NOTHING_LOST);
      expect(await live.deniedHeard()).toBe(false);
      expect(await modes()).toEqual([["Never", "Always", undefined]]);
    });

    it("and back by a rollback", async () => {
      await tool.ok("rollback", "-y");
      expect(lossesOf(await live.figures())).toEqual(NOTHING_LOST);
      expect(await modes()).toEqual([[encapsulation === "IPIP" ? "Always" : "Never", "Never", undefined]]);
    });
  },
);

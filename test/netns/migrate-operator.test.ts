import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PODS } from "../../src/cluster/kinds.ts";
import type { Pod } from "../../src/local/controllers/workload-types.ts";
import { type InProcessVendorctl, inProcessVendorctl } from "../support/in-process-vendorctl.ts";
import { applyManifest } from "../support/manifest-cluster.ts";
import { type RealCluster, startReal, whyNoRealNodes } from "./real-cluster.ts";
import { lossesOf, measuredIn, NOTHING_LOST, type SteadyTraffic, steadyTraffic } from "./steady-traffic.ts";

/** A migration and its way back, both measured: minutes. */
const why =
  whyNoRealNodes ?? (process.env["NETNS_SWITCH"] === "full" ? undefined : "a long run: npm run test:long -- switch");
/** A machine with other things to do may be late; a connection is lost or it is not. */
const BUDGET = ["--budget", "connections=0,silence=20s,datagrams=5%"];

describe.skipIf(why)(`vendor.yaml becomes an operator's installation under traffic${why ? `: ${why}` : ""}`, () => {
  let cluster: RealCluster;
  let tool: InProcessVendorctl;
  let live: SteadyTraffic;
  const agents = async (namespace: string) =>
    (await cluster.client.list<Pod>(PODS, { namespace, labelSelector: "k8s-app=vendor-node" })).items.length;

  beforeAll(async () => {
    cluster = await startReal({ nodes: 2, proxy: "iptables" });
    tool = inProcessVendorctl(cluster.kubeconfig);
    await applyManifest(cluster.client, "vendor.yaml");
    live = await steadyTraffic(cluster, cluster.nodeNames[1] as string);
  });
  afterAll(async () => {
    tool?.close();
    await cluster?.close();
  });

  it("loses no connection, and opens nothing that policy closes", async () => {
    const rows = measuredIn(await tool.ok("migrate", "operator", "-y", "-o", "json", ...BUDGET));
    expect(rows.length).toBeGreaterThan(0);
    expect(rows.filter(({ lost, reached }) => lost > 0 || !reached)).toEqual([]);
    expect([await agents("kube-system"), await agents("vendor-system")]).toEqual([0, 2]);
    expect(lossesOf(await live.figures())).toEqual(NOTHING_LOST);
    expect(await live.deniedHeard()).toBe(false);
  });

  it("nor on the way back", async () => {
    await tool.ok("rollback", "-y");
    expect([await agents("kube-system"), await agents("vendor-system")]).toEqual([2, 0]);
    expect(lossesOf(await live.figures())).toEqual(NOTHING_LOST);
    expect(await live.deniedHeard()).toBe(false);
  });
});

import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readAgentReport } from "../../src/api/protocol/agent-report.ts";
import { PODS } from "../../src/cluster/kinds.ts";
import type { Pod } from "../../src/local/controllers/workload-types.ts";
import { writeReleaseBefore } from "../../src/local/installed/release-before.ts";
import { openTool, type Tool } from "../procedures/kill-sweep/tool-process.ts";
import { type RealCluster, startReal, whyNoRealNodes } from "./real-cluster.ts";
import { lossesOf, measuredIn, NOTHING_LOST, type SteadyTraffic, steadyTraffic } from "./steady-traffic.ts";

/** An installation, an upgrade and its way back, all measured: minutes. */
const why =
  whyNoRealNodes ?? (process.env["NETNS_SWITCH"] === "full" ? undefined : "a long run: npm run test:long -- switch");
const AGENTS = { namespace: "vendor-system", labelSelector: "k8s-app=vendor-node" };
/** A machine with other things to do may be late; a connection is lost or it is not. */
const MEASURED = ["--canary-traffic", "auto", "--budget", "connections=0,silence=20s,datagrams=5%", "-o", "json"];

describe.skipIf(why)(`an upgrade of a cluster that works, with eBPF${why ? `: ${why}` : ""}`, () => {
  let cluster: RealCluster;
  let tool: Tool;
  let live: SteadyTraffic;
  let upgraded: string | undefined;
  const ok = async (...args: string[]) => {
    const ended = await tool.run(...args);
    expect(ended.status, `vendorctl ${args.join(" ")}: ${ended.err}`).toBe(0);
    return ended.out;
  };
  const agents = async () => {
    const { items } = await cluster.client.list<Pod>(PODS, AGENTS);
    return items.map(({ metadata, spec }) => ({
      uid: metadata.uid as string,
      version: spec.containers[0]?.image?.split(":").at(-1),
      acts: readAgentReport(metadata.annotations).dataplane,
      proven: readAgentReport(metadata.annotations).servicesProven,
    }));
  };
  const all = (version: string) => cluster.nodeNames.map(() => ({ version, acts: "BPF", proven: true }));

  beforeAll(async () => {
    cluster = await startReal({ nodes: 3, proxy: "iptables" });
    tool = openTool(cluster.kubeconfig);
    const { url } = await writeReleaseBefore(join(tool.home, "releases"));
    await ok("install", "-y", "--manifest-url", url);
    live = await steadyTraffic(cluster, cluster.nodeNames[1] as string);
  });
  afterAll(async () => {
    tool?.close();
    await cluster?.close();
  });

  it("replaces every agent one after another, and no connection and no datagram is lost", async () => {
    const before = await agents();
    expect(before).toMatchObject(all("v3.31.2"));
    const out = await ok("upgrade", "-y", ...MEASURED);
    const rows = measuredIn(out);
    upgraded = /"run":"(upgrade-[\w-]+)"/.exec(out)?.[1];
    const after = await agents();
    expect(after).toMatchObject(all("v3.31.3"));
    expect(after.some(({ uid }) => before.some((old) => old.uid === uid))).toBe(false);
    expect(
      rows.map(({ way, protocol, reached, lost, unanswered }) => [way, protocol, reached, lost, unanswered]),
    ).toEqual(rows.map(({ way, protocol }) => [way, protocol, true, 0, 0]));
    expect(lossesOf(await live.figures())).toEqual(NOTHING_LOST);
    expect(await ok("version")).toContain("v3.31.3");
  });

  it("is taken back the same way", async () => {
    expect(upgraded, "there was no upgrade to take back").toBeDefined();
    await ok("rollback", "-y", "--run", upgraded as string);
    await expect.poll(agents, { interval: 500 }).toMatchObject(all("v3.31.2"));
    expect(lossesOf(await live.figures())).toEqual(NOTHING_LOST);
  });
});

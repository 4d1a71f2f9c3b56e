import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { announcedDataplane } from "../../src/api/protocol/agent-report.ts";
import { DAEMON_SETS, PODS } from "../../src/cluster/kinds.ts";
import type { DaemonSet, Pod } from "../../src/local/controllers/workload-types.ts";
import { openTool, type Tool } from "../procedures/kill-sweep/tool-process.ts";
import { allStatuses } from "../support/operator-status.ts";
import { type RealCluster, startReal, whyNoRealNodes } from "./real-cluster.ts";
import { allowPrograms, refusePrograms } from "./refusing-node.ts";
import { lossesOf, NOTHING_LOST, type SteadyTraffic, steadyTraffic } from "./steady-traffic.ts";

/** Agents of three nodes are rolled out several times, one after another: minutes. */
const why =
  whyNoRealNodes ?? (process.env["NETNS_SWITCH"] === "full" ? undefined : "a long run: npm run test:long -- switch");
const EVERY = { interval: 500 };
const AGENTS = { namespace: "vendor-system", labelSelector: "k8s-app=vendor-node" };
/** The traffic that is looked at here is that of somebody else. */
const SWITCH = ["switch", "--to", "BPF", "-y", "--canary-traffic", "off"];

describe.skipIf(why)(`a node whose kernel refuses the programs${why ? `: ${why}` : ""}`, () => {
  let cluster: RealCluster;
  let tool: Tool;
  let live: SteadyTraffic;
  const canary = () => `${cluster.name}-worker-1`;
  const other = () => `${cluster.name}-worker-2`;
  const machine = () => cluster.runtime.machine(other());
  const agents = async () => (await cluster.client.list<Pod>(PODS, AGENTS)).items;
  /** What the node's agent says acts there. */
  const planeOn = async (node: string) => {
    const isHere = ({ spec, metadata }: Pod) => spec.nodeName === node && !metadata.deletionTimestamp;
    return announcedDataplane((await agents()).find(isHere)?.metadata.annotations);
  };
  const planes = () => Promise.all(cluster.nodeNames.map(planeOn));
  const proxies = async () => {
    const ref = { namespace: "kube-system", name: "kube-proxy" };
    return (await cluster.client.get<DaemonSet>(DAEMON_SETS, ref)).status?.numberReady ?? 0;
  };
  const network = async () => (await allStatuses(cluster.client))["network"];
  const lost = async () => lossesOf(await live.figures());
  const ok = async (...args: string[]) => {
    const { status, out, err } = await tool.run(...args);
    expect(status, `vendorctl ${args.join(" ")}: ${err}`).toBe(0);
    return out;
  };
  async function restartAgent(): Promise<void> {
    const pod = (await agents()).find(({ spec }) => spec.nodeName === other());
    await cluster.client.delete(PODS, { namespace: AGENTS.namespace, name: pod?.metadata.name as string });
  }

  beforeAll(async () => {
    cluster = await startReal({ nodes: 3, proxy: "iptables" });
    tool = openTool(cluster.kubeconfig);
    await ok("install", "-y", "--dataplane", "standard");
    live = await steadyTraffic(cluster, other());
  });
  afterAll(async () => {
    tool?.close();
    await cluster?.close();
  });

  it("is found when its agent is rolled anew: the switch stops before any node has followed, and names it with its reason", async () => {
    await refusePrograms(machine());
    const { status, err } = await tool.run(...SWITCH);
    expect(status).toBe(1);
    expect(err).toMatch(/node \S+-worker-2 cannot run eBPF: .*\[STEP_NODE_REFUSES_EBPF\]\n {2}fix: .*vendorctl resume/);
    // The roll-out goes on: an agent that cannot load programs is a good one otherwise.
    await expect.poll(planes, EVERY).toEqual(["Nftables", "Nftables", "Nftables"]);
    expect(await proxies()).toBe(3);
    await expect.poll(network, EVERY).toMatchObject({ degraded: true, reason: "EbpfProgramsRefused" });
    const { out } = await tool.run("status");
    expect(out).toMatch(/eBPF is not enabled and kube-proxy is unchanged\. Node \S+-worker-2: \S/);
    expect(await lost()).toEqual(NOTHING_LOST);
  });

  it("does not keep the cluster from going back", async () => {
    await ok("rollback", "-y");
    // An agent that has just been started has not said anything yet.
    await expect.poll(planes, EVERY).toEqual(["Nftables", "Nftables", "Nftables"]);
    await expect.poll(network, EVERY).toMatchObject({ available: true, degraded: false });
    await allowPrograms(machine());
    await restartAgent();
    const well = async () => (await tool.run("plan", "switch", "--to", "BPF")).status;
    await expect.poll(well, EVERY).toBe(0);
    expect(await lost()).toEqual(NOTHING_LOST);
  });

  it("that refuses when others have switched already keeps its proxy and its traffic, beside them", async () => {
    const switching = tool.start(...SWITCH);
    await switching.said(/^ok +\d+\/\d+ +Wait for the operator to enable eBPF/m);
    await refusePrograms(machine());
    await restartAgent();
    const { status, err } = await switching.ended;
    expect(status).toBe(1);
    expect(err).toMatch(/node \S+-worker-2 cannot run eBPF: .*\[STEP_NODE_REFUSES_EBPF\]/);
    await expect.poll(() => planeOn(canary()), EVERY).toBe("BPF");
    await expect.poll(() => planeOn(other()), EVERY).toBe("Nftables");
    expect(await proxies()).toBe(3);
    await expect
      .poll(async () => (await network())?.message, EVERY)
      .toMatch(/do not load on 1 node; eBPF runs on 1 others, and kube-proxy stays on all\. Node \S+-worker-2: \S/);
    expect(await lost()).toEqual(NOTHING_LOST);
  });

  it("put right, the switch goes on where it stopped, and the proxy goes", async () => {
    await allowPrograms(machine());
    await restartAgent();
    await ok("resume", "-y");
    expect(await planes()).toEqual(["BPF", "BPF", "BPF"]);
    await expect.poll(proxies, EVERY).toBe(0);
    await expect.poll(network, EVERY).toMatchObject({ available: true, degraded: false });
    expect(await lost()).toEqual(NOTHING_LOST);
  });
});

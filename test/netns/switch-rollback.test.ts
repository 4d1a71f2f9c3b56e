import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { announcedDataplane } from "../../src/api/protocol/agent-report.ts";
import { isNotFound } from "../../src/cluster/failures.ts";
import { NAMESPACES, PODS } from "../../src/cluster/kinds.ts";
import type { Pod } from "../../src/local/controllers/workload-types.ts";
import { CANARY_NAMESPACE } from "../../src/procedures/canary/canary-objects.ts";
import { openTool, type Tool } from "../procedures/kill-sweep/tool-process.ts";
import { type RealCluster, startReal, whyNoRealNodes } from "./real-cluster.ts";
import { measuredIn } from "./steady-traffic.ts";

/** Several switches with traffic measured: minutes. */
const why =
  whyNoRealNodes ?? (process.env["NETNS_SWITCH"] === "full" ? undefined : "a long run: npm run test:long -- switch");
const EVERY = { interval: 250 };
const AGENTS = { namespace: "vendor-system", labelSelector: "k8s-app=vendor-node" };
/** A machine with other things to do may be late; a connection is lost or it is not. */
const LENIENT = ["--budget", "connections=0,silence=20s,datagrams=5%"];
const WELL = { lost: 0, reached: true };

describe.skipIf(why)(`a vendorctl that is killed while its canary runs${why ? `: ${why}` : ""}`, () => {
  let cluster: RealCluster;
  let tool: Tool;
  const ok = async (...args: string[]) => {
    const ended = await tool.run(...args);
    expect(ended.status, `vendorctl ${args.join(" ")}: ${ended.err}`).toBe(0);
    return ended;
  };
  const canary = async () => {
    const { items } = await cluster.client.list<Pod>(PODS, { namespace: CANARY_NAMESPACE });
    return items.map(({ metadata }) => metadata.uid).sort();
  };
  const isMeasuring = () =>
    cluster.client.get(NAMESPACES, { name: CANARY_NAMESPACE }).then(
      () => true,
      (error: unknown) => !isNotFound(error),
    );
  const planes = async () => {
    const { items } = await cluster.client.list<Pod>(PODS, AGENTS);
    return items.map(({ metadata }) => announcedDataplane(metadata.annotations));
  };
  /** When connections of eBPF's time have ended, agents are rolled once more, without the rights it needed; only then are they at rest. */
  async function untilAtRest(): Promise<void> {
    const privileged = async () => {
      const { items } = await cluster.client.list<Pod>(PODS, AGENTS);
      const agents = items.flatMap(({ spec }) => spec.containers);
      return agents.map((agent) => (agent["securityContext"] as { privileged?: boolean }).privileged);
    };
    await expect.poll(privileged, EVERY).toEqual([false, false]);
    const plan = async () => (await tool.run("plan", "switch", "--to", "BPF")).status;
    await expect.poll(plan, EVERY).toBe(0);
  }
  /** Somebody begins a switch, and it is cut off without a last word as soon as it has said this, or the cluster shows that. */
  async function killed(to: "BPF" | "standard", when: RegExp | (() => Promise<boolean>)): Promise<void> {
    const switching = tool.start("switch", "--to", to, "-y", ...LENIENT);
    if (when instanceof RegExp) await switching.said(when);
    else await expect.poll(when, EVERY).toBe(true);
    await switching.kill();
  }

  beforeAll(async () => {
    cluster = await startReal({ nodes: 2, proxy: "nftables" });
    tool = openTool(cluster.kubeconfig);
    await ok("install", "-y", "--dataplane", "standard");
  });
  afterAll(async () => {
    tool?.close();
    await cluster?.close();
  });

  it("before it had begun to measure is taken back, and nothing of it stays", async () => {
    await killed("BPF", isMeasuring);
    await ok("rollback", "-y");
    expect([await isMeasuring(), await planes()]).toEqual([false, ["Nftables", "Nftables"]]);
  });

  it("and is given up does not leave its pods behind either", async () => {
    await killed("BPF", isMeasuring);
    await ok("abort", "-y");
    expect([await isMeasuring(), await planes()]).toEqual([false, ["Nftables", "Nftables"]]);
  });

  it("in the middle of the nodes is resumed with the pods that have measured all along, and then they go", async () => {
    await killed("BPF", /^ok +\d+\/\d+ +Wait for the operator to enable eBPF/m);
    const before = await canary();
    expect(before.length).toBe(6);
    const resuming = tool.start("resume", "-y", "-o", "json");
    await resuming.said(/"id":"release-wave-1".*"state":"running"/);
    expect(await canary()).toEqual(before);
    const ended = await resuming.ended;
    expect(ended.status, ended.err).toBe(0);
    expect(measuredIn(ended.out)).toMatchObject(measuredIn(ended.out).map(() => WELL));
    expect([await isMeasuring(), await planes()]).toEqual([false, ["BPF", "BPF"]]);
  });

  it("on the way to the nftables data plane is taken back with the same pods, and then they go", async () => {
    await killed("standard", /^ok +\d+\/\d+ +Switch the canary node/m);
    const before = await canary();
    const back = tool.start("rollback", "-y", "-o", "json");
    await back.said(/"id":"release-canary".*"state":"undoing"/);
    expect(await canary()).toEqual(before);
    const ended = await back.ended;
    expect(ended.status, ended.err).toBe(0);
    expect(measuredIn(ended.out)).toMatchObject(measuredIn(ended.out).map(() => WELL));
    expect([await isMeasuring(), await planes()]).toEqual([false, ["BPF", "BPF"]]);
  });

  it("traffic that is lossy before a switch has it refused, and nothing is left of it", async () => {
    await ok("switch", "--to", "standard", "-y", "--canary-traffic", "off");
    await untilAtRest();
    for (const name of cluster.nodeNames) await loseDatagrams(name, true);
    const { status, err } = await tool.run("switch", "--to", "BPF", "-y", ...LENIENT);
    expect(status).toBe(3);
    expect(err).toMatch(/node-port-\w+ by UDP: .*not answered.*\[CANARY_NOT_CLEAN\]\n {2}fix: .*--force/);
    expect([await isMeasuring(), await planes()]).toEqual([false, ["Nftables", "Nftables"]]);
  });

  it("forced, it goes on: the ways that were lossy are named and do not count, all others do", async () => {
    const { err } = await ok("switch", "--to", "BPF", "-y", "--force", ...LENIENT);
    for (const name of cluster.nodeNames) await loseDatagrams(name, false);
    expect(err).toMatch(/traffic already fails: node-port-\w+ by UDP: .*; only the \d+ healthy paths count/);
    expect([await isMeasuring(), await planes()]).toEqual([false, ["BPF", "BPF"]]);
  });

  /** Every other datagram to a node port, wherever it comes from. */
  async function loseDatagrams(node: string, lose: boolean): Promise<void> {
    const rules = lose
      ? [
          "add table inet lossy",
          "add chain inet lossy in { type filter hook prerouting priority -310; }",
          "add rule inet lossy in iifname != lo udp dport 30000-32767 numgen inc mod 2 0 drop",
        ]
      : ["delete table inet lossy"];
    for (const rule of rules) {
      const { code, out } = await cluster.runtime.machine(node).run(["nft", rule]);
      expect(code, out).toBe(0);
    }
  }
});

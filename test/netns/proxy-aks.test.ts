import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { dataplaneConfiguration } from "../../src/api/resources/dataplane-configuration.ts";
import { placesOf } from "../../src/api/resources/resource.ts";
import { DAEMON_SETS } from "../../src/cluster/kinds.ts";
import type { DaemonSet } from "../../src/local/controllers/workload-types.ts";
import { openTool, type Tool } from "../procedures/kill-sweep/tool-process.ts";
import { allStatuses } from "../support/operator-status.ts";
import { proxyRuleReports, type RealCluster, startReal, whyNoRealNodes } from "./real-cluster.ts";
import { lossesOf, NOTHING_LOST, type SteadyTraffic, steadyTraffic } from "./steady-traffic.ts";

/** Waits on the proxy itself, which looks every thirty seconds: minutes. */
const why =
  whyNoRealNodes ?? (process.env["NETNS_PROXY"] === "full" ? undefined : "a long run: npm run test:long -- proxy");
const EVERY = { interval: 1_000 };
const PROXY = { namespace: "kube-system", name: "kube-proxy" };

describe.skipIf(why)(`where an add-on manager keeps the service proxy${why ? `: ${why}` : ""}`, () => {
  let cluster: RealCluster;
  let tool: Tool;
  let live: SteadyTraffic;
  const configuration = placesOf(dataplaneConfiguration, vendorNames).stored;
  const words = () => proxyRuleReports(cluster);
  const status = async () => (await allStatuses(cluster.client))["service-proxy"];
  const cleanup = async () => {
    const { spec } = await cluster.client.get<KubeObject>(configuration, { name: "default" });
    return (spec as Record<string, unknown>)["bpfServiceProxyIptablesCleanupEnabled"];
  };
  const lost = async () => lossesOf(await live.figures());

  beforeAll(async () => {
    cluster = await startReal({ kind: "aks", nodes: 2, proxy: "iptables" });
    tool = openTool(cluster.kubeconfig);
    const { status: exit, err } = await tool.run("install", "-y");
    expect(exit, err).toBe(0);
    live = await steadyTraffic(cluster, cluster.nodeNames[0] as string);
  });
  afterAll(async () => {
    tool?.close();
    await cluster?.close();
  });

  it("its rules are kept from the beginning, and both are well", async () => {
    expect(await cleanup()).toBe(false);
    await expect.poll(words, EVERY).toEqual(["left alone", "left alone"]);
    await expect.poll(status, EVERY).toMatchObject({ available: true, degraded: false });
    expect((await status())?.message).toContain("its rules are kept");
    const asked = await tool.run("proxy", "status");
    expect([asked.status, asked.out]).toEqual([0, expect.stringMatching(/verdict: +ok/)]);
  });

  it("parked by hand, it is back at once: nobody notices, and status goes on being right", async () => {
    const parked = { spec: { template: { spec: { nodeSelector: { "non-vendor": "true" } } } } };
    const { metadata } = await cluster.client.patch<DaemonSet>(DAEMON_SETS, PROXY, { type: "merge", patch: parked });
    const back = async () => {
      const { metadata: now, spec, status: said } = await cluster.client.get<DaemonSet>(DAEMON_SETS, PROXY);
      const selected = (spec.template.spec as { nodeSelector?: Record<string, string> }).nodeSelector ?? {};
      return [(now.generation ?? 0) > (metadata.generation ?? 0), selected["non-vendor"], said?.numberReady];
    };
    await expect.poll(back, EVERY).toEqual([true, undefined, 2]);
    await expect.poll(words, EVERY).toEqual(["left alone", "left alone"]);
    await expect.poll(status, EVERY).toMatchObject({ available: true, degraded: false });
    expect(await lost()).toEqual(NOTHING_LOST);
  });

  it("told to remove its rules, agents fight with it: status is degraded with the one way out, and services are served", async () => {
    const patch = { spec: { bpfServiceProxyIptablesCleanupEnabled: true } };
    await cluster.client.patch(configuration, { name: "default" }, { type: "merge", patch });
    await expect.poll(status, EVERY).toMatchObject({ degraded: true, reason: "ServiceProxyConflict" });
    const asked = await tool.run("proxy", "status");
    expect([asked.status, asked.out]).toEqual([3, expect.stringMatching(/verdict: +conflict/)]);
    const conflict = expect.stringMatching(/^conflict: .* wrote its rules again/);
    await expect.poll(words, EVERY).toEqual([conflict, conflict]);
    await expect.poll(async () => (await status())?.message, EVERY).toMatch(/writes them again on 2 nodes/);
    const { out } = await tool.run("status");
    expect(out).toMatch(/kube-proxy: degraded[\s\S]*cannot be disabled[\s\S]*bpfServiceProxyIptablesCleanupEnabled/);
    expect(await cleanup()).toBe(true);
    expect(await lost()).toEqual(NOTHING_LOST);
  });

  it("the command in the status is the fix: typed as it stands, all is well again", async () => {
    const command = /Fix: .*(kubectl patch \S+ default --type merge -p '(.*)')/.exec((await status())?.message ?? "");
    expect(command?.[1]).toContain("dataplaneconfigurations");
    const patch = JSON.parse(command?.[2] ?? "{}") as object;
    await cluster.client.patch(configuration, { name: "default" }, { type: "merge", patch });
    await expect.poll(status, EVERY).toMatchObject({ available: true, degraded: false });
    await expect.poll(words, EVERY).toEqual(["left alone", "left alone"]);
    const asked = await tool.run("proxy", "status");
    expect([asked.status, asked.out]).toEqual([0, expect.stringMatching(/verdict: +ok/)]);
    expect(await lost()).toEqual(NOTHING_LOST);
  });
});

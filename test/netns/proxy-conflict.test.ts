import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import { dataplaneConfiguration } from "../../src/api/resources/dataplane-configuration.ts";
import { placesOf } from "../../src/api/resources/resource.ts";
import { allStatuses } from "../support/operator-status.ts";
import { installNetwork, proxyRuleReports, type RealCluster, startReal, whyNoRealNodes } from "./real-cluster.ts";

/** Waits on the proxy itself, which looks every thirty seconds: minutes. */
const why =
  whyNoRealNodes ?? (process.env["NETNS_PROXY"] === "full" ? undefined : "a long run: npm run test:long -- proxy");
const EVERY = { interval: 1_000 };

const CONFLICT = expect.stringMatching(/^conflict: .* wrote its rules again/);

describe.skipIf(why)(`where the service proxy runs on beside eBPF${why ? `: ${why}` : ""}`, () => {
  let cluster: RealCluster;
  const configuration = placesOf(dataplaneConfiguration, vendorNames).stored;
  const words = () => proxyRuleReports(cluster);
  const status = async () => (await allStatuses(cluster.client))["service-proxy"];
  const chains = async () => {
    const node = cluster.runtime.machine(cluster.nodeNames[0] as string);
    return (await node.run(["iptables-save", "-t", "nat"])).out.match(/^:KUBE-SVC-/gm)?.length ?? 0;
  };
  const cleanup = (enabled: boolean) =>
    cluster.client.patch(
      configuration,
      { name: "default" },
      { type: "merge", patch: { spec: { bpfServiceProxyIptablesCleanupEnabled: enabled } } },
    );

  beforeAll(async () => {
    cluster = await startReal({ nodes: 2, proxy: "iptables" });
    await installNetwork(cluster, { dataplane: "BPF", encapsulation: "VXLAN", families: [4] });
  });
  afterAll(() => cluster?.close());

  it("it fights with agents that remove its rules: each says so, and status, with the fix", async () => {
    await expect.poll(words, EVERY).toEqual([CONFLICT, CONFLICT]);
    await expect.poll(status, EVERY).toMatchObject({
      degraded: true,
      message: expect.stringContaining('"bpfServiceProxyIptablesCleanupEnabled":false'),
    });
  });

  it("with its rules left alone the two live side by side", async () => {
    await cleanup(false);
    await expect.poll(words, EVERY).toEqual(["left alone", "left alone"]);
    await expect.poll(chains, EVERY).toBeGreaterThan(0);
    await expect.poll(async () => (await status())?.degraded ?? false, EVERY).toBe(false);
  });
});

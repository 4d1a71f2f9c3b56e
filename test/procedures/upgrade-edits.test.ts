import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { KubeObject } from "../../src/api/object.ts";
import { CONFIG_MAPS, DAEMON_SETS, DEPLOYMENTS, SECRETS } from "../../src/cluster/kinds.ts";
import type { Plan } from "../../src/procedures/plan.ts";
import { findRelease } from "../../src/releases/old-release.ts";
import { publishedText } from "../../src/releases/published-text.ts";
import { clusterState, stateDifferences } from "../support/procedure-state.ts";
import { type UpgradeScenario, upgradeScenario } from "../support/upgrade-scenario.ts";

const SYSTEM = "kube-system";
const published = (file: "policyAndNetworking" | "policyAndNetworkingEtcd") => {
  const found = findRelease("v3.27");
  if (found.is !== "known") throw new Error("v3.27 is not known");
  return publishedText(file, found.release);
};

describe("somebody who edited the manifest and kept the file", () => {
  let story: UpgradeScenario;
  let mine: string;
  beforeAll(async () => {
    story = await upgradeScenario("v3.27", "manifest");
    const edited = published("policyAndNetworking")
      .replace('veth_mtu: "0"', '# Our cloud tunnels take 50 bytes.\n  veth_mtu: "1400" # ask the network team')
      .replace("192.168.0.0/16", "10.244.0.0/16")
      .replace(
        "        - operator: Exists\n",
        "        - operator: Exists\n        - key: dedicated\n          value: net\n",
      );
    mine = story.file("mine.yaml", edited);
  });
  afterAll(() => story.close());

  it("sees in the plan what is carried over, and whose fields are taken", async () => {
    const { out } = await story.run("plan", "upgrade", "--manifest", mine);
    expect(out).toContain(`3 edits are carried over from ${mine}, and 2 of your comments:`);
    expect(out).toContain('ConfigMap/kube-system/vendor-config:data.veth_mtu: "1400" instead of "0"');
    expect(out).toMatch(
      /DaemonSet kube-system\/vendor-node: \d+ fields of kubectl-client-side-apply are taken over by force-conflicts: .*image/,
    );
  });

  it("is stopped by an edit that clashes, with both sides shown and nothing changed", async () => {
    const before = await clusterState(story.cluster.client);
    const text = readFileSync(mine, "utf8").replace("replicas: 1", "replicas: 3").replace("- -ready", "- -ready-fast");
    const clashing = story.file("clashing.yaml", text);
    const { exit, err } = await story.run("upgrade", "-y", "--manifest", clashing);
    expect(exit).toBe(3);
    expect(err).toContain("2 of your edits conflict with the new version");
    expect(err).toContain(
      "Deployment/kube-system/vendor-kube-controllers:spec.replicas (both changed it: published 1, yours 3, new 2)",
    );
    expect(err).toContain("--take 'Deployment/kube-system/vendor-kube-controllers:spec.replicas=mine|new'");
    expect(stateDifferences(before, await clusterState(story.cluster.client))).toEqual([]);
  });

  it("decides, saves the new manifest with its comments, and finds all of it in the cluster", async () => {
    const text = readFileSync(mine, "utf8").replace("replicas: 1", "replicas: 3");
    const decided = story.file("decided.yaml", text);
    const saved = story.file("new.yaml", "");
    const take = "Deployment/kube-system/vendor-kube-controllers:spec.replicas=mine";
    const accept = ["--accept-loss", "IPPool.spec.ipipMode"];
    await story.ok("upgrade", "-y", "--manifest", decided, "--take", take, "--save-manifest", saved, ...accept);
    const manifest = readFileSync(saved, "utf8");
    expect(manifest).toContain('  # Our cloud tunnels take 50 bytes.\n  veth_mtu: "1400" # ask the network team\n');
    expect(manifest).toContain("# Policy and networking, without an operator.");
    const { client } = story.cluster;
    const settings = await client.get<KubeObject>(CONFIG_MAPS, { name: "vendor-config", namespace: SYSTEM });
    expect(settings["data"]).toMatchObject({ veth_mtu: "1400", ipv4_pool_cidr: "10.244.0.0/16" });
    const agents = await client.get<KubeObject>(DAEMON_SETS, { name: "vendor-node", namespace: SYSTEM });
    expect(JSON.stringify(agents["spec"])).toContain('{"key":"dedicated","value":"net"}');
    const controllers = await client.get<KubeObject>(DEPLOYMENTS, {
      name: "vendor-kube-controllers",
      namespace: SYSTEM,
    });
    expect(controllers["spec"]).toMatchObject({ replicas: 3 });
  });

  it("runs the upgrade again, and there is nothing left to do", async () => {
    const before = await clusterState(story.cluster.client);
    await story.ok("upgrade", "-y");
    expect(stateDifferences(before, await clusterState(story.cluster.client))).toEqual([]);
  });
});

describe("somebody whose etcd needs certificates", () => {
  it("keeps them, and no plan shows or holds them", async () => {
    const story = await upgradeScenario("v3.27", "manifest-etcd");
    try {
      const read = () =>
        story.cluster.client.get<KubeObject>(SECRETS, { name: "vendor-etcd-secrets", namespace: SYSTEM });
      const before = await read();
      const { "etcd-key": key } = before["data"] as Record<string, string>;
      const { out } = await story.run("-o", "json", "plan", "upgrade");
      expect(out).not.toContain(key);
      const plan = JSON.parse(out) as Plan;
      expect(plan.notes).toContainEqual("  Secret/kube-system/vendor-etcd-secrets:data.etcd-key: kept as you set it");
      await story.ok("upgrade", "-y");
      expect((await read())["data"]).toEqual(before["data"]);
    } finally {
      await story.close();
    }
  });
});

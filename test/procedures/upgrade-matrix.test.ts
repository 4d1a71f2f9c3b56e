import { describe, expect, it } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import type { Condition, KubeObject } from "../../src/api/object.ts";
import { CONFIG_MAPS, DAEMON_SETS, NAMESPACES } from "../../src/cluster/kinds.ts";
import type { InstallMethod } from "../../src/local/installed/install-method.ts";
import { storedKind } from "../../src/operator/managed-kinds.ts";
import { settledState, untilState } from "../support/procedure-state.ts";
import { acceptedLosses, type UpgradeScenario, upgradeScenario } from "../support/upgrade-scenario.ts";

const FULL = process.env["UPGRADE_MATRIX"] === "full";
/** The oldest that upgrades directly, and those on either side of what changed since: UIDs in v3.28, flow logs in v3.30. */
const VERSIONS = FULL ? ["v3.15", "v3.20", "v3.27", "v3.28", "v3.29", "v3.30"] : ["v3.15", "v3.27", "v3.28", "v3.30"];
const BY_OPERATOR: InstallMethod[] = ["operator", "chart"];
const BY_MANIFEST: InstallMethod[] = ["manifest", "manifest-canal", "manifest-policy-only"];
const BY_MANIFEST_ON_ETCD: InstallMethod[] = ["manifest-etcd", "manifest-canal-etcd"];

/** Each of these versions and each method once; with UPGRADE_MATRIX=full (`npm run test:long -- upgrade-matrix`) all pairs, and more versions. */
const rows = (methods: readonly InstallMethod[], versions = VERSIONS) =>
  versions.flatMap((version, at) =>
    methods.filter((_, method) => FULL || method === at % methods.length).map((method) => [version, method] as const),
  );

async function told(story: UpgradeScenario, method: InstallMethod): Promise<void> {
  try {
    await story.ok("upgrade", "-y", ...acceptedLosses(method));
  } catch (error) {
    await story.close();
    throw error;
  }
}

const get = (story: UpgradeScenario, kind: Parameters<UpgradeScenario["cluster"]["client"]["get"]>[0], name: string) =>
  story.cluster.client.get<KubeObject>(kind, { name });
const informationOf = async (story: UpgradeScenario) =>
  (await get(story, storedKind("clusterInformation"), "default"))["spec"] as { vendorVersion: string };
const exists = (story: UpgradeScenario, name: string) =>
  story.cluster.client.get(CONFIG_MAPS, { name, namespace: "shop" }).then(
    () => true,
    () => false,
  );
const statusesOf = async ({ cluster }: UpgradeScenario) => {
  const { items } = await cluster.client.list<KubeObject>(storedKind("status"));
  return items.map(({ metadata, status }) => {
    const { conditions = [] } = (status ?? {}) as { conditions?: Condition[] };
    return `${metadata.name} ${conditions.find(({ type }) => type === "Available")?.status}`;
  });
};

describe("upgrading a cluster with an operator", () => {
  it.each(rows(BY_OPERATOR))(
    "from %s by %s: our operator runs it, says so, and nothing is lost",
    async (version, method) => {
      const story = await upgradeScenario(version, method, { seed: { userEdits: true } });
      await told(story, method);
      try {
        expect(await informationOf(story)).toMatchObject({ vendorVersion: "v3.31.3" });
        const installation = await get(story, storedKind("installation"), "default");
        expect(installation["status"]).toMatchObject({ version: "v3.31.3" });
        // A person's own settings of the installation are theirs.
        expect(installation["spec"]).toMatchObject({ nodeMetricsPort: 9091 });
        expect(await statusesOf(story)).toContain("network True");
        const { items } = await story.cluster.client.list<KubeObject>(NAMESPACES);
        expect(items.map(({ metadata }) => metadata.name)).not.toContain(vendorNames.namespaces.apiServerBeforeV331);
        expect([await exists(story, "allow-web-notes"), await exists(story, "metadata-review")]).toEqual([true, true]);
      } finally {
        await story.close();
      }
    },
  );
});

describe("upgrading a cluster with plain manifests", () => {
  const agents = async (story: UpgradeScenario, method: InstallMethod) => {
    const name = method.includes("canal") ? vendorNames.workloads.overlayNode : vendorNames.workloads.node;
    const daemonSet = await story.cluster.client.get<KubeObject>(DAEMON_SETS, { name, namespace: "kube-system" });
    return JSON.stringify(daemonSet["spec"]);
  };
  const settings = async ({ cluster }: UpgradeScenario) => {
    const ref = { name: vendorNames.manifests.configMap, namespace: "kube-system" };
    return (await cluster.client.get<KubeObject>(CONFIG_MAPS, ref))["data"] as Record<string, string>;
  };

  it.each(rows(BY_MANIFEST, FULL ? VERSIONS : ["v3.15", "v3.27", "v3.30"]))(
    "from %s by %s: pods are 2/2, edits are kept, nothing is lost",
    async (version, method) => {
      const story = await upgradeScenario(version, method, { seed: { userEdits: true } });
      await told(story, method);
      try {
        expect(await informationOf(story)).toMatchObject({ vendorVersion: "v3.31.3" });
        expect(await agents(story, method)).toContain('"DATAPLANE_LOGSEVERITYSCREEN"');
        expect(await agents(story, method)).not.toContain('"DATAPLANE_HEALTHENABLED"');
        expect(await settings(story)).toMatchObject({ veth_mtu: "1440" });
        expect([await exists(story, "allow-web-notes"), await exists(story, "metadata-review")]).toEqual([true, true]);
      } finally {
        await story.close();
      }
    },
  );

  it.each(rows(BY_MANIFEST_ON_ETCD, FULL ? VERSIONS : ["v3.15", "v3.30"]))(
    "from %s by %s: pods are 1/2, and etcd is found where it was",
    async (version, method) => {
      const story = await upgradeScenario(version, method, { seed: { userEdits: true } });
      await told(story, method);
      try {
        expect(await agents(story, method)).toContain("registry.vendor.io/vendor/vendor:v3.31.3");
        expect(await settings(story)).toMatchObject({
          etcd_endpoints: "https://etcd.internal:2379",
          etcd_ca: "/vendor-secrets/etcd-ca",
          veth_mtu: "1440",
        });
      } finally {
        await story.close();
      }
    },
  );
});

describe("going back after an upgrade", () => {
  const METHODS = FULL ? ["operator", "chart", "manifest", "manifest-canal-etcd"] : ["operator", "manifest-canal-etcd"];
  it.each(METHODS as InstallMethod[])("by %s: every object is as it was", async (method) => {
    const story = await upgradeScenario("v3.27", method, { seed: { userEdits: true, cameFromBeforeV314: true } });
    try {
      const initial = await settledState(story.cluster.client);
      await story.ok("upgrade", "-y", ...acceptedLosses(method));
      await story.ok("rollback", "-y");
      expect(await untilState(story.cluster.client, initial)).toEqual([]);
    } finally {
      await story.close();
    }
  });
});

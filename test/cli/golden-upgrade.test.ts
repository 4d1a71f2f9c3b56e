import { afterAll, vi } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import { type LocalCluster, startCluster } from "../../src/local/cluster.ts";
import { GoldenFolder } from "../support/golden.ts";
import { applyManifest, editManifest } from "../support/manifest-cluster.ts";
import { aggregatedApiAnswers } from "../support/upgrade-scenario.ts";
import { type Case, describeCases, GoldenSession } from "./golden-session.ts";

/** What an upgrade prints on clusters as v3.27 left them, and what is migrated around it. */

vi.mock("../../src/procedures/run/engine.ts", async (original) =>
  (await import("../support/shared-runs.ts")).shareRuns(await original()),
);
vi.mock("../../src/procedures/observe.ts", async (original) =>
  (await import("../support/shared-runs.ts")).shareObservations(await original()),
);
vi.mock("../../src/procedures/preview-plan.ts", async (original) =>
  (await import("../support/shared-runs.ts")).sharePreviews(await original()),
);
vi.mock("../../src/procedures/upgrade/gather-upgrade.ts", async (original) =>
  (await import("../support/shared-runs.ts")).shareUpgrades(await original()),
);

const golden = new GoldenFolder(new URL("golden/upgrade/", import.meta.url));
const session = new GoldenSession();
let cluster: LocalCluster | undefined;

async function installedBy(method: "manifest" | "operator"): Promise<void> {
  await cluster?.close();
  cluster = await startCluster({
    name: "demo",
    kind: "generic",
    nodes: 2,
    installed: { version: "v3.27", method, cameFromBeforeV314: true, userEdits: true },
  });
  await aggregatedApiAnswers(cluster);
  session.useKubeconfig(session.file("kubeconfig", cluster.kubeconfig));
}

/** The manifest of this release, as its users have changed it. */
async function editedManifest(): Promise<void> {
  await cluster?.close();
  cluster = await startCluster({ name: "demo", kind: "generic", nodes: 2 });
  await applyManifest(cluster.client, vendorNames.manifests.policyAndNetworking);
  await editManifest(cluster.client, vendorNames.workloads.node);
  session.useKubeconfig(session.file("kubeconfig", cluster.kubeconfig));
}

const CASES: Case[] = [
  { line: "check --for upgrade", name: "check-for-upgrade-manifest", before: () => installedBy("manifest") },
  { line: "plan upgrade", name: "plan-upgrade-manifest" },
  { line: "migrate operator --dry-run", name: "migrate-operator-older" },
  { line: "plan migrate encapsulation --to vxlan" },
  { line: "migrate encapsulation --to vxlan --dry-run" },

  { line: "plan migrate operator", before: editedManifest },
  { line: "migrate operator -y" },
  { line: "migrate datastore -y" },
  { line: "migrate datastore --drop-old-data -y" },

  { line: "version", before: () => installedBy("operator") },
  { line: "status" },
  { line: "check --for upgrade" },
  { line: "check --for upgrade -o short" },
  { line: "install --dry-run" },
  { line: "upgrade --dry-run" },
  { line: "diff upgrade" },
  { line: "get tiers" },
  { line: "upgrade --to v3.20" },
  { line: "migrate owner-references --dry-run" },
  { line: "migrate owner-references --phase before -y", runs: true },
  { line: "migrate owner-references --phase after" },
  { line: "migrate host-endpoints --dry-run" },
  { line: "migrate sidecars --mesh-version 1.15 --dry-run" },
  { line: "migrate sidecars --mesh-version 9.9" },
  { line: "upgrade -y", runs: true },
  { line: "check" },
  { line: "rollback --dry-run" },
];

describeCases(golden, session, CASES);

afterAll(async () => {
  await cluster?.close();
  session.close();
});

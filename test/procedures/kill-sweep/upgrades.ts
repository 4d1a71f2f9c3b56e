import type { KubeObject } from "../../../src/api/object.ts";
import { CRDS, DEPLOYMENTS } from "../../../src/cluster/kinds.ts";
import type { LocalCluster } from "../../../src/local/cluster.ts";
import type { InstallMethod } from "../../../src/local/installed/install-method.ts";
import { startChartTool } from "../../support/chart-tool.ts";
import { aggregatedApiAnswers, applyChart } from "../../support/upgrade-story.ts";
import type { SweptProcedure } from "./procedures.ts";

const upgrade = (
  version: string,
  method: InstallMethod,
  more: Pick<SweptProcedure, "seed" | "programs"> = {},
): SweptProcedure => ({
  name: `upgrade from ${version} by ${method}`,
  cluster: { kind: "generic", nodes: 2, installed: { version, method, userEdits: true } },
  ...more,
  argv: ["upgrade"],
});

/** One row per method and variant; across v3.28, where there are owner references to carry, by operator and by manifest. */
export const UPGRADES: readonly SweptProcedure[] = [
  upgrade("v3.27", "operator", { seed: aggregatedApiAnswers }),
  upgrade("v3.29", "chart", { seed: aggregatedApiAnswers, programs: (cluster) => startChartTool(() => cluster) }),
  {
    ...upgrade("v3.29", "chart", {
      async seed(cluster) {
        await aggregatedApiAnswers(cluster);
        someoneUpgradesTheRelease(cluster);
      },
    }),
    name: "upgrade from v3.29 by chart, with the chart tool elsewhere",
  },
  upgrade("v3.27", "manifest"),
  upgrade("v3.29", "manifest-canal"),
  upgrade("v3.29", "manifest-policy-only"),
  upgrade("v3.29", "manifest-etcd"),
  upgrade("v3.29", "manifest-canal-etcd"),
];

const LOOK_MS = 100;
const OPERATOR = { name: "vendor-operator", namespace: "vendor-operator" };
const DEFINITION = { name: "installations.operator.vendor.io" };

/** The person vendorctl tells to run the chart tool: does so whenever the definitions are new and the operator is not. */
function someoneUpgradesTheRelease(cluster: LocalCluster): void {
  const { client } = cluster;
  const look = async (): Promise<void> => {
    const operator = JSON.stringify(await client.get<KubeObject>(DEPLOYMENTS, OPERATOR));
    const definition = JSON.stringify(await client.get<KubeObject>(CRDS, DEFINITION));
    const due = definition.includes("serviceProxyManagement") && !operator.includes(":v3.31.3");
    if (due) await applyChart(cluster);
    setTimeout(() => void look().catch(() => {}), LOOK_MS).unref();
  };
  // Ends with the cluster, whose closed door is the last thing it sees.
  void look().catch(() => {});
}

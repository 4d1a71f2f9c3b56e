import type { KubeObject } from "../../../src/api/object.ts";
import { SECRETS } from "../../../src/cluster/kinds.ts";
import type { LocalCluster } from "../../../src/local/cluster.ts";
import type { InstallMethod } from "../../../src/local/installed/install-method.ts";
import type { RunRecord } from "../../../src/procedures/run/run-record.ts";
import { startChartTool } from "../../support/chart-tool.ts";
import { acceptedLosses, aggregatedApiAnswers, applyChart } from "../../support/upgrade-scenario.ts";
import type { SweptProcedure } from "./procedures.ts";

const upgrade = (
  version: string,
  method: InstallMethod,
  more: Pick<SweptProcedure, "seed" | "programs"> = {},
): SweptProcedure => ({
  name: `upgrade from ${version} by ${method}`,
  cluster: { kind: "generic", nodes: 2, installed: { version, method, userEdits: true } },
  ...more,
  argv: ["upgrade", ...acceptedLosses(method)],
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
  { ...upgrade("v3.27", "manifest"), always: true },
  upgrade("v3.29", "manifest-canal"),
  upgrade("v3.29", "manifest-policy-only"),
  upgrade("v3.29", "manifest-etcd"),
  upgrade("v3.29", "manifest-canal-etcd"),
];

const LOOK_MS = 100;

/** The person vendorctl tells to run the chart tool: does so when told, and not while everything is taken back. */
function someoneUpgradesTheRelease(cluster: LocalCluster): void {
  const look = async (): Promise<void> => {
    if (await isTold(cluster)) await applyChart(cluster);
    setTimeout(() => void look().catch(() => {}), LOOK_MS).unref();
  };
  // Ends with the cluster, whose closed door is the last thing it sees.
  void look().catch(() => {});
}

/** A run that waits for them says so in its journal: the step is applied, which is to say told, and not yet confirmed. */
async function isTold({ client }: LocalCluster): Promise<boolean> {
  const labelSelector = "procedures.vendor.io/part=record";
  const { items } = await client.list<Journalled>(SECRETS, { namespace: "kube-system", labelSelector });
  return items.some(({ data }) => {
    const { heading, steps } = JSON.parse(Buffer.from(data["record"] ?? "", "base64").toString()) as RunRecord;
    return heading === "forward" && steps.some(({ id, state }) => id === "chart" && state === "applied");
  });
}

type Journalled = KubeObject & { data: Record<string, string> };

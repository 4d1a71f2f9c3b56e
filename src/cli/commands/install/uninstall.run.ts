import type { ClusterKind } from "../../../api/tables/cluster-kinds.ts";
import { CHART_TOOL } from "../../../procedures/plans/install/install-operator.ts";
import { planUninstall } from "../../../procedures/plans/install/uninstall.ts";
import type { Session } from "../../session.ts";
import { toolConnection } from "../../tool-connection.ts";
import type { ProcedureFlags } from "../runs/procedure.flags.ts";
import { runProcedure } from "../runs/run-procedure.ts";
import { readRelease } from "./install.run.ts";

interface UninstallFlags extends ProcedureFlags {
  kind?: ClusterKind;
  removeCrds?: true;
}

export async function uninstall(session: Session, flags: UninstallFlags): Promise<void> {
  const { kind, removeCrds } = flags;
  await runProcedure(session, flags, {
    procedure: "uninstall",
    ...(kind && { kind }),
    makePlan: async (observation, { command, files, tools }) => {
      const { manifests } = observation.names;
      return planUninstall(observation, {
        removeCrds: Boolean(removeCrds),
        files: {
          definitions: await readRelease(files, manifests.operatorCrds),
          operator: await readRelease(files, manifests.operator),
        },
        connection: toolConnection(session),
        chartTool: (await tools.find(CHART_TOOL)) !== undefined,
        command,
      });
    },
    next: ["vendorctl history"],
  });
}

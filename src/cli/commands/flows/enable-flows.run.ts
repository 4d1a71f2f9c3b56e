import { planDisableFlows, planEnableFlows } from "../../../procedures/plans/install/flows.ts";
import type { Session } from "../../session.ts";
import type { ProcedureFlags } from "../runs/procedure.flags.ts";
import { runProcedure } from "../runs/run-procedure.ts";

export async function enableFlows(session: Session, flags: ProcedureFlags & { ui?: true }): Promise<void> {
  await runProcedure(session, flags, {
    procedure: "flows",
    makePlan: (observation, { command }) => planEnableFlows(observation, { ui: flags.ui ?? false, command }),
  });
}

export async function disableFlows(session: Session, flags: ProcedureFlags): Promise<void> {
  await runProcedure(session, flags, {
    procedure: "flows",
    makePlan: (observation, { command }) => planDisableFlows(observation, { command }),
  });
}

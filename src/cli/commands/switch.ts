import type { ClusterKind } from "../../api/cluster-kinds.ts";
import type { ApiAddress } from "../../procedures/plans/api-address.ts";
import type { DataplaneMode } from "../../procedures/plans/cluster-view.ts";
import { planSwitch } from "../../procedures/plans/switch.ts";
import type { ProcedureFlags } from "../procedure-flags.ts";
import { runProcedure } from "../run-procedure.ts";
import type { Session } from "../session.ts";

interface SwitchFlags extends ProcedureFlags {
  to: DataplaneMode;
  kind?: ClusterKind;
  apiServer?: ApiAddress;
  force?: true;
}

export async function switchDataplane(session: Session, flags: SwitchFlags): Promise<void> {
  const { to, kind, apiServer, force } = flags;
  await runProcedure(session, flags, {
    procedure: "switch",
    ...(kind && { kind }),
    dataplane: to,
    makePlan: (observation, { command }) =>
      planSwitch(observation, { to, command, ...(apiServer && { apiServer }), ...(force && { force }) }),
    next: ["vendorctl status", `vendorctl switch --to ${to === "BPF" ? "standard" : "BPF"}   # the way back`],
  });
}

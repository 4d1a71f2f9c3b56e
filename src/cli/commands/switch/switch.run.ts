import type { Dataplane } from "../../../api/dataplane.ts";
import type { ClusterKind } from "../../../api/tables/cluster-kinds.ts";
import type { ApiAddress } from "../../../procedures/plans/install/api-address.ts";
import { planSwitch } from "../../../procedures/plans/switch/switch.ts";
import { servingNodes } from "../../../procedures/serving-nodes.ts";
import type { Session } from "../../session.ts";
import type { ProcedureFlags } from "../runs/procedure.flags.ts";
import { runProcedure } from "../runs/run-procedure.ts";
import { refuseWavesTwice, type TrafficFlags, type WaveFlags, wavesInputs } from "./switch.flags.ts";

interface SwitchFlags extends ProcedureFlags, WaveFlags, TrafficFlags {
  to: Dataplane;
  kind?: ClusterKind;
  apiServer?: ApiAddress;
  force?: true;
}

export async function switchDataplane(session: Session, flags: SwitchFlags): Promise<void> {
  const { to, kind, apiServer, force } = flags;
  refuseWavesTwice(flags);
  await runProcedure(session, flags, {
    procedure: "switch",
    ...(kind && { kind }),
    dataplane: to,
    makePlan: async (observation, { command, client, signal }) => {
      const waves = await wavesInputs(flags, () => servingNodes(client, signal));
      return planSwitch(observation, {
        to,
        command,
        ...(apiServer && { apiServer }),
        ...(force && { force }),
        ...(waves && { waves }),
        ...(flags.canaryTraffic === "auto" && { budget: flags.budget }),
      });
    },
    next: ["vendorctl status", `vendorctl switch --to ${to === "BPF" ? "standard" : "bpf"}   # to switch back`],
  });
}

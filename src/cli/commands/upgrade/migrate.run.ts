import { join } from "node:path";
import { stateDirectory } from "../../../local/config.ts";
import { readInjectorMap } from "../../../procedures/migrations/injector-map.ts";
import { OwnerReferenceStore } from "../../../procedures/migrations/owner-reference-store.ts";
import { sidecarCarriers } from "../../../procedures/migrations/sidecar-carriers.ts";
import { planHostEndpoints } from "../../../procedures/plans/host-endpoints/host-endpoints.ts";
import { planOwnerReferences } from "../../../procedures/plans/migrations/migrate-owner-references.ts";
import { planSidecars } from "../../../procedures/plans/migrations/sidecars.ts";
import type { Session } from "../../session.ts";
import type { ProcedureFlags } from "../runs/procedure.flags.ts";
import { runProcedure } from "../runs/run-procedure.ts";

interface OwnerReferenceFlags extends ProcedureFlags {
  phase?: "before" | "after";
  saveTo?: string;
}

export async function ownerReferences(session: Session, flags: OwnerReferenceFlags): Promise<void> {
  const { phase, saveTo } = flags;
  const next = phase === "before" ? ["vendorctl migrate owner-references --phase after"] : ["vendorctl status"];
  await runProcedure(session, flags, {
    procedure: "migrate",
    owned: true,
    next,
    async makePlan(observation, { client, command }) {
      const saved = await new OwnerReferenceStore(client, observation.names).read();
      const { host, port } = observation.server;
      const file = saveTo ?? join(stateDirectory(), "owner-references", `${host}-${port}.json`);
      return planOwnerReferences(observation, { saved, file, command, ...(phase && { phase }) });
    },
  });
}

interface HostEndpointFlags extends ProcedureFlags {
  acceptPolicies?: true;
  deleteTemporaryPolicy?: true;
}

export async function hostEndpoints(session: Session, flags: HostEndpointFlags): Promise<void> {
  const { acceptPolicies = false, deleteTemporaryPolicy = false } = flags;
  await runProcedure(session, flags, {
    procedure: "migrate",
    makePlan: (observation, { command }) =>
      planHostEndpoints(observation, { acceptPolicies, deleteTemporaryPolicy, command }),
  });
}

export async function sidecars(session: Session, flags: ProcedureFlags & { meshVersion: string }): Promise<void> {
  const { meshVersion } = flags;
  await runProcedure(session, flags, {
    procedure: "migrate",
    async makePlan(observation, { client, files, command, signal }) {
      const map = await readInjectorMap(files, observation.names, meshVersion);
      const { carriers, bare } = await sidecarCarriers(client, observation.names, signal);
      return planSidecars(observation, { meshVersion, map, carriers, bare, command });
    },
  });
}

import { join } from "node:path";
import type { KubeObject } from "../../../api/object.ts";
import { CONFIG_MAPS } from "../../../cluster/kinds.ts";
import { stateDirectory } from "../../../local/config.ts";
import { undefinedIfNotFound } from "../../../procedures/actions/objects/target.ts";
import { findOldData, gatherDatastore } from "../../../procedures/migrations/gather-datastore.ts";
import { gatherManifest } from "../../../procedures/migrations/gather-manifest.ts";
import { gatherPublicManifest } from "../../../procedures/migrations/gather-public-manifest.ts";
import { keepMeshTemplates, readInjectorMap } from "../../../procedures/migrations/injector-map.ts";
import { OwnerReferenceStore } from "../../../procedures/migrations/owner-reference-store.ts";
import { sidecarCarriers } from "../../../procedures/migrations/sidecar-carriers.ts";
import { planHostEndpoints } from "../../../procedures/plans/host-endpoints/host-endpoints.ts";
import {
  planDropOldData,
  planMigrateDatastore,
} from "../../../procedures/plans/migrations/datastore/migrate-datastore.ts";
import {
  type EncapsulationTarget,
  planMigrateEncapsulation,
} from "../../../procedures/plans/migrations/encapsulation/migrate-encapsulation.ts";
import { planOwnerReferences } from "../../../procedures/plans/migrations/migrate-owner-references.ts";
import { errors as operatorErrors } from "../../../procedures/plans/migrations/operator/errors.ts";
import { planMigrateOperator } from "../../../procedures/plans/migrations/operator/migrate-operator.ts";
import { planMigratePublicOperator } from "../../../procedures/plans/migrations/public-operator/migrate-public-operator.ts";
import { planSidecars } from "../../../procedures/plans/migrations/sidecars.ts";
import { servingNodes } from "../../../procedures/serving-nodes.ts";
import { errors } from "../../errors.ts";
import type { Session } from "../../session.ts";
import type { ProcedureFlags } from "../runs/procedure.flags.ts";
import { runProcedure } from "../runs/run-procedure.ts";
import { refuseWavesTwice, type TrafficFlags, type WaveFlags, wavesInputs } from "../switch/switch.flags.ts";

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
      const released = await readInjectorMap(files, observation.names, meshVersion);
      const live = await client.get<KubeObject>(CONFIG_MAPS, released.metadata, { signal }).catch(undefinedIfNotFound);
      const map = keepMeshTemplates(released, live, observation.names);
      const { carriers, bare } = await sidecarCarriers(client, observation.names, signal);
      return planSidecars(observation, { meshVersion, map, carriers, bare, command });
    },
  });
}

interface EncapsulationFlags extends ProcedureFlags, TrafficFlags {
  to: EncapsulationTarget;
  pool?: string;
  force?: true;
}

export async function encapsulation(session: Session, flags: EncapsulationFlags): Promise<void> {
  const { to, pool, force, canaryTraffic, budget } = flags;
  await runProcedure(session, flags, {
    procedure: "migrate",
    makePlan: (observation, { command }) =>
      planMigrateEncapsulation(observation, {
        ...{ to, command },
        ...(pool !== undefined && { pool }),
        ...(force && { force }),
        ...(canaryTraffic === "auto" && { budget }),
      }),
    next: ["vendorctl status", "vendorctl check"],
  });
}

interface OperatorFlags extends ProcedureFlags, WaveFlags, TrafficFlags {
  force?: true;
  acceptLoss?: string[];
}

export async function operator(session: Session, flags: OperatorFlags): Promise<void> {
  const { force, acceptLoss, canaryTraffic, budget } = flags;
  refuseWavesTwice(flags);
  await runProcedure(session, flags, {
    procedure: "migrate",
    async makePlan(observation, { command, client, files, tools, signal }) {
      if (observation.names.dialect === "calico") {
        refuseWaves(flags);
        const facts = await gatherPublicManifest(observation, { client, files, tools, signal });
        return planMigratePublicOperator(observation, facts, {
          command,
          ...(force && { force }),
          ...(acceptLoss && { acceptLoss }),
          ...(canaryTraffic === "auto" && { budget }),
        });
      }
      const facts = await gatherManifest(observation, { client, files, tools, signal });
      const waves = await wavesInputs(flags, () => servingNodes(client, signal));
      return planMigrateOperator(observation, facts, {
        command,
        ...(force && { force }),
        ...(waves && { waves }),
        ...(acceptLoss && { acceptLoss }),
        ...(canaryTraffic === "auto" && { budget }),
      });
    },
    next: ["vendorctl status", "vendorctl check"],
  });
}

/** The public operator has an order of its own. */
function refuseWaves({ waves, canary, waveSize }: WaveFlags): void {
  const [given] = [
    canary !== undefined && "--canary",
    waveSize !== undefined && "--wave-size",
    !waves && "--no-waves",
  ].filter((flag) => typeof flag === "string");
  if (given) throw operatorErrors.MIGRATE_OPERATOR_ONE_BY_ONE(given);
}

interface DatastoreFlags extends OperatorFlags {
  dropOldData?: true;
}

export async function datastore(session: Session, flags: DatastoreFlags): Promise<void> {
  const { force, acceptLoss, canaryTraffic, budget, dropOldData } = flags;
  refuseWavesTwice(flags);
  refuseOfMoving(flags);
  await runProcedure(session, flags, {
    procedure: "migrate",
    async makePlan(observation, { command, client, files, tools, signal }) {
      if (dropOldData) return planDropOldData(observation, findOldData(observation), { command });
      const facts = await gatherDatastore(observation, { client, files, tools, signal });
      const waves = await wavesInputs(flags, () => servingNodes(client, signal));
      return planMigrateDatastore(observation, facts, {
        command,
        ...(force && { force }),
        ...(waves && { waves }),
        ...(acceptLoss && { acceptLoss }),
        ...(canaryTraffic === "auto" && { budget }),
      });
    },
    next: ["vendorctl status", "vendorctl check"],
  });
}

/** Nothing moves where old data is dropped: a flag for that would do nothing. */
function refuseOfMoving({ dropOldData, waves, canary, waveSize, force, acceptLoss }: DatastoreFlags): void {
  if (!dropOldData) return;
  const [given] = [
    canary !== undefined && "--canary",
    waveSize !== undefined && "--wave-size",
    !waves && "--no-waves",
    force && "--force",
    acceptLoss && "--accept-loss",
  ].filter((flag) => typeof flag === "string");
  if (given) throw errors.USAGE(`${given} and --drop-old-data exclude each other`, "omit one of them");
}

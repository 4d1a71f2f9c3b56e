import { calicoNames, type Names, vendorNames } from "../../api/names.ts";
import { ENDPOINT_SLICES, LEASES, PODS, REPLICA_SETS, SECRETS } from "../../cluster/kinds.ts";
import type { Plan } from "../plan.ts";
import type { Engine } from "../run/engine.ts";
import { kindLookup } from "./object-rights.ts";
import { observationRights, ownedRights } from "./observation-rights.ts";
import { type Right, rightsOn } from "./right.ts";
import { stepRights } from "./step-rights.ts";

type Reading = Pick<Engine, "client" | "files" | "signal">;

/** What making a plan needs, running it, and undoing it. */
export interface PlanRights {
  read: Right[];
  run: Right[];
  undo: Right[];
}

/** From the steps of the plan, so that what a plan does and what it asks for are one thing. */
export async function planRights(plan: Plan, reading: Reading): Promise<PlanRights> {
  const names = namesOf(plan);
  const context = { names, kindOf: await kindLookup(reading.client, names) };
  const run: Right[] = journalRights();
  const undo: Right[] = journalRights();
  for (const step of plan.steps) {
    const rights = await stepRights(step, context, reading);
    run.push(...rights.run);
    undo.push(...(rights.undo ?? []));
  }
  return { read: planningRights(plan, names), run, undo };
}

export const namesOf = ({ names }: Pick<Plan, "names">): Names => (names === "calico" ? calicoNames : vendorNames);

/** The Secrets of the journal have the id of their run in their name, so the rights cannot be limited to names. */
function journalRights(): Right[] {
  const namespace = vendorNames.namespaces.orchestratorSystem;
  const lease = { namespace, name: "vendorctl" };
  return [
    ...rightsOn(SECRETS, ["list", "create", "update", "deletecollection"], { namespace }),
    ...rightsOn(SECRETS, ["get"], { namespace, sometimes: "if a run is resumed or rolled back" }),
    ...rightsOn(LEASES, ["create"], { namespace, sometimes: "at the first run" }),
    ...rightsOn(LEASES, ["get", "update"], lease),
    ...rightsOn(LEASES, ["list", "watch"], { ...lease, sometimes: "if another vendorctl has the Lease" }),
  ];
}

/** Nodes that serve come after others that do not. */
const IN_WAVES: readonly Plan["procedure"][] = ["switch", "upgrade", "migrate"];

/** What is read before there is a plan. */
function planningRights({ procedure, observed }: Plan, names: Names): Right[] {
  const owned = observed["owner references"] !== undefined && observed["owner references"] !== "not read";
  const charted = observed["chart release"] !== undefined && observed["chart release"] !== "none";
  return [
    ...observationRights(names),
    ...(owned ? ownedRights() : []),
    ...(charted ? rightsOn(SECRETS, ["list"], { namespace: names.namespaces.operator }) : []),
    ...(IN_WAVES.includes(procedure) ? rightsOn(ENDPOINT_SLICES, ["list"], { sometimes: "for waves" }) : []),
    ...(procedure === "migrate"
      ? [PODS, REPLICA_SETS].flatMap((kind) => rightsOn(kind, ["get", "list"], { sometimes: "for sidecars" }))
      : []),
    ...(procedure === "migrate" && owned
      ? rightsOn(SECRETS, ["list"], { namespace: names.namespaces.orchestratorSystem })
      : []),
  ];
}

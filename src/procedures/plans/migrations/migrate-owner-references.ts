import { groupVersion } from "../../../api/object.ts";
import { parseVersion } from "../../../api/tables/version.ts";
import { hasGate, VERSION_GATES } from "../../../api/tables/version-gates.ts";
import { fingerprint } from "../../fingerprint.ts";
import { makePlan } from "../../make-plan.ts";
import { errors } from "../../migrations/errors.ts";
import type { Observation, OwnedThroughV3 } from "../../observation.ts";
import type { Plan, Step } from "../../plan.ts";
import { singleton } from "../cluster-view.ts";
import { waitOutsideStep } from "../steps.ts";
import { afterUpgrade, ownerReferenceSteps } from "./owner-references.ts";

export const PHASES = ["before", "after"] as const;

export interface OwnerReferenceInputs {
  /** One half only, if the two are run separately (default: both, with a wait for the upgrade by another tool in between). */
  phase?: (typeof PHASES)[number];
  /** What an earlier run saved in the cluster and has not restored. */
  saved: readonly OwnedThroughV3[];
  file?: string;
  command: string;
}

/** The rescue of owned objects around an upgrade that vendorctl does not do itself; `vendorctl upgrade` has it built in. */
export function planOwnerReferences(observation: Observation, inputs: OwnerReferenceInputs): Plan {
  const { names } = observation;
  const { phase, saved } = inputs;
  const owned = observation.owned ?? [];
  const crossed = hasChangedUids(observation);
  if (phase === "after" && saved.length === 0) throw errors.OWNER_REFERENCES_NONE_SAVED();
  if (phase === "after" && !crossed) throw errors.OWNER_REFERENCES_TOO_EARLY(observation.service.version ?? "");
  if (phase === "before" && crossed) throw errors.OWNER_REFERENCES_TOO_LATE(observation.service.version ?? "");
  const file = inputs.file === undefined ? {} : { file: inputs.file };
  const rescue = ownerReferenceSteps(owned, names, file);
  const before = crossed || phase === "after" ? [] : rescue.before;
  const rest = before.length > 0 || saved.length > 0 ? afterUpgrade(names, file) : [];
  const after =
    phase === "before" ? [] : crossed ? rest : [...(rest.length > 0 ? [upgradeStep(observation)] : []), ...rest];
  return makePlan({
    procedure: "migrate",
    names: names.dialect,
    title: titleOf(phase, before.length > 0 ? owned.length : saved.length),
    command: inputs.command,
    observed: fingerprint(observation),
    steps: [...before, ...after],
    notes: notesOf(observation, inputs, crossed),
  });
}

function hasChangedUids({ service }: Observation): boolean {
  const version = parseVersion(service.version ?? "");
  if (!version) throw errors.CLUSTER_VERSION_UNKNOWN(service.versionEvidence);
  return hasGate(version, "resourceUids");
}

function titleOf(phase: OwnerReferenceInputs["phase"], count: number): string {
  const references = `${count} owner reference${count === 1 ? "" : "s"}`;
  if (phase === "before") return `Remove ${references} to v3 resources before an upgrade`;
  if (phase === "after") return `Restore ${references} to v3 resources after an upgrade`;
  return `Keep ${references} to v3 resources over an upgrade`;
}

function upgradeStep({ names }: Observation): Step {
  const version = VERSION_GATES.resourceUids.version;
  const target = singleton(names, "clusterInformation", "stored");
  return waitOutsideStep(
    {
      id: "upgrade-elsewhere",
      title: `Upgrade with your own tool`,
      where: "your tool",
      because: VERSION_GATES.resourceUids.because,
      risk: "medium",
    },
    {
      tell: [
        `Upgrade the service to ${version} or later with your own tool now; this step waits until the cluster reports that version.`,
      ],
      until: [
        {
          target,
          path: names.fields.clusterVersion.split("."),
          matches: "^v?(3\\.(2[89]|[3-9][0-9]|[1-9][0-9]{2})\\b|[4-9]\\.)",
        },
      ],
    },
  );
}

function notesOf(
  { names, owned = [] }: Observation,
  { phase, saved, file }: OwnerReferenceInputs,
  crossed: boolean,
): string[] {
  const served = groupVersion(names.groups.served);
  if (owned.length === 0 && saved.length === 0) return [`No object is owned by a ${served} resource.`];
  return [
    ...(phase === "before"
      ? [
          `After the upgrade: ${names.dialect === "calico" ? "vendorctl --names calico" : "vendorctl"} migrate owner-references --phase after.`,
        ]
      : []),
    ...(crossed && phase === undefined && saved.length === 0
      ? [`The UIDs of v3 resources have changed already; ${owned.length} references have the new ones and stay.`]
      : []),
    ...(file === undefined
      ? []
      : [`Every reference is also written to ${file}: keep it until the upgrade is verified.`]),
  ];
}

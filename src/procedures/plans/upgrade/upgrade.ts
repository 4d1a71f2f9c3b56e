import type { KubeObject } from "../../../api/object.ts";
import type { CustomResourceDefinition } from "../../../api/schema/crd.ts";
import { VERSION_GATES } from "../../../api/tables/version-gates.ts";
import { nameOf, targetOf } from "../../actions/objects/target.ts";
import type { Budget } from "../../canary/budget.ts";
import { type CanaryChoice, chooseCanary, watchOf } from "../../canary/canary-plan.ts";
import { fingerprint } from "../../fingerprint.ts";
import { makePlan } from "../../make-plan.ts";
import type { MergedManifest } from "../../merge/merge-manifest.ts";
import type { Observation } from "../../observation.ts";
import type { Plan, Step } from "../../plan.ts";
import { ownerReferenceSteps } from "../migrations/owner-references.ts";
import { bothEnds, type WavesInputs } from "../node-waves.ts";
import { deleteObjectStep, type StepText, step } from "../steps.ts";
import { withCanary } from "../switch/canary-steps.ts";
import { type AgentWaves, agentWaves, hasAgents, heldObjects, holdAgentsStep } from "./agent-waves.ts";
import { inventoryOf, refuseUnknownLosses } from "./inventory.ts";
import { chartUpgradeStep } from "./upgrade-chart.ts";
import { errors } from "./upgrade-errors.ts";
import { upgradeComponents, upgradeImpact } from "./upgrade-impact.ts";
import { upgradeNotes } from "./upgrade-notes.ts";
import type { UpgradePath } from "./upgrade-path.ts";
import { agentsTarget, waitSteps } from "./upgrade-waits.ts";

/** A published file that is applied as it is. */
export interface PublishedRef {
  name: string;
  from: string;
  digest: string;
}

/** Fields of other managers, which become ours when the release is applied. */
export interface FieldTakeover {
  object: string;
  owner: string;
  fields: readonly string[];
}

/** What was read for an upgrade in addition to the observation. */
export interface UpgradeFacts {
  definitions: PublishedRef;
  /** The CRDs in it. */
  crds: readonly CustomResourceDefinition[];
  /** The file of the method with the person's edits, and where it came from. */
  merged?: Pick<MergedManifest, "edits" | "conflicts" | "comments" | "dropped" | "untaken"> & {
    file: string;
    from: string;
    digest: string;
    text: string;
    /** To apply: all but definitions, and Secrets that already hold what they should. */
    objects: readonly KubeObject[];
    editsFrom: string;
    /** What the running version published is not known: it was taken to be the new files with the old version. */
    baseGuessed?: true;
  };
  takeOvers: readonly FieldTakeover[];
  /** Managers whose fields become ours first, so that what the new release no longer has goes. */
  appliers: readonly string[];
  chart?: { tool: boolean; values: string; chart: string | undefined; connection: readonly string[] };
  /** The namespace the aggregated API had before v3.31 is there, and will not be needed. */
  oldApiServer: boolean;
  /** Definitions that still store objects in an older version. */
  behind: readonly string[];
}

export interface UpgradeRequest {
  command: string;
  /** What may be lost of the traffic that is measured meanwhile; not measured where it is left out. */
  budget?: Budget;
  /** Goes on though canary traffic fails before any change. */
  force?: boolean;
  /** One node first, then a few at a time; the DaemonSet's own roll-out where it is left out. */
  waves?: WavesInputs;
  /** Names of losses that were accepted. */
  acceptLoss?: readonly string[];
}

/** The specification's upgrade by the method the service was installed with. */
export function planUpgrade(
  observation: Observation,
  path: UpgradePath,
  facts: UpgradeFacts,
  request: UpgradeRequest,
): Plan {
  const { acceptLoss = [] } = request;
  refuseClashes(observation, facts);
  const inventory = inventoryOf(observation, facts.crds, { accepted: acceptLoss, from: path.from });
  refuseUnknownLosses(inventory, acceptLoss);
  const owned = path.gates.includes("resourceUids") ? (observation.owned ?? []) : [];
  const references = ownerReferenceSteps(owned, observation.names);
  const rollout = rolloutOf(observation, path, facts, request);
  const canary = canaryOf(observation, request, rollout);
  const watch = "inputs" in canary ? watchOf(canary.inputs) : undefined;
  const steps = [
    ...references.before,
    saveStep({ leavesAddresses: true }),
    // With etcd nothing is defined in the API.
    ...(observation.service.datastore === "etcd" ? [] : [definitionsStep(path, facts)]),
    ...(rollout && path.method !== "manifest" ? [holdAgentsStep(observation)] : []),
    ...(path.method === "chart"
      ? [chartUpgradeStep(observation, path, facts.chart!)]
      : applySteps(path, facts, rollout)),
    ...waitSteps(observation, path, facts.merged?.objects ?? [], rollout && { ...rollout, canary: watch }),
    ...(facts.oldApiServer ? [oldApiServerStep(observation)] : []),
    ...(facts.behind.length > 0 ? [storedVersionsStep(facts.behind)] : []),
    ...references.after,
  ];
  const components = upgradeComponents(observation, path, facts);
  return makePlan({
    procedure: "upgrade",
    names: observation.names.dialect,
    title: `Upgrade from ${path.from} to ${path.to}, by ${methodTitle(observation, path)}`,
    command: request.command,
    observed: fingerprint(observation),
    inventory,
    components,
    // What runs already is not restarted.
    ...(components.some(({ current, target }) => current !== target)
      ? { impact: upgradeImpact(observation, inventory) }
      : {}),
    ...withCanary({ steps, notes: upgradeNotes(observation, path, facts) }, canary),
  });
}

/** A manifest without the agents' DaemonSet has nothing to hold. */
function rolloutOf(
  observation: Observation,
  { method }: UpgradePath,
  { merged }: UpgradeFacts,
  { waves }: UpgradeRequest,
): AgentWaves | undefined {
  const workload = agentsTarget(observation, method);
  if (method === "manifest" && !hasAgents(merged?.objects ?? [], workload)) return undefined;
  return agentWaves(observation, workload, waves);
}

function canaryOf(
  observation: Observation,
  { budget, force }: UpgradeRequest,
  rollout: AgentWaves | undefined,
): CanaryChoice {
  if (budget === undefined) return { notMeasured: "--canary-traffic is off" };
  return chooseCanary(observation, { budget, first: bothEnds(rollout?.waves ?? []), ...(force && { force }) });
}

function methodTitle({ service }: Observation, { method }: UpgradePath): string {
  if (method !== "manifest") return method;
  return `manifest (${service.variant ?? "networking"}, ${service.datastore} datastore)`;
}

/** What only the person can decide stops the upgrade before anything is changed. */
function refuseClashes({ names }: Observation, { merged }: UpgradeFacts): void {
  if (!merged) return;
  const [untaken] = merged.untaken;
  if (untaken !== undefined) throw errors.UPGRADE_TAKE_UNKNOWN(untaken);
  if (merged.conflicts.length > 0) {
    throw errors.UPGRADE_EDITS_CLASH(
      merged.conflicts.map(({ path, why, base, theirs, ours }) => {
        const values = `published ${brief(base, path)}, yours ${brief(theirs, path)}, new ${brief(ours, path)}`;
        return `${path} (${why === "gone" ? "the new version no longer has it" : "both changed it"}: ${values})`;
      }),
    );
  }
  const { configMap, etcdEndpointsKey } = names.manifests;
  const settings = merged.objects.find(({ kind, metadata }) => kind === "ConfigMap" && metadata.name === configMap);
  const endpoints = (settings?.["data"] as Record<string, string> | undefined)?.[etcdEndpointsKey];
  if (endpoints !== undefined && (endpoints === "" || /<\w+>/.test(endpoints))) {
    throw errors.UPGRADE_ETCD_UNSET(etcdEndpointsKey, configMap);
  }
}

/** A value in a line; the contents of a Secret are never printed. */
export function brief(value: unknown, path: string): string {
  if (value === undefined) return "nothing";
  if (path.startsWith("Secret/")) return "(secret)";
  const text = JSON.stringify(value);
  return text.length > 120 ? `${text.slice(0, 117)}...` : text;
}

export function saveStep(inputs: { leavesAddresses?: true } = {}): Step {
  return step(
    "save-service",
    {
      id: "save-service",
      title: "Save the objects of the service",
      where: "the journal",
      because:
        "The new version changes objects that no step names; a rollback restores each of them. See docs/guide/upgrade.md#roll-back.",
    },
    inputs,
  );
}

function definitionsStep({ method }: UpgradePath, { definitions }: UpgradeFacts): Step {
  const { name, from, digest } = definitions;
  return step(
    "apply-manifest",
    {
      id: "definitions",
      title: "Apply the CRDs",
      where: `${name} (${from}, ${digest})`,
      because:
        method === "manifest"
          ? "CRDs come before their resources; server-side apply with force-conflicts takes over fields of earlier appliers. See docs/guide/upgrade.md#field-ownership."
          : "CRDs come first, because charts never upgrade them; server-side apply with force-conflicts takes over fields of earlier appliers. See docs/guide/upgrade.md#field-ownership.",
      risk: "low",
    },
    { file: name, from, digest, only: "CustomResourceDefinition" },
  );
}

function applySteps(
  { method }: UpgradePath,
  { merged, appliers, takeOvers }: UpgradeFacts,
  rollout: AgentWaves | undefined,
): Step[] {
  const { objects, file, from, digest, edits } = merged!;
  const where = `${file} (${from}, ${digest})`;
  // Secrets are applied only where they change, and then by whom they belong to.
  const adopted = objects.filter(({ kind }) => kind !== "Secret").map(targetOf);
  const adopt: StepText = {
    id: "adopt-fields",
    title: `Take over fields of earlier appliers`,
    where: `${adopted.length} objects of ${file}`,
    because: `Fields of ${appliers.join(" and ")} that the new version no longer has would stay otherwise, such as a second kind of probe. See docs/guide/upgrade.md#field-ownership.`,
  };
  const carried = edits.length === 0 ? "" : `, ${edits.length} ${edits.length === 1 ? "edit" : "edits"}`;
  const apply: StepText = {
    id: method === "operator" ? "operator" : "manifest",
    title: `Apply ${file}${carried}`,
    where,
    because:
      method === "operator"
        ? "The new operator follows its CRDs and rolls the new version out. See docs/guide/upgrade.md."
        : `The new manifest is applied with your edits, and ${rollout ? "the agents stay as they are until they are replaced" : "the DaemonSet replaces the agents one after another"}. See docs/guide/upgrade.md#your-edits.`,
    risk: "medium",
  };
  return [
    ...(appliers.length > 0 ? [step("adopt-fields", adopt, { objects: adopted, managers: [...appliers] })] : []),
    step("apply-objects", apply, {
      objects: rollout && method === "manifest" ? heldObjects(objects, rollout) : [...objects],
      takesOver: [...takeOvers],
    }),
  ];
}

function oldApiServerStep({ names }: Observation): Step {
  const target = { apiVersion: "v1", kind: "Namespace", name: names.namespaces.apiServerBeforeV331 };
  return deleteObjectStep(
    {
      id: "old-api-server",
      title: "Delete the old API server namespace",
      where: nameOf(target),
      because: `From ${VERSION_GATES.target.version} on the aggregated API server runs in ${names.namespaces.system} and answers from there.`,
      risk: "low",
    },
    { target },
  );
}

function storedVersionsStep(definitions: readonly string[]): Step {
  return step(
    "migrate-stored-versions",
    {
      id: "stored-versions",
      title: "Migrate the stored versions",
      where: definitions.join(", "),
      because: "A CRD cannot drop a version in which an object is still stored.",
      risk: "low",
    },
    { definitions: [...definitions] },
  );
}

import type { KubeObject } from "../../../api/object.ts";
import { parseVersion, sameLine } from "../../../api/tables/version.ts";
import { VERSION_GATES } from "../../../api/tables/version-gates.ts";
import type { Expectation } from "../../actions/objects/expectation.ts";
import { nameOf, type Target, targetOf } from "../../actions/objects/target.ts";
import type { Budget } from "../../canary/budget.ts";
import { chooseCanary } from "../../canary/canary-plan.ts";
import { fingerprint } from "../../fingerprint.ts";
import { makePlan } from "../../make-plan.ts";
import type { MergedManifest } from "../../merge/merge-manifest.ts";
import type { Observation } from "../../observation.ts";
import type { Plan, Step } from "../../plan.ts";
import { operatorTarget, singleton } from "../cluster-view.ts";
import { ownerReferenceSteps } from "../migrations/owner-references.ts";
import { deleteObjectStep, type StepText, step, waitForRolloutStep, waitForStatusStep } from "../steps.ts";
import { withCanary } from "../switch/canary-steps.ts";
import { chartUpgradeStep } from "./upgrade-chart.ts";
import { errors } from "./upgrade-errors.ts";
import { upgradeNotes } from "./upgrade-notes.ts";
import type { UpgradePath } from "./upgrade-path.ts";

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
}

/** The specification's upgrade by the method the service was installed with. */
export function planUpgrade(
  observation: Observation,
  path: UpgradePath,
  facts: UpgradeFacts,
  { command, budget }: UpgradeRequest,
): Plan {
  refuseClashes(observation, facts);
  const owned = path.gates.includes("resourceUids") ? (observation.owned ?? []) : [];
  const references = ownerReferenceSteps(owned, observation.names);
  const steps = [
    ...references.before,
    saveStep(),
    // With etcd nothing is defined in the API.
    ...(observation.service.datastore === "etcd" ? [] : [definitionsStep(path, facts)]),
    ...(path.method === "chart" ? [chartUpgradeStep(observation, path, facts.chart!)] : applySteps(path, facts)),
    ...waitSteps(observation, path),
    ...(facts.oldApiServer ? [oldApiServerStep(observation)] : []),
    ...(facts.behind.length > 0 ? [storedVersionsStep(facts.behind)] : []),
    ...references.after,
  ];
  const notes = upgradeNotes(observation, path, facts);
  const part = budget ? withCanary({ steps, notes }, chooseCanary(observation, { budget })) : { steps, notes };
  return makePlan({
    procedure: "upgrade",
    names: observation.names.dialect,
    title: `Upgrade from ${path.from} to ${path.to}, by ${methodTitle(observation, path)}`,
    command,
    observed: fingerprint(observation),
    ...part,
  });
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

function saveStep(): Step {
  return step(
    "save-service",
    {
      id: "save-service",
      title: "Save the objects of the service",
      where: "the journal",
      because:
        "The new version changes objects that no step names; a rollback restores each of them. See docs/guide/upgrade.md#roll-back.",
    },
    {},
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

function applySteps({ method }: UpgradePath, { merged, appliers, takeOvers }: UpgradeFacts): Step[] {
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
        : "The new manifest is applied with your edits, and the DaemonSet replaces the agents one after another. See docs/guide/upgrade.md#your-edits.",
    risk: "medium",
  };
  return [
    ...(appliers.length > 0 ? [step("adopt-fields", adopt, { objects: adopted, managers: [...appliers] })] : []),
    step("apply-objects", apply, { objects: [...objects], takesOver: [...takeOvers] }),
  ];
}

/** Until the new version runs and says so. */
function waitSteps(observation: Observation, path: UpgradePath): Step[] {
  const verify = verifyStep(observation, path);
  if (path.method === "manifest") return [...manifestWaits(observation), verify];
  const [operator, complete] = operatorWaits(observation);
  // Within a line the old operator's status of each part looks like the new one's: only the version shows whose it is.
  return isWithinLine(path) ? [operator, verify, complete] : [operator, complete, verify];
}

const isWithinLine = ({ from, to }: UpgradePath): boolean => sameLine(parseVersion(from)!, parseVersion(to)!);

/** Running, with the READY the specification names. */
function manifestWaits(observation: Observation): Step[] {
  const { names, service } = observation;
  const overlay = service.variant === "overlay";
  const namespace = service.nodeAgents?.metadata.namespace ?? names.namespaces.orchestratorSystem;
  const apps = { apiVersion: "apps/v1", namespace };
  const nodes: Target = {
    ...apps,
    kind: "DaemonSet",
    name: overlay ? names.workloads.overlayNode : names.workloads.node,
  };
  const controllers: Target = { ...apps, kind: "Deployment", name: names.workloads.kubeControllers };
  const { ready } = names;
  const wanted = service.datastore === "etcd" ? ready.etcdDatastore : overlay ? ready.overlay : ready.apiDatastore;
  const because =
    "A node agent is upgraded when its pod is Running and ready: 2/2 with the API datastore, 1/2 with etcd. See docs/guide/upgrade.md.";
  return [
    waitForRolloutStep(
      {
        id: "nodes-updated",
        title: `Wait for the node agents (READY ${wanted})`,
        where: nameOf(nodes),
        because,
        risk: "medium",
      },
      { workload: nodes, ready: wanted },
    ),
    waitForRolloutStep(
      { id: "controllers-updated", title: "Wait for the controllers", where: nameOf(controllers), because },
      { workload: controllers },
    ),
  ];
}

function operatorWaits({ names, service }: Observation): [operator: Step, complete: Step] {
  const { statuses, kinds } = names;
  const wanted = [
    statuses.network,
    ...(service.apiServer ? [statuses.apiServer] : []),
    ...(service.flowLogs ? [statuses.flowLogs] : []),
    ...(service.flowUI ? [statuses.flowUI] : []),
  ];
  return [
    waitForRolloutStep(
      {
        id: "operator-updated",
        title: "Wait for the new operator",
        where: nameOf(operatorTarget(names)),
        because: "The new operator rolls the new version out. See docs/guide/upgrade.md.",
      },
      { workload: operatorTarget(names) },
    ),
    waitForStatusStep(
      {
        id: "complete",
        title: "Wait for every component",
        where: `${kinds.status.kind} ${wanted.join(", ")}`,
        because:
          "The operator rolls the new version out and reports in its status when it is complete. See docs/guide/operator.md#status.",
        risk: "medium",
      },
      { statuses: wanted, fresh: true },
    ),
  ];
}

function verifyStep(observation: Observation, path: UpgradePath): Step {
  const { names, service } = observation;
  const { to, method } = path;
  const { major, minor, patch } = parseVersion(to)!;
  const line = `v${major}.${minor}`;
  // Within a line the old version is of it too, and would pass for the new one.
  const within = isWithinLine(path);
  const matches = within ? `^v?${major}\\.${minor}\\.${patch}$` : `^v?${major}\\.${minor}\\.`;
  const information: Expectation = {
    target: singleton(names, "clusterInformation", "stored"),
    path: names.fields.clusterVersion.split("."),
    matches,
  };
  const reported: Expectation = {
    target: singleton(names, "installation"),
    path: names.fields.statusVersion.split("."),
    matches,
  };
  const until: Expectation[] = [
    ...(method === "manifest" ? [] : [reported]),
    ...(service.datastore === "etcd" ? [agentsImage(observation, matches.replace("^", ":"))] : [information]),
  ];
  return step(
    "verify-version",
    {
      id: "verify-version",
      title: `Verify version ${within ? to : `${line}.x`}`,
      where: until.map(({ target }) => nameOf(target)).join(", "),
      because: `ClusterInformation must report ${line}.x. ${VERSION_GATES.target.because}`,
    },
    { until },
  );
}

/** With etcd the version is written there; what the API has of it is what the pods run. */
function agentsImage({ names, service }: Observation, matches: string): Expectation {
  const { namespace = names.namespaces.orchestratorSystem, name = names.workloads.node } =
    service.nodeAgents?.metadata ?? {};
  const target = { apiVersion: "apps/v1", kind: "DaemonSet", namespace, name };
  return { target, path: ["spec", "template", "spec", "containers", "0", "image"], matches };
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

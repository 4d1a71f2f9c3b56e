import type { KubeObject } from "../../../../api/object.ts";
import type { HoldAgentsInputs } from "../../../actions/nodes/hold-agents.ts";
import type { UpdateAgentsInputs } from "../../../actions/nodes/update-agents.ts";
import { nameOf, type Target, targetOf } from "../../../actions/objects/target.ts";
import type { CanaryWatch } from "../../../canary/canary-plan.ts";
import type { CarriedEdit } from "../../../merge/merge-manifest.ts";
import type { EtcdPlace } from "../../../migrations/datastore/etcd-place.ts";
import type { Observation } from "../../../observation.ts";
import type { Step } from "../../../plan.ts";
import { singleton } from "../../cluster-view.ts";
import { applyObjectsStep, type StepText, step, waitForRolloutStep } from "../../steps.ts";
import type { Found } from "../../upgrade/inventory.ts";
import { type FieldTakeover, type PublishedRef, saveStep } from "../../upgrade/upgrade.ts";
import { agentsTarget } from "../../upgrade/upgrade-waits.ts";
import { isRights, withBoth } from "./both-datastores.ts";

/** What was read in addition to the observation. */
export interface DatastoreFacts {
  etcd: EtcdPlace;
  /** Of etcd when the plan was made. */
  revision: number;
  /** Objects in etcd, by kind. */
  counts: Readonly<Record<string, number>>;
  /** Whether etcd's ClusterInformation says that the datastore is open. */
  ready: boolean;
  /** The file that was applied, and the one that takes its place. */
  file: string;
  target: string;
  /** Of the latter, with the edits, without CRDs. */
  objects: readonly KubeObject[];
  /** Those that are in the cluster now. */
  live: readonly KubeObject[];
  edits: readonly CarriedEdit[];
  definitions: PublishedRef;
  appliers: readonly string[];
  takeOvers: readonly FieldTakeover[];
  /** What the Kubernetes datastore or the other file does not carry. */
  found: readonly Found[];
  /** No CRD of ours is there yet. */
  fresh: boolean;
  /** Ids of objects that stay in etcd. */
  leave: readonly string[];
}

/** By its state the journal says whose lock a datastore has. */
export const LOCK_STEP = "lock";

export const GUIDE = "See docs/guide/migrate-datastore.md";

interface Moves {
  waves: readonly string[][];
  atOnce: number;
  canary: CanaryWatch | undefined;
}

/** The lock is held from the export until the last agent has switched, and no longer. */
export function migrateSteps(observation: Observation, facts: DatastoreFacts, moves: Moves): Step[] {
  return [
    saveStep(),
    definitionsStep(facts),
    rightsStep(facts),
    ...adoptSteps(facts),
    lockStep(facts),
    importStep(facts),
    holdStep(observation, moves),
    manifestStep(observation, facts),
    ...switchSteps(observation, moves),
    openStep(facts),
    ...controllersSteps(observation, facts),
    settingsStep(facts),
    verifyStep(observation),
    keepStep(facts),
  ];
}

function definitionsStep({ definitions: { name, from, digest } }: DatastoreFacts): Step {
  return step(
    "apply-manifest",
    {
      id: "definitions",
      title: "Apply the CRDs",
      where: `${name} (${from}, ${digest})`,
      because: `The Kubernetes datastore keeps resources as objects of these CRDs. Nothing reads them yet. ${GUIDE}#steps.`,
      risk: "low",
    },
    { file: name, from, digest, only: "CustomResourceDefinition" },
  );
}

/** Agents of both kinds run under the same accounts for a while. */
function rightsStep({ objects, live }: DatastoreFacts): Step {
  const rights = withBoth(objects.filter(isRights), live);
  return applyObjectsStep(
    {
      id: "rights",
      title: "Apply the rights of new agents",
      where: rights.map((object) => nameOf(targetOf(object))).join(", "),
      because: `Agents on the Kubernetes datastore read and write CRDs; those on etcd keep their rights meanwhile. ${GUIDE}#steps.`,
      risk: "low",
    },
    { objects: rights },
  );
}

function adoptSteps({ appliers, objects, target }: DatastoreFacts): Step[] {
  if (appliers.length === 0) return [];
  const adopted = objects.filter(({ kind }) => kind !== "Secret").map(targetOf);
  const said: StepText = {
    id: "adopt-fields",
    title: "Take over fields of earlier appliers",
    where: `${adopted.length} objects of ${target}`,
    because: `Fields of ${appliers.join(" and ")} that the new manifest has not would stay otherwise, such as variables for etcd. See docs/guide/upgrade.md#field-ownership.`,
  };
  return [step("adopt-fields", said, { objects: adopted, managers: [...appliers] })];
}

function lockStep({ etcd }: DatastoreFacts): Step {
  return step(
    "lock-datastore",
    {
      id: LOCK_STEP,
      title: "Lock etcd",
      where: `ClusterInformation default, datastoreReady: false, at ${etcd.endpoints.join(", ")}`,
      because: `From now on no address, policy or pool is written: new pods wait, and policy stays enforced. ${GUIDE}#the-lock.`,
      risk: "medium",
    },
    { etcd },
  );
}

function importStep({ etcd, leave, counts, fresh }: DatastoreFacts): Step {
  const objects = Object.values(counts).reduce((sum, count) => sum + count, 0) - leave.length;
  return step(
    "import-datastore",
    {
      id: "import",
      title: "Copy etcd to Kubernetes and compare",
      where: `${objects} objects, of one revision of etcd`,
      because: `Policies, pools, blocks, handles and settings keep their names and fields. Every object is compared. ${GUIDE}#steps.`,
      risk: "low",
    },
    { etcd, leave: [...leave], fresh },
  );
}

function holdStep(observation: Observation, { waves, atOnce }: Moves): Step {
  const workload = agentsTarget(observation, "manifest");
  const inputs: HoldAgentsInputs = {
    workload,
    nodes: waves.flat(),
    atOnce,
    ready: observation.names.ready.etcdDatastore,
  };
  return step(
    "hold-agents",
    {
      id: "hold-agents",
      title: "Hold the agents on etcd",
      where: nameOf(workload),
      because: `A node keeps its agent until vendorctl replaces it. A rollback replaces them in the reverse order. ${GUIDE}#steps.`,
      risk: "low",
    },
    inputs,
  );
}

/** All but the controllers, which come when the datastore is open, and rights, which are there. Agents on etcd still read its settings. */
function manifestStep(observation: Observation, facts: DatastoreFacts): Step {
  const { objects, live, target: file, takeOvers, edits, definitions } = facts;
  const carried = edits.length === 0 ? "" : `, ${edits.length} ${edits.length === 1 ? "edit" : "edits"}`;
  const workload = agentsTarget(observation, "manifest");
  const now = withBoth(
    objects.filter((object) => !isRights(object) && !isControllers(object)),
    live,
  ).map((object) => (isWorkload(object, workload) ? held(object) : object));
  return applyObjectsStep(
    {
      id: "manifest",
      title: `Apply ${file}${carried}`,
      where: `${file} (${definitions.from}, ${definitions.digest})`,
      because: `The DaemonSet gets its new template with your edits; no agent is replaced by this. ${GUIDE}#your-edits.`,
      risk: "medium",
    },
    { objects: now, takesOver: [...takeOvers] } as { objects: readonly KubeObject[] },
  );
}

const isControllers = ({ kind }: KubeObject) => kind === "Deployment";

const isWorkload = ({ kind, metadata }: KubeObject, target: Target) =>
  kind === target.kind && metadata.name === target.name;

function held(object: KubeObject): KubeObject {
  return { ...object, spec: { ...(object["spec"] as object), updateStrategy: { type: "OnDelete" } } };
}

function switchSteps(observation: Observation, { waves, atOnce, canary }: Moves): Step[] {
  const workload = agentsTarget(observation, "manifest");
  const { ready } = observation.names;
  const wanted = observation.service.variant === "overlay" ? ready.overlay : ready.apiDatastore;
  return waves.map((nodes, index) => {
    const first = index === 0 && waves.length > 1;
    const number = Math.max(1, index);
    const whom = first ? "the canary node" : `wave ${number} of ${Math.max(1, waves.length - 1)}`;
    const inputs: UpdateAgentsInputs = { workload, nodes, atOnce, ready: wanted, ...(canary && { canary }) };
    return step(
      "update-agents",
      {
        id: first ? "switch-canary" : `switch-wave-${number}`,
        title: `Switch the agents of ${whom}`,
        where: nodes.join(", "),
        because: `Agents on etcd and on Kubernetes read the same locked data; rules, routes and connections stay in the kernel. ${GUIDE}#steps.`,
        risk: "medium",
      },
      inputs,
    );
  });
}

function openStep({ etcd, leave, fresh, ready }: DatastoreFacts): Step {
  return step(
    "open-datastore",
    {
      id: "open",
      title: "Open the Kubernetes datastore",
      where: "ClusterInformation default, datastoreReady: true; etcd stays locked, marked as moved",
      because: `Every agent reads it now: pods that waited start, and policies can be changed. ${GUIDE}#the-lock.`,
      risk: "low",
    },
    { etcd, leave: [...leave], fresh, ready },
  );
}

function controllersSteps(observation: Observation, { objects }: DatastoreFacts): Step[] {
  const controllers = objects.filter(isControllers);
  const rollouts = controllers.map((object) => ({ workload: targetOf(object) }));
  const where = controllers.map((object) => nameOf(targetOf(object))).join(", ");
  const because = `They copied Kubernetes' objects to etcd until no agent read them there. ${GUIDE}#steps.`;
  if (controllers.length === 0) return [];
  return [
    applyObjectsStep(
      { id: "controllers", title: "Switch the controllers", where, because, risk: "low" },
      { objects: controllers, afterUndo: { rollouts } },
    ),
    ...rollouts.map((rollout) =>
      waitForRolloutStep(
        {
          id: `${rollout.workload.name}-ready`,
          title: "Wait for the controllers",
          where: nameOf(rollout.workload),
          because,
        },
        rollout,
      ),
    ),
    waitForRolloutStep(
      {
        id: "agents-ready",
        title: "Wait for the node agents",
        where: nameOf(agentsTarget(observation, "manifest")),
        because: `Nodes that joined meanwhile have one too. ${GUIDE}#steps.`,
      },
      { workload: agentsTarget(observation, "manifest") },
    ),
  ];
}

function settingsStep({ objects, target }: DatastoreFacts): Step {
  const last = objects.filter((object) => isRights(object) || ["ConfigMap", "DaemonSet"].includes(object.kind));
  return applyObjectsStep(
    {
      id: "settings",
      title: "Remove settings and rights for etcd",
      where: last.map((object) => nameOf(targetOf(object))).join(", "),
      because: `What is left is ${target} with your edits. ${GUIDE}#steps.`,
      risk: "low",
    },
    { objects: last },
  );
}

function verifyStep({ names, service }: Observation): Step {
  const { version = "" } = service;
  const target = singleton(names, "clusterInformation", "stored");
  const path = names.fields.clusterVersion.split(".");
  return step(
    "verify-version",
    {
      id: "verify-version",
      title: "Verify the datastore",
      where: nameOf(target),
      because: `ClusterInformation in the Kubernetes datastore has the version that etcd had. ${GUIDE}#steps.`,
    },
    { until: [{ target, path, matches: `^${version.replaceAll(".", "\\.")}$` }] },
  );
}

function keepStep({ etcd }: DatastoreFacts): Step {
  return step(
    "keep-old-data",
    {
      id: "keep-old-data",
      title: "Keep the old data",
      where: etcd.endpoints.join(", "),
      because: `A rollback needs it; it stays until it is dropped. ${GUIDE}#old-data.`,
    },
    { etcd },
  );
}

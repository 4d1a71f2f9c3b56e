import type { KubeObject } from "../../../../api/object.ts";
import type { MigrateByOperatorInputs } from "../../../actions/migrations/migrate-by-operator.ts";
import { nameOf, type Target, targetOf } from "../../../actions/objects/target.ts";
import type { CanaryWatch } from "../../../canary/canary-plan.ts";
import type { CarriedEdit } from "../../../merge/merge-manifest.ts";
import type { Observation } from "../../../observation.ts";
import type { Step } from "../../../plan.ts";
import { operatorTarget, unavailableAllowed } from "../../cluster-view.ts";
import { applyObjectsStep, step } from "../../steps.ts";
import { type PublishedRef, saveStep } from "../../upgrade/upgrade.ts";
import type { ManifestWorkload } from "../operator/manifest-view.ts";
import { verifyStep } from "../operator/migrate-steps.ts";
import { copiedRights, installationOf } from "../operator/objects.ts";
import type { PublicConversion } from "./convert-live.ts";
import type { LiveManifest } from "./live-manifest.ts";

/** What was read in addition to the observation. */
export interface PublicManifestFacts {
  /** The file that was applied. */
  file: string;
  /** Its objects, with the edits, without CRDs; and what the edits are. */
  objects: readonly KubeObject[];
  edits: readonly CarriedEdit[];
  live: LiveManifest;
  /** The address of the API server for agents, in the manifest's namespace. */
  endpointMap: KubeObject | undefined;
  definitions: PublishedRef;
  /** Of the operator's file. */
  operator: readonly KubeObject[];
}

const GUIDE = "See docs/guide/migrate-operator.md#calico-clusters";

interface Moves {
  nodes: readonly string[];
  canary: CanaryWatch | undefined;
}

/** Everything is made before the operator starts, and removed after it has ended. */
export function publicSteps(
  observation: Observation,
  facts: PublicManifestFacts,
  conversion: PublicConversion,
  moves: Moves,
): Step[] {
  return [
    keepRightsStep(facts),
    saveStep({ leavesAddresses: true }),
    definitionsStep(facts),
    ...pullSecretSteps(observation, facts, conversion),
    installationStep(observation, conversion),
    operatorStep(observation, facts, conversion),
    migrateStep(observation, facts, moves),
    removeStep(observation, facts),
    verifyStep(observation, GUIDE),
  ];
}

/** Of the agents and of their CNI plugin, which runs on nodes that have not moved. The operator rebinds both. */
const AGENTS_RIGHTS: readonly string[] = ["calico-node", "calico-cni-plugin"];
const RIGHTS: readonly string[] = ["ClusterRole", "ClusterRoleBinding"];

function keptRights({ objects }: PublicManifestFacts): KubeObject[] {
  return copiedRights(
    objects.filter(({ kind, metadata }) => RIGHTS.includes(kind) && AGENTS_RIGHTS.includes(metadata.name)),
  );
}

function keepRightsStep(facts: PublicManifestFacts): Step {
  const kept = keptRights(facts);
  return applyObjectsStep(
    {
      id: "keep-rights",
      title: "Keep the rights of the old agents",
      where: kept.map((object) => nameOf(targetOf(object))).join(", "),
      because: `The operator takes over ClusterRoles of the same names. Without copies, new pods get no network on a node that has not moved. ${GUIDE}.`,
    },
    { objects: kept },
  );
}

function definitionsStep({ definitions: { name, from, digest } }: PublicManifestFacts): Step {
  return step(
    "apply-manifest",
    {
      id: "definitions",
      title: "Apply the CRDs",
      where: `${name} (${from}, ${digest})`,
      because: `The operator and the Installation need their CRDs first. ${GUIDE}.`,
      risk: "low",
    },
    { file: name, from, digest, only: "CustomResourceDefinition" },
  );
}

function pullSecretSteps(
  { names }: Observation,
  { operator: published }: PublicManifestFacts,
  { installation }: PublicConversion,
): Step[] {
  const secrets = ((installation["imagePullSecrets"] ?? []) as { name: string }[]).map(({ name }) => name);
  if (secrets.length === 0) return [];
  const { orchestratorSystem, operator } = names.namespaces;
  const because = `The operator reads Secrets to pull images with in its own namespace. ${GUIDE}.`;
  return [
    applyObjectsStep(
      { id: "operator-namespace", title: "Create the operator's namespace", where: `Namespace ${operator}`, because },
      { objects: published.filter(({ kind }) => kind === "Namespace") },
    ),
    step(
      "copy-secrets",
      { id: "pull-secrets", title: "Copy the pull Secrets", where: secrets.join(", "), because },
      { from: orchestratorSystem, to: operator, names: secrets },
    ),
  ];
}

function installationStep({ names }: Observation, { installation }: PublicConversion): Step {
  const object = installationOf(installation as never, names);
  return applyObjectsStep(
    {
      id: "custom-resources",
      title: "Create the Installation",
      where: nameOf(targetOf(object)),
      because: `It has what the operator's conversion leaves out: where images come from, who may pull them, where controllers run. ${GUIDE}.`,
      risk: "low",
    },
    { objects: [object], letGo: true },
  );
}

/** Its Deployment has no replicas: the step that starts it can then undo what it does. */
function operatorStep(
  { names }: Observation,
  { operator, endpointMap }: PublicManifestFacts,
  { installation, ebpf }: PublicConversion,
): Step {
  const { imagePullSecrets } = installation;
  const map = endpointMap &&
    !ebpf && {
      ...{ apiVersion: "v1", kind: "ConfigMap", data: endpointMap["data"] },
      metadata: { name: names.endpointMap.name, namespace: names.namespaces.operator },
    };
  const objects = operator.flatMap((object): KubeObject[] => {
    // With eBPF the operator makes it itself, and stops at one that is there.
    if (object.kind === "Namespace" && map) return [object, map as KubeObject];
    if (object.kind !== "Deployment") return [object];
    const { spec } = object as ManifestWorkload;
    const pod = { ...spec.template.spec, ...(imagePullSecrets ? { imagePullSecrets } : {}) };
    return [{ ...object, spec: { ...spec, replicas: 0, template: { ...spec.template, spec: pod } } } as KubeObject];
  });
  return applyObjectsStep(
    {
      id: "operator",
      title: "Install the operator, with 0 replicas",
      where: nameOf(operatorTarget(names)),
      because: `It starts in the next step, which can be rolled back. ${GUIDE}.`,
      risk: "low",
    },
    { objects },
  );
}

const daemonSet = (namespace: string, name: string): Target => ({
  ...{ apiVersion: "apps/v1", kind: "DaemonSet", namespace, name },
});

function migrateStep({ names, service }: Observation, _facts: PublicManifestFacts, { nodes, canary }: Moves): Step {
  const { orchestratorSystem, system } = names.namespaces;
  const inputs: MigrateByOperatorInputs = {
    operator: operatorTarget(names),
    from: daemonSet(orchestratorSystem, names.workloads.node),
    to: daemonSet(system, names.workloads.node),
    nodes,
    atOnce: unavailableAllowed(service.nodeAgents, nodes.length),
    statuses: [names.statuses.network, names.statuses.ipPools],
    ...(canary && { canary }),
  };
  return step(
    "migrate-by-operator",
    {
      id: "migrate-nodes",
      title: "Start the operator, which moves nodes",
      where: nodes.join(", "),
      because: `It converts the manifest, moves node after node by the label ${names.labels.nodeMigration}, and deletes the old agents. A rollback stops it, and moves the nodes back. ${GUIDE}.`,
      risk: "medium",
    },
    inputs,
  );
}

/** The operator deletes workloads only; roles of the same names are its own by now. */
function removeStep({ names }: Observation, facts: PublicManifestFacts): Step {
  const gone = ["DaemonSet", "Deployment", "Secret", ...RIGHTS];
  const { orchestratorSystem } = names.namespaces;
  const left = facts.objects.filter(
    ({ kind, metadata }) => metadata.namespace === orchestratorSystem && !gone.includes(kind),
  );
  const targets = [...keptRights(facts), ...left].map(targetOf);
  return step(
    "delete-objects",
    {
      id: "remove-manifest",
      title: "Delete what is left of the manifest",
      where: `${targets.length} objects`,
      because: `Nothing runs from them any more; the operator leaves them. ${GUIDE}.`,
      risk: "low",
    },
    { targets },
  );
}

import type { KubeObject } from "../../../../api/object.ts";
import { NODE_MIGRATION } from "../../../../api/protocol/node-migration.ts";
import { INSTALLED_RELEASE } from "../../../../api/tables/version-gates.ts";
import type { MoveAgentsInputs } from "../../../actions/nodes/move-agents.ts";
import { nameOf, type Target, targetOf } from "../../../actions/objects/target.ts";
import type { CanaryWatch } from "../../../canary/canary-plan.ts";
import type { CarriedEdit } from "../../../merge/merge-manifest.ts";
import type { Observation } from "../../../observation.ts";
import type { Step } from "../../../plan.ts";
import { operatorTarget, singleton, unavailableAllowed } from "../../cluster-view.ts";
import {
  applyObjectsStep,
  mergePatchStep,
  type StepText,
  step,
  waitForRolloutStep,
  waitForStatusStep,
} from "../../steps.ts";
import { type PublishedRef, saveStep } from "../../upgrade/upgrade.ts";
import { agentsTarget } from "../../upgrade/upgrade-waits.ts";
import type { Conversion } from "./convert-manifest.ts";
import { installationOf, keptRights, operatorObjects, overlayDaemonSet, removedTargets } from "./objects.ts";

/** What was read in addition to the observation. */
export interface ManifestFacts {
  /** The file that was applied. */
  file: string;
  /** Its objects, with the edits, without CRDs; and what the edits are. */
  objects: readonly KubeObject[];
  edits: readonly CarriedEdit[];
  definitions: PublishedRef;
  /** Of the operator's file. */
  operator: readonly KubeObject[];
}

export const GUIDE = "See docs/guide/migrate-operator.md";

interface Moves {
  waves: readonly string[][];
  canary: CanaryWatch | undefined;
}

/** Everything is made before the first node moves, and removed after the last. */
export function migrateSteps(
  observation: Observation,
  facts: ManifestFacts,
  conversion: Conversion,
  moves: Moves,
): Step[] {
  const { names } = observation;
  const overlay = overlayDaemonSet(observation);
  return [
    keepRightsStep(observation, facts),
    saveStep({ leavesAddresses: true }),
    ...holdSteps(observation, moves),
    definitionsStep(facts),
    ...configurationSteps(observation, conversion),
    ...pullSecretSteps(observation, facts, conversion),
    ...(overlay ? [overlayStep(overlay)] : []),
    stopControllersStep(observation),
    customResourceStep(observation, conversion),
    operatorStep(observation, facts, conversion),
    waitForRolloutStep(
      {
        id: "operator-ready",
        title: "Wait for the operator",
        where: nameOf(operatorTarget(names)),
        because: `It prepares everything, and starts no agent where one of the manifest runs. ${GUIDE}.`,
      },
      { workload: operatorTarget(names) },
    ),
    renderedStep(observation),
    ...moveSteps(observation, moves, overlay),
    completeStep(observation),
    removeStep(observation, facts),
    verifyStep(observation, `${GUIDE}#steps`),
  ];
}

/** The operator binds the same ClusterRoles to accounts of its own: without these, the old agents would lose their rights at that moment. */
function keepRightsStep(observation: Observation, { objects }: ManifestFacts): Step {
  const kept = keptRights(objects, observation.names);
  return applyObjectsStep(
    {
      id: "keep-rights",
      title: "Keep the rights of the old agents",
      where: kept.map((object) => nameOf(targetOf(object))).join(", "),
      because: `The operator takes over ClusterRoles of the same names, and the old agents need theirs until the last is gone. ${GUIDE}#steps.`,
    },
    { objects: kept },
  );
}

function holdSteps(observation: Observation, { waves }: Moves): Step[] {
  const { names } = observation;
  const workload = agentsTarget(observation, "manifest");
  const label = names.labels.nodeMigration;
  const because = `A node with the label ${label} keeps the agent of the manifest; one without gets the operator's. No agent is restarted by this. ${GUIDE}#steps.`;
  const held = { [label]: NODE_MIGRATION.before };
  return [
    step(
      "label-nodes",
      { id: "label-nodes", title: "Hold the nodes at the manifest", where: waves.flat().join(", "), because },
      { nodes: Object.fromEntries(waves.flat().map((node) => [node, held])) },
    ),
    mergePatchStep(
      { id: "hold-agents", title: "Hold the agents of the manifest", where: nameOf(workload), because, risk: "low" },
      {
        target: workload,
        patch: {
          spec: {
            updateStrategy: { type: "OnDelete", rollingUpdate: null },
            template: { spec: { nodeSelector: held } },
          },
        },
      },
    ),
  ];
}

function definitionsStep({ definitions: { name, from, digest } }: ManifestFacts): Step {
  return step(
    "apply-manifest",
    {
      id: "definitions",
      title: "Apply the CRDs",
      where: `${name} (${from}, ${digest})`,
      because: `The operator and the custom resources need their CRDs first. ${GUIDE}#steps.`,
      risk: "low",
    },
    { file: name, from, digest, only: "CustomResourceDefinition" },
  );
}

/** Agents of the manifest have these values already, from variables that win over the resource. */
function configurationSteps({ names }: Observation, { configuration }: Conversion): Step[] {
  if (Object.keys(configuration).length === 0) return [];
  const { apiVersion, kind, name } = singleton(names, "dataplaneConfiguration", "stored");
  return [
    applyObjectsStep(
      {
        id: "configuration",
        title: "Apply the DataplaneConfiguration",
        where: `${kind} ${name}: ${Object.keys(configuration).join(", ")}`,
        because: `Variables of the manifest become fields: the operator's agents have no variables of yours. ${GUIDE}#edits.`,
        risk: "low",
      },
      { objects: [{ apiVersion, kind, metadata: { name }, spec: configuration }] },
    ),
  ];
}

function pullSecretSteps({ names }: Observation, facts: ManifestFacts, { installation }: Conversion): Step[] {
  const secrets = (installation.imagePullSecrets ?? []).map(({ name }) => name);
  if (secrets.length === 0) return [];
  const { orchestratorSystem, operator } = names.namespaces;
  const because = `The operator reads Secrets to pull images with in its own namespace. ${GUIDE}#edits.`;
  const namespace = facts.operator.filter(({ kind }) => kind === "Namespace");
  return [
    applyObjectsStep(
      { id: "operator-namespace", title: "Create the operator's namespace", where: `Namespace ${operator}`, because },
      { objects: namespace },
    ),
    step(
      "copy-secrets",
      { id: "pull-secrets", title: "Copy the pull Secrets", where: secrets.join(", "), because },
      { from: orchestratorSystem, to: operator, names: secrets },
    ),
  ];
}

function overlayStep(overlay: KubeObject): Step {
  return applyObjectsStep(
    {
      id: "overlay",
      title: "Create the overlay's own DaemonSet",
      where: nameOf(targetOf(overlay)),
      because: `The overlay ran in the agents' pods. It stays, and comes to each node together with the operator's agent. ${GUIDE}#overlay.`,
      risk: "low",
    },
    { objects: [overlay] },
  );
}

function controllersTarget({ names }: Observation, namespace: string): Target {
  return { apiVersion: "apps/v1", kind: "Deployment", namespace, name: names.workloads.kubeControllers };
}

function stopControllersStep(observation: Observation): Step {
  const target = controllersTarget(observation, observation.names.namespaces.orchestratorSystem);
  return mergePatchStep(
    {
      id: "stop-controllers",
      title: "Set the old controllers to 0 replicas",
      where: nameOf(target),
      because: `Two sets of controllers would collect each other's addresses. Meanwhile pods keep theirs. ${GUIDE}#steps.`,
      risk: "low",
    },
    { target, patch: { spec: { replicas: 0 } }, afterUndo: { rollouts: [{ workload: target }] } },
  );
}

function customResourceStep(observation: Observation, { installation }: Conversion): Step {
  const object = installationOf(installation, observation.names);
  return applyObjectsStep(
    {
      id: "custom-resources",
      title: `Create the Installation`,
      where: nameOf(targetOf(object)),
      because: `It asks for what the manifest has: the same data plane, pools, addresses and settings. ${GUIDE}#edits.`,
      risk: "low",
    },
    { objects: [object], letGo: true },
  );
}

function operatorStep(observation: Observation, { operator }: ManifestFacts, { installation }: Conversion): Step {
  return applyObjectsStep(
    {
      id: "operator",
      title: "Install the operator",
      where: nameOf(operatorTarget(observation.names)),
      because: `It follows the Installation, so that a rollback removes it before what it reads. ${GUIDE}#steps.`,
      risk: "medium",
    },
    { objects: operatorObjects(operator, installation, observation) },
  );
}

const operatorAgents = ({ names }: Observation): Target => ({
  apiVersion: "apps/v1",
  kind: "DaemonSet",
  namespace: names.namespaces.system,
  name: names.workloads.node,
});

function renderedStep(observation: Observation): Step {
  const enough = operatorAgents(observation);
  return waitForStatusStep(
    {
      id: "agents-rendered",
      title: "Wait for the operator's DaemonSet",
      where: nameOf(enough),
      because: `It must exist before a node is left to it. ${GUIDE}#steps.`,
    },
    { statuses: [observation.names.statuses.network], enough },
  );
}

function moveSteps(observation: Observation, { waves, canary }: Moves, overlay: KubeObject | undefined): Step[] {
  const { nodeAgents } = observation.service;
  const from = agentsTarget(observation, "manifest");
  const to = [operatorAgents(observation), ...(overlay ? [targetOf(overlay)] : [])];
  const atOnce = unavailableAllowed(nodeAgents, waves.flat().length);
  return waves.map((nodes, index) => {
    const first = index === 0 && waves.length > 1;
    const whom = first ? "the canary node" : `wave ${Math.max(1, index)} of ${Math.max(1, waves.length - 1)}`;
    const said: StepText = {
      id: first ? "move-canary" : `move-wave-${Math.max(1, index)}`,
      title: `Switch the agents of ${whom}`,
      where: nodes.join(", "),
      because: `The old agent ends before the new one starts; rules, routes and connections stay in the kernel. ${GUIDE}#steps.`,
      risk: "medium",
    };
    const inputs: MoveAgentsInputs = { from, to, nodes, atOnce, ...(canary && { canary }) };
    return step("move-agents", said, inputs);
  });
}

function completeStep({ names }: Observation): Step {
  const statuses = [names.statuses.network, names.statuses.ipPools];
  return waitForStatusStep(
    {
      id: "complete",
      title: "Wait for every component",
      where: `${names.kinds.status.kind} ${statuses.join(", ")}`,
      because: `The manifest is removed when the operator reports that all it installed is available. See docs/guide/operator.md#status.`,
    },
    { statuses },
  );
}

function removeStep(observation: Observation, { objects }: ManifestFacts): Step {
  const targets = removedTargets(objects, observation);
  return step(
    "delete-objects",
    {
      id: "remove-manifest",
      title: "Delete the objects of the manifest",
      where: `${targets.length} objects in ${observation.names.namespaces.orchestratorSystem}`,
      because: `Nothing runs from them any more. ${GUIDE}#steps.`,
      risk: "medium",
    },
    { targets },
  );
}

/** `guide`: where the move is described. */
export function verifyStep({ names }: Observation, guide: string): Step {
  const target = singleton(names, "installation");
  const path = names.fields.statusVersion.split(".");
  return step(
    "verify-version",
    {
      id: "verify-version",
      title: `Verify the installed version`,
      where: nameOf(target),
      because: `The operator must report the release that the manifest had. ${guide}.`,
    },
    { until: [{ target, path, matches: `^${INSTALLED_RELEASE.replaceAll(".", "\\.")}$` }] },
  );
}

import type { KubeObject } from "../../../api/object.ts";
import type { UpdateAgentsInputs } from "../../actions/nodes/update-agents.ts";
import type { Expectation } from "../../actions/objects/expectation.ts";
import { nameOf, type Target } from "../../actions/objects/target.ts";
import type { CanaryWatch } from "../../canary/canary-plan.ts";
import { fieldAt } from "../../field-at.ts";
import type { Observation } from "../../observation.ts";
import type { Step } from "../../plan.ts";
import { atPath, singleton, unavailableAllowed } from "../cluster-view.ts";
import { linuxNodes, nodeWaves, refuseUnknownCanary, type WavesInputs } from "../node-waves.ts";
import { applyObjectsStep, mergePatchStep, step } from "../steps.ts";

/** The DaemonSet of the agents, which keeps every pod as it is, and the nodes in the order their agents are replaced. */
export interface AgentWaves {
  workload: Target;
  waves: readonly string[][];
  atOnce: number;
}

const ON_DELETE = { type: "OnDelete" };
const RULE =
  "A node keeps its agent until vendorctl replaces it, so one node runs the new version before the others follow. See docs/guide/upgrade.md#waves.";

/** Undefined where the DaemonSet replaces the agents by itself: no waves, or only one node. */
export function agentWaves(
  observation: Observation,
  workload: Target,
  inputs: WavesInputs | undefined,
): AgentWaves | undefined {
  const { service } = observation;
  const linux = linuxNodes(observation.nodes);
  refuseUnknownCanary(linux, inputs?.canary);
  const running = new Set(service.agents.map(({ node }) => node));
  const nodes = linux.filter(({ name }) => running.has(name));
  const standsStill = fieldAt(service.nodeAgents, "spec.updateStrategy.type") === ON_DELETE.type;
  if (nodes.length === 0 || (!standsStill && (inputs === undefined || nodes.length === 1))) return undefined;
  const waves = inputs ? nodeWaves(nodes, inputs) : [nodes.map(({ name }) => name)];
  return { workload, waves, atOnce: unavailableAllowed(service.nodeAgents, nodes.length) };
}

/** The operator writes the strategy into the DaemonSet together with the new template, so that no pod is replaced by it. */
export function holdAgentsStep({ names }: Pick<Observation, "names">): Step {
  const target = singleton(names, "installation");
  return mergePatchStep(
    {
      id: "hold-agents",
      title: "Hold the agents at their version",
      where: `${nameOf(target)} ${names.fields.nodeUpdateStrategy}`,
      because: RULE,
      risk: "low",
    },
    { target, patch: atPath(names.fields.nodeUpdateStrategy, { ...ON_DELETE, rollingUpdate: null }) },
  );
}

/** The manifest as it is applied first: all of it, with the DaemonSet held. */
export function heldObjects(objects: readonly KubeObject[], { workload }: AgentWaves): KubeObject[] {
  return objects.map((object) => {
    if (!isWorkload(object, workload)) return object;
    return { ...object, spec: { ...(object["spec"] as object), updateStrategy: ON_DELETE } };
  });
}

const isWorkload = ({ kind, metadata }: KubeObject, { name }: Target): boolean =>
  kind === "DaemonSet" && metadata.name === name;

/** Whether there is a DaemonSet to hold in the manifest. */
export function hasAgents(objects: readonly KubeObject[], workload: Target): boolean {
  return objects.some((object) => isWorkload(object, workload));
}

export function updateSteps(
  { workload, waves, atOnce }: AgentWaves,
  { ready, canary }: { ready?: string; canary?: CanaryWatch | undefined },
): Step[] {
  return waves.map((nodes, index) => {
    const first = index === 0;
    const whom = first ? "the canary node" : `wave ${index} of ${waves.length - 1}`;
    const inputs: UpdateAgentsInputs = { workload, nodes, atOnce, ...(ready && { ready }), ...(canary && { canary }) };
    return step(
      "update-agents",
      {
        id: first ? "update-canary" : `update-wave-${index}`,
        title: `Upgrade the agents of ${whom}`,
        where: nodes.join(", "),
        because: RULE,
        risk: "medium",
      },
      inputs,
    );
  });
}

/** Until the new operator has written the agents' new template: before that, a pod that is deleted comes back as it was. */
export function renderedStep({ service }: Observation, { workload }: AgentWaves): Step {
  const path = ["spec", "template", "spec", "containers", "0", "image"];
  const image = fieldAt(service.nodeAgents, "spec.template.spec.containers");
  const was = (image as { image?: string }[] | undefined)?.[0]?.image ?? "";
  const until: Expectation[] = [{ target: workload, path, matches: `^(?!${escaped(was)}$)` }];
  return step(
    "verify-version",
    {
      id: "agents-rendered",
      title: "Wait for the agents' new template",
      where: nameOf(workload),
      because: "The new operator writes it; no node follows yet. See docs/guide/upgrade.md#waves.",
    },
    { until },
  );
}

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

const RESTORED = {
  id: "release-agents",
  title: "Restore the update strategy",
  because: "Later changes roll out by themselves again. See docs/guide/upgrade.md#waves.",
} as const;

export function releaseAgentsStep({ names, service }: Observation): Step {
  const { nodeUpdateStrategy } = names.fields;
  const target = singleton(names, "installation");
  const was = fieldAt(service.installation, nodeUpdateStrategy) as Record<string, unknown> | undefined;
  return mergePatchStep(
    { ...RESTORED, where: `${nameOf(target)} ${nodeUpdateStrategy}` },
    { target, patch: atPath(nodeUpdateStrategy, was ? { type: null, rollingUpdate: null, ...was } : null) },
  );
}

export function releaseManifestStep(objects: readonly KubeObject[], { workload }: AgentWaves): Step {
  return applyObjectsStep(
    { ...RESTORED, where: `${nameOf(workload)} spec.updateStrategy` },
    { objects: objects.filter((object) => isWorkload(object, workload)) },
  );
}

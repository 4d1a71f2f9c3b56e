import type { Dataplane } from "../../../api/dataplane.ts";
import type { KubeObject } from "../../../api/object.ts";
import { isHold } from "../../../api/protocol/node-hold.ts";
import { fieldAt } from "../../field-at.ts";
import type { Observation, SeenNode } from "../../observation.ts";
import type { Step } from "../../plan.ts";
import { dataplaneTitle, isEbpfOn } from "../cluster-view.ts";
import { linuxNodes, nodeWaves, refuseUnknownCanary, type WavesInputs } from "../node-waves.ts";
import { errors } from "../plan-errors.ts";
import { step } from "../steps.ts";

/** The nodes that follow, in order; the first wave is one node. None where there is nothing to go through one after another. */
export function planWaves(observation: Observation, to: Dataplane, inputs: WavesInputs): string[][] {
  const linux = linuxNodes(observation.nodes);
  refuseUnknownCanary(linux, inputs.canary);
  refuseOverridden(observation, linux, to);
  const free = linux.filter(({ name }) => ownChoice(observation, name) === undefined);
  // Where the switch is turned already, those that an earlier one left behind are all that is left to do.
  const turned = isEbpfOn(observation) === (to === "BPF");
  const nodes = turned ? free.filter(({ name }) => isLeftHeld(observation, name)) : free;
  return nodes.length < (turned ? 1 : 2) ? [] : nodeWaves(nodes, inputs);
}

/** A node that its own configuration keeps on the other data plane would never follow, and the switch would never end. */
function refuseOverridden(observation: Observation, nodes: readonly SeenNode[], to: Dataplane): void {
  const kept = nodes.filter(({ name }) => ownChoice(observation, name) === (to !== "BPF"));
  if (kept.length === 0) return;
  const { kind } = observation.names.kinds.dataplaneConfiguration;
  throw errors.SWITCH_NODE_KEPT(kept.map(({ name }) => `${kind} node.${name}`).join(", "), dataplaneTitle(to));
}

/** The user's choice for this node alone. A hold that a switch left behind is not one. */
function ownChoice(observation: Observation, node: string): boolean | undefined {
  const own = configurationOf(observation, node);
  const value = isHold(own) ? undefined : fieldAt(own, observation.names.fields.ebpfEnabled);
  return typeof value === "boolean" ? value : undefined;
}

const isLeftHeld = (observation: Observation, node: string): boolean => isHold(configurationOf(observation, node));

function configurationOf({ service }: Observation, node: string): KubeObject | undefined {
  return service.nodeConfigurations.find(({ metadata }) => metadata.name === `node.${node}`);
}

/** All at once: one wave of all nodes that an earlier switch left held, so that none stays behind. */
export function leftHeld(observation: Observation): string[][] {
  const held = observation.nodes.map(({ name }) => name).filter((name) => isLeftHeld(observation, name));
  return held.length > 0 ? [held] : [];
}

const RULE =
  "A node leaves kube-proxy only after its agent has verified Services in eBPF, and one node shows that before the others follow. See docs/guide/switch.md#waves.";

/** Keeps every node on the data plane it has, whatever is asked for from now on. */
export function holdStep(observation: Observation, to: Dataplane, waves: readonly string[][]): Step {
  const nodes = waves.flat();
  return step(
    "hold-nodes",
    {
      id: "hold-nodes",
      title: "Hold the nodes on their data plane",
      where: `${observation.names.kinds.dataplaneConfiguration.kind} node.NAME ${observation.names.fields.ebpfEnabled}`,
      because: RULE,
      risk: "low",
    },
    { nodes, ebpf: to !== "BPF" },
  );
}

/** The one that says that the switch is turned: no node has followed yet. */
export function turnedStep({ names }: Observation, to: Dataplane): Step {
  return step(
    "prove-dataplane",
    {
      id: "dataplane-turned",
      title: `Wait for the operator to ${to === "BPF" ? "enable" : "disable"} eBPF`,
      where: `${names.kinds.dataplaneConfiguration.kind} ${names.singleton}`,
      because:
        "The operator rolls the change out; nodes that are held do not follow yet. See docs/guide/switch.md#waves.",
    },
    { to, nodes: [] },
  );
}

export function releaseSteps(
  to: Dataplane,
  waves: readonly string[][],
  canary: Readonly<Record<string, unknown>> | undefined,
): Step[] {
  return waves.map((nodes, index) => {
    const first = index === 0;
    const whom = first ? "the canary node" : `wave ${index} of ${waves.length - 1}`;
    return step(
      "release-nodes",
      {
        id: first ? "release-canary" : `release-wave-${index}`,
        title: `Switch ${whom} to ${to === "BPF" ? "eBPF" : "standard"}`,
        where: nodes.join(", "),
        because: RULE,
        risk: "medium",
      },
      { to, nodes, ebpfWas: to !== "BPF", ...(canary && { canary }) },
    );
  });
}

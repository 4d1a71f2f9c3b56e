import type { Dataplane } from "../../../api/dataplane.ts";
import type { KubeObject } from "../../../api/object.ts";
import { isHold } from "../../../api/protocol/node-hold.ts";
import { fieldAt } from "../../field-at.ts";
import type { Observation, SeenNode } from "../../observation.ts";
import type { Step } from "../../plan.ts";
import { dataplaneTitle, isEbpfOn } from "../cluster-view.ts";
import { errors } from "../plan-errors.ts";
import { step } from "../steps.ts";

/** How many nodes a wave has: so many, or a share of all, at least one. */
export type WaveSize = { nodes: number } | { percent: number };

export interface WavesInputs {
  /** The node that goes first and alone; chosen where it is left out. */
  canary?: string;
  size: WaveSize;
  /** Nodes on which pods of services run. */
  serving: readonly string[];
}

/** The nodes that follow, in order; the first wave is one node. None where there is nothing to go through one after another. */
export function planWaves(observation: Observation, to: Dataplane, inputs: WavesInputs): string[][] {
  const linux = observation.nodes.filter(({ operatingSystem }) => operatingSystem !== "windows");
  refuseUnknownCanary(linux, inputs.canary);
  refuseOverridden(observation, linux, to);
  const free = linux.filter(({ name }) => ownChoice(observation, name) === undefined);
  // Where the switch is turned already, those that an earlier one left behind are all that is left to do.
  const turned = isEbpfOn(observation) === (to === "BPF");
  const nodes = turned ? free.filter(({ name }) => isLeftHeld(observation, name)) : free;
  if (nodes.length < (turned ? 1 : 2)) return [];
  const [canary, ...others] = inOrder(nodes, inputs);
  const size = waveSize(inputs.size, nodes.length);
  const waves = [[canary as string]];
  for (let from = 0; from < others.length; from += size) waves.push(others.slice(from, from + size));
  return waves;
}

function waveSize(size: WaveSize, nodes: number): number {
  return "nodes" in size ? size.nodes : Math.max(1, Math.ceil((nodes * size.percent) / 100));
}

/** The canary, then nodes of workloads, then those of the control plane, which all others depend on. */
function inOrder(nodes: readonly SeenNode[], { canary, serving }: WavesInputs): string[] {
  const serves = new Set(serving);
  const sorted = [...nodes].sort(
    (a, b) => Number(a.controlPlane) - Number(b.controlPlane) || (a.name < b.name ? -1 : 1),
  );
  const chosen =
    canary ??
    (sorted.find(({ name, controlPlane, ready }) => !controlPlane && ready && serves.has(name)) ?? sorted[0])?.name;
  return [chosen ?? "", ...sorted.map(({ name }) => name).filter((name) => name !== chosen)];
}

function refuseUnknownCanary(nodes: readonly SeenNode[], canary: string | undefined): void {
  if (canary === undefined || nodes.some(({ name }) => name === canary)) return;
  throw errors.SWITCH_CANARY_UNKNOWN(canary, nodes.map(({ name }) => name).join(", "));
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

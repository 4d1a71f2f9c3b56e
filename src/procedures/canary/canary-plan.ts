import { isSimulatedNode } from "../../api/protocol/simulated-node.ts";
import type { Workload } from "../../api/workload-objects.ts";
import type { Observation, SeenNode } from "../observation.ts";
import type { Budget } from "./budget.ts";
import { clientNames } from "./canary-objects.ts";

/** All that the pods of a canary are made from. */
export type CanaryInputs = {
  /** Where it is: a server and two clients on each. */
  nodes: readonly { name: string; address: string }[];
  image: string;
  budget: Budget;
  /** Go on though traffic was not well before. */
  force?: true;
  /** The data plane changes: then the address that servers see may change on the paths for which data planes differ. */
  switches?: true;
};

/** The canary that runs meanwhile, as far as a step looks at it. */
export type CanaryWatch = { clients: readonly string[]; budget: Budget; switches?: true };

export function watchOf({ nodes, budget, switches }: CanaryInputs): CanaryWatch {
  return { clients: clientNames(nodes.length), budget, ...(switches && { switches }) };
}

/** Few enough to start quickly, enough for every way there is. */
const MOST_NODES = 3;

/** What the canary will be, or why there is none. */
export type CanaryChoice = { inputs: CanaryInputs } | { notMeasured: string };

/** `first` are nodes it should be on, in this order: the ones that change first and last. */
export function chooseCanary(
  observation: Observation,
  asked: { budget: Budget; force?: boolean; switches?: true; first?: readonly string[] },
): CanaryChoice {
  const { nodes, names, service } = observation;
  if (nodes.every(({ annotations }) => isSimulatedNode(annotations))) {
    return { notMeasured: "nodes are simulated" };
  }
  if (names.dialect === "calico") return { notMeasured: "the image of this cluster's agents has no probe" };
  const image = probeImage(service.nodeAgents as Workload | undefined, observation.tool.version);
  if (image === undefined) return { notMeasured: "the image of the node agents has no probe" };
  const places = preferred(nodes, asked.first ?? []).slice(0, MOST_NODES);
  if (places.length === 0) return { notMeasured: "no Linux node is ready" };
  const on = places.map(({ name, addresses }) => ({ name, address: addresses[0] as string }));
  const { budget, force, switches } = asked;
  return { inputs: { nodes: on, image, budget, ...(force && { force }), ...(switches && { switches }) } };
}

function preferred(nodes: readonly SeenNode[], first: readonly string[]): SeenNode[] {
  const fit = nodes.filter(
    ({ operatingSystem, ready, addresses }) => operatingSystem !== "windows" && ready && addresses.length > 0,
  );
  const rank = ({ name }: SeenNode) => (first.indexOf(name) + first.length + 1) % (first.length + 1);
  return [...fit].sort((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1));
}

/** The agents' own image, which is on every node already; older releases had one image per program. */
function probeImage(agents: Workload | undefined, version: string): string | undefined {
  const containers = (agents?.spec?.template?.spec?.containers ?? []) as { image?: string }[];
  const image = containers[0]?.image ?? "";
  return /(?:^|\/)[^/:@]*vendor:[^/:@]+$/.test(image) ? image.replace(/:[^/:]+$/, `:${version}`) : undefined;
}

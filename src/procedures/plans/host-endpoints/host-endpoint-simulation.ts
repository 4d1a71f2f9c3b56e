import type { KubeObject } from "../../../api/object.ts";
import { parseAddress } from "../../../kit/ip.ts";
import { CONTROL_PLANE, type Failsafes, isFailsafe } from "./control-plane-probes.ts";
import { applies, type Direction, type ReadPolicy, type ReadTier, readTiers, verdictOf } from "./policy-verdict.ts";
import type { Host, HostPacket } from "./rule-match.ts";

/** A node with the endpoint it will have, and the all-interfaces endpoints it has now. */
export interface SimulatedNode {
  name: string;
  addresses: readonly string[];
  controlPlane: boolean;
  /** Of the endpoint to come: the node's, with those that are moved to it. */
  labels: Readonly<Record<string, string>>;
  /** Labels of each all-interfaces endpoint it has now, and whether a profile lets through what no policy decides. */
  now: readonly { labels: Readonly<Record<string, string>>; hasProfile: boolean }[];
}

export interface SimulationInputs {
  nodes: readonly SimulatedNode[];
  policies: readonly KubeObject[];
  tiers: readonly KubeObject[];
  failsafes: Failsafes;
  apiServerPort: number;
}

/** A policy that acts on no endpoint of these nodes yet, and will. */
export interface BlockedPort {
  policy: string;
  tier: string;
  selector: string;
  directions: Direction[];
  /** What of the nodes' traffic it decides. */
  traffic: "local" | "local and forwarded" | "before translation" | "untracked";
  nodes: string[];
}

/** Something the control plane needs that would no longer get through. */
export interface BlockedTraffic {
  node: string;
  direction: Direction;
  what: string;
  protocol: "TCP" | "UDP";
  port: number;
  by: string;
}

export interface Simulation {
  bites: BlockedPort[];
  cuts: BlockedTraffic[];
  /** Nodes whose endpoint now closes what no policy allows, and whose new one, with its allow-all profile, does not. */
  opens: string[];
}

/** What current policies would do to the nodes themselves through automatic host endpoints. */
export function simulateHostEndpoints(inputs: SimulationInputs): Simulation {
  const tiers = readTiers(inputs.tiers, inputs.policies);
  return {
    bites: tiers.flatMap(({ policies }) => policies.flatMap((policy) => biteOf(policy, inputs.nodes))),
    cuts: cutsOf(tiers, inputs),
    opens: inputs.nodes
      .filter(({ now }) => now.length > 0 && now.every(({ hasProfile }) => !hasProfile))
      .map(({ name }) => name),
  };
}

function biteOf(policy: ReadPolicy, nodes: readonly SimulatedNode[]): BlockedPort[] {
  const bitten = nodes.filter(
    ({ labels, now }) => policy.selects(labels) && !now.some((endpoint) => policy.selects(endpoint.labels)),
  );
  if (bitten.length === 0) return [];
  const { name, tier, selector, directions } = policy;
  return [
    {
      policy: name,
      tier,
      selector,
      directions: [...directions],
      traffic: trafficOf(policy),
      nodes: bitten.map((node) => node.name),
    },
  ];
}

function trafficOf({ moment, forwards }: ReadPolicy): BlockedPort["traffic"] {
  if (moment === "untracked") return "untracked";
  if (moment === "preDNAT") return "before translation";
  return forwards ? "local and forwarded" : "local";
}

type Placed = SimulatedNode & { host: Host };

/** Each conversation of the control plane at both its ends, failsafe ports left out, because policy does not close them. */
function cutsOf(tiers: readonly ReadTier[], { nodes, failsafes, apiServerPort }: SimulationInputs): BlockedTraffic[] {
  const placed: Placed[] = nodes.map((node) => ({ ...node, host: hostOf(node) }));
  const among = { nodes: placed, controlPlane: placed.filter(({ controlPlane }) => controlPlane), anybody: undefined };
  return CONTROL_PLANE.flatMap(({ what, protocol, port: written, from, to }) => {
    const port = written === "apiServer" ? apiServerPort : written;
    const ends = [
      { direction: "Ingress" as const, at: among[to], peers: among[from] },
      { direction: "Egress" as const, at: among[from], peers: among[to] },
    ];
    return ends.flatMap(({ direction, at, peers }) =>
      (at ?? []).flatMap((node) => {
        const packet = { direction, protocol, port, self: node.host };
        const by = firstRefusal(tiers, failsafes, node, packet, peers);
        return by === undefined ? [] : [{ node: node.name, direction, what, protocol, port, by }];
      }),
    );
  });
}

/** A policy that decides nothing at this node in this direction refuses nothing; most nodes have none. */
function firstRefusal(
  tiers: readonly ReadTier[],
  failsafes: Failsafes,
  node: Placed,
  packet: Omit<HostPacket, "peer">,
  peers: readonly Placed[] | undefined,
): string | undefined {
  const decided = tiers.some(({ policies }) =>
    policies.some((policy) => applies(policy, node.labels, packet.direction)),
  );
  if (!decided) return undefined;
  const others = peers?.filter(({ name }) => name !== node.name).map(({ host }) => host) ?? (["anybody"] as const);
  for (const peer of others) {
    if (isFailsafe(failsafes, { ...packet, peer })) continue;
    const verdict = verdictOf(tiers, node.labels, { ...packet, peer });
    if (!verdict.allowed) return verdict.by;
  }
  return undefined;
}

function hostOf({ addresses, labels }: SimulatedNode): Host {
  return { addresses: addresses.flatMap((text) => parseAddress(text) ?? []), labels };
}

/** What a policy alone lets through: what is cut once it is gone and was not before, and who decides then. */
export interface PolicyReview {
  nodes: string[];
  cuts: BlockedTraffic[];
  /** Other policies that decide at those nodes; what they do not allow is closed once this one is gone. */
  others: string[];
}

export function reviewPolicy(inputs: SimulationInputs, isIt: (policy: KubeObject) => boolean): PolicyReview {
  const without = { ...inputs, policies: inputs.policies.filter((policy) => !isIt(policy)) };
  const [it] = readTiers(inputs.tiers, inputs.policies.filter(isIt)).flatMap(({ policies }) => policies);
  const nodes = inputs.nodes.filter(({ labels }) => it?.selects(labels));
  const before = new Set(simulateHostEndpoints(inputs).cuts.map(cutKey));
  const others = readTiers(without.tiers, without.policies)
    .flatMap(({ policies }) => policies)
    .filter((policy) => policy.moment === "normal" && nodes.some(({ labels }) => policy.selects(labels)));
  return {
    nodes: nodes.map(({ name }) => name),
    cuts: simulateHostEndpoints(without).cuts.filter((cut) => !before.has(cutKey(cut))),
    others: others.map(({ name }) => name),
  };
}

function cutKey({ node, direction, what, protocol, port }: BlockedTraffic): string {
  return [node, direction, what, protocol, port].join(" ");
}

import type { FlowKey, PolicyHit } from "../../api/protocol/flow.ts";
import { protocolNumber } from "../../api/tables/protocols.ts";
import type { Direction, HostEndpoint, Packet } from "../../calc/model.ts";
import type { ModelCopy } from "../../calc/model-copy.ts";
import { addressOf, isV4 } from "../../calc/nets.ts";
import type { Place } from "../../calc/policy/evaluate.ts";
import { type ExplainedStep, explain } from "../../calc/policy/explain.ts";
import { hostEndpointOf } from "../../calc/policy/hook-policy.ts";
import { policyHits } from "../../calc/policy/policy-hits.ts";
import type { ClusterObjects } from "./cluster-objects.ts";
import type { FlowPlace } from "./flow-places.ts";
import { nodeModel } from "./node-model.ts";

/** What the node of one end decides. */
export interface AskedEnd {
  direction: PolicyHit["direction"];
  place: FlowPlace;
  verdict: "Allow" | "Deny";
  /** What decided last, in the calculation's words: for what is no step. */
  because: string;
  steps: readonly ExplainedStep[];
  hits: readonly PolicyHit[];
}

const ECHO_REQUEST: Readonly<Record<number, number>> = { 1: 8, 58: 128 };

export function packetOf(
  { port, protocol }: Pick<FlowKey, "port" | "protocol">,
  from: FlowPlace,
  to: FlowPlace,
): Packet | undefined {
  const number = protocolNumber(protocol);
  if (number === undefined) return undefined;
  const icmpType = ECHO_REQUEST[number];
  return {
    ipVersion: isV4(from.address) ? 4 : 6,
    protocol: number,
    ...{ source: from.address, destination: to.address },
    ...(port === 0 ? {} : { destinationPort: port }),
    ...(icmpType === undefined ? {} : { icmpType }),
  };
}

/** Egress is asked on the node of the source, ingress on that of the destination, each as its agent would: also where the other end denies it. */
export function askNodes(objects: ClusterObjects, packet: Packet, from: FlowPlace, to: FlowPlace): AskedEnd[] {
  const addresses = [from.address, to.address];
  const models = new Map<string, ModelCopy>();
  const modelOf = (node: string) => {
    const known = models.get(node) ?? nodeModel(objects, node, addresses);
    models.set(node, known);
    return known;
  };
  const isOneNode = from.node === to.node;
  const ends: AskedEnd[] = [];
  if (from.node !== undefined) {
    const model = modelOf(from.node);
    const arrives = isOneNode ? placeIn(to) : uplinkOf(model, from.node);
    ends.push(askEnd(model, "egress", from, packet, { from: placeIn(from), to: arrives }));
  }
  if (to.node !== undefined) {
    const model = modelOf(to.node);
    const uplink = isOneNode ? NO_POLICY : uplinkOf(model, to.node);
    // A node reaches its own pods whatever policy says, and a pod itself.
    const isExempt = isOneNode && (from.at === "host" || from.pod === to.pod);
    ends.push(askEnd(model, "ingress", to, packet, { from: isExempt ? placeIn(from) : uplink, to: placeIn(to) }));
  }
  return ends;
}

const NO_POLICY: Place = { at: "interface", endpoint: undefined };

function askEnd(
  model: ModelCopy,
  end: Direction,
  place: FlowPlace,
  packet: Packet,
  path: { from: Place; to: Place },
): AskedEnd {
  const explained = explain(model, packet, path);
  const { denied } = explained;
  const direction = end === "egress" ? "Egress" : "Ingress";
  const verdict = denied?.end === end ? "Deny" : "Allow";
  return {
    ...{ direction, place, verdict, because: explained.verdict.because },
    steps: explained.steps.filter((step) => step.end === end),
    hits: policyHits(model, explained[end] ?? [], direction, verdict),
  };
}

function placeIn({ at, pod }: FlowPlace): Place {
  if (at === "workload" && pod !== undefined) return { at, id: pod };
  return at === "host" ? { at } : NO_POLICY;
}

/** Which interface leads to other nodes is known on the node alone: it is taken to be the one with an address of the node. */
function uplinkOf(model: ModelCopy, node: string): Place {
  const nets = model.nodes.get(node)?.addresses ?? [];
  const isNamed = ({ interfaceName, expectedIPs }: HostEndpoint) =>
    interfaceName !== null && interfaceName !== "*" && expectedIPs.some((net) => nets.includes(net));
  const named = [...model.hostEndpoints.values()].sort((a, b) => (a.id < b.id ? -1 : 1)).find(isNamed);
  const link = { name: "", addresses: nets.map(addressOf) };
  return { at: "interface", endpoint: named ?? hostEndpointOf(model, link) };
}

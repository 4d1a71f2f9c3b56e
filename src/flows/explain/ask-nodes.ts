import type { FlowKey, PolicyHit } from "../../api/protocol/flow.ts";
import { protocolNumber } from "../../api/tables/protocols.ts";
import type { DataplaneModel, Direction, HostEndpoint, Packet } from "../../calc/model.ts";
import type { ModelCopy } from "../../calc/model-copy.ts";
import { addressOf, isV4 } from "../../calc/nets.ts";
import { type Place, type Trace, trace } from "../../calc/policy/evaluate.ts";
import { type ExplainedStep, explain } from "../../calc/policy/explain.ts";
import { hostEndpointOf } from "../../calc/policy/hook-policy.ts";
import { policyHits } from "../../calc/policy/policy-hits.ts";
import type { ClusterObjects } from "./cluster-objects.ts";
import type { FlowPlace } from "./flow-places.ts";
import { nodeModel } from "./node-model.ts";

/** What the node of one end decides. */
export interface DecidedEnd {
  direction: PolicyHit["direction"];
  place: FlowPlace;
  verdict: "Allow" | "Deny";
  /** What decided last, in the calculation's words: for what is no step. */
  because: string;
  hits: readonly PolicyHit[];
}

/** And how it comes to that. */
export interface AskedEnd extends DecidedEnd {
  steps: readonly ExplainedStep[];
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

/** What one node is asked about a flow. */
export interface EndQuestion {
  end: Direction;
  node: string;
  from: FlowPlace;
  to: FlowPlace;
}

/** Egress is asked on the node of the source, ingress on that of the destination, each as its agent would: also where the other end denies it. */
export function endQuestions(from: FlowPlace, to: FlowPlace): EndQuestion[] {
  const egress = from.node === undefined ? [] : [{ end: "egress" as const, node: from.node, from, to }];
  const ingress = to.node === undefined ? [] : [{ end: "ingress" as const, node: to.node, from, to }];
  return [...egress, ...ingress];
}

export function askNodes(objects: ClusterObjects, packet: Packet, from: FlowPlace, to: FlowPlace): AskedEnd[] {
  const addresses = [from.address, to.address];
  const models = new Map<string, ModelCopy>();
  return endQuestions(from, to).map((question) => {
    const { node, end } = question;
    const model = models.get(node) ?? nodeModel(objects, node, addresses);
    models.set(node, model);
    const explained = explain(model, packet, pathOf(model, question));
    const steps = explained.steps.filter((step) => step.end === end);
    return { ...decided(model, question, explained), steps };
  });
}

/** The same without the reasons, which take longer to find than the verdict. */
export function decideEnd(model: DataplaneModel, packet: Packet, question: EndQuestion): DecidedEnd {
  return decided(model, question, trace(model, packet, pathOf(model, question)));
}

function decided(model: DataplaneModel, { end, from, to }: EndQuestion, traced: Trace): DecidedEnd {
  const direction = end === "egress" ? "Egress" : "Ingress";
  const verdict = traced.denied?.end === end ? "Deny" : "Allow";
  return {
    ...{ direction, place: end === "egress" ? from : to, verdict, because: traced.verdict.because },
    hits: policyHits(model, traced[end] ?? [], direction, verdict),
  };
}

const NO_POLICY: Place = { at: "interface", endpoint: undefined };

/** The way of the packet as the node of this end sees it. */
function pathOf(model: DataplaneModel, { end, node, from, to }: EndQuestion): { from: Place; to: Place } {
  const isOneNode = from.node === to.node;
  if (end === "egress") return { from: placeIn(from), to: isOneNode ? placeIn(to) : uplinkOf(model, node) };
  // A node reaches its own pods whatever policy says, and a pod itself.
  const isExempt = isOneNode && (from.at === "host" || from.pod === to.pod);
  if (isExempt) return { from: placeIn(from), to: placeIn(to) };
  return { from: isOneNode ? NO_POLICY : uplinkOf(model, node), to: placeIn(to) };
}

function placeIn({ at, pod }: FlowPlace): Place {
  if (at === "workload" && pod !== undefined) return { at, id: pod };
  return at === "host" ? { at } : NO_POLICY;
}

/** Which interface leads to other nodes is known on the node alone: it is taken to be the one with an address of the node. */
function uplinkOf(model: DataplaneModel, node: string): Place {
  const nets = model.nodes.get(node)?.addresses ?? [];
  const isNamed = ({ interfaceName, expectedIPs }: HostEndpoint) =>
    interfaceName !== null && interfaceName !== "*" && expectedIPs.some((net) => nets.includes(net));
  const named = [...model.hostEndpoints.values()].sort((a, b) => (a.id < b.id ? -1 : 1)).find(isNamed);
  const link = { name: "", addresses: nets.map(addressOf) };
  return { at: "interface", endpoint: named ?? hostEndpointOf(model, link) };
}

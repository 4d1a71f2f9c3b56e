import type { FlowEnd, FlowKey, PolicyHit } from "../../api/protocol/flow.ts";
import { orMake } from "../../calc/or-make.ts";
import { isPolicyReason } from "../explain/drop-reasons.ts";
import { pairText } from "../explain/flow-words.ts";
import { isKubernetesProtocol } from "../explain/rule-objects.ts";
import type { FlowSighting } from "../store/flow-store.ts";

/** What some flows come to, and when they were counted. */
export interface FlowSum {
  flows: number;
  connections: number;
  packets: number;
  bytes: number;
  since: number;
  until: number;
}

/** Flows that one rule would be for: of a workload, with one peer, on one port. */
export interface RulePair {
  direction: PolicyHit["direction"];
  own: FlowEnd;
  peer: FlowEnd;
  protocol: string;
  port: number;
  /** "shop/web to pay/db on TCP port 5432" */
  text: string;
  sum: FlowSum;
  /** Of a peer that is no workload, as far as they are known. */
  addresses: Set<string>;
  moreAddresses: boolean;
  /** A node that spoke to pods of its own. */
  isOwnNode: boolean;
}

export interface PairOptions {
  /** Whose workloads policies are made for; empty: all. */
  namespace: string;
  egress: boolean;
  /** The query says which verdicts: denied flows are meant too. */
  anyVerdict: boolean;
}

const BETWEEN_TURNS = 100;

/** Flows that no rule is made for, with the reason. */
export class LeftOut {
  readonly #found = new Map<string, { what: string; why: string; flows: number; connections: number }>();

  add(what: string, why: string, { flows, connections }: Pick<FlowSum, "flows" | "connections">): void {
    const entry = orMake(this.#found, `${what}\n${why}`, () => ({ what, why, flows: 0, connections: 0 }));
    entry.flows += flows;
    entry.connections += connections;
  }

  /** Those of most connections first. */
  all() {
    return [...this.#found.values()].sort((a, b) => b.connections - a.connections || (a.what < b.what ? -1 : 1));
  }
}

/** Pairs of flows; what cannot become a rule is left out. Yields now and then. */
export function* rulePairs(
  sightings: readonly FlowSighting[],
  options: PairOptions,
  left: LeftOut,
): Generator<void, RulePair[]> {
  const pairs = new Map<string, RulePair>();
  const ends = new EndNames();
  const countedAtBoth = new Set<string>();
  for (const [index, { key }] of sightings.entries()) {
    if (index % BETWEEN_TURNS === 0) yield;
    for (const direction of directionsOf(key)) countedAtBoth.add(`${direction} ${ends.pair(key)}`);
  }
  for (const [index, sighting] of sightings.entries()) {
    if (index % BETWEEN_TURNS === 0) yield;
    const { key } = sighting;
    const sum = { flows: 1, ...sighting.tally, since: sighting.since, until: sighting.until };
    const because = leftBecause(key, options);
    if (because) {
      left.add(pairText(key), because, sum);
      continue;
    }
    const directions = wantedDirections(key, options);
    for (const direction of directions) {
      const why = notForRules(key, direction);
      if (why) left.add(pairText(key), why, sum);
      else addPair(pairs, direction, sighting, sum, ends);
    }
    for (const direction of missingDirections(key, directions, options)) {
      const where = direction === "Ingress" ? "where it left" : "where it arrived";
      if (!countedAtBoth.has(`${direction} ${ends.pair(key)}`))
        left.add(pairText(key), `it was counted ${where} alone`, sum);
    }
  }
  return [...pairs.values()];
}

/** Ends as short names: of tens of thousands of flows most have the same. */
class EndNames {
  readonly #names = new WeakMap<FlowEnd, string>();

  of(end: FlowEnd): string {
    const known = this.#names.get(end);
    if (known !== undefined) return known;
    const name = endName(end);
    this.#names.set(end, name);
    return name;
  }

  pair({ from, to, protocol, port }: FlowKey): string {
    return `${this.of(from)} ${this.of(to)} ${protocol} ${port}`;
  }
}

/** The same for the same end, whatever labels it had. */
export function endName({ type, namespace, name, kind }: FlowEnd): string {
  return JSON.stringify([type, namespace, name, kind ?? ""]);
}

function addPair(
  pairs: Map<string, RulePair>,
  direction: PolicyHit["direction"],
  { key, sources, destinations, more }: FlowSighting,
  sum: FlowSum,
  ends: EndNames,
): void {
  const { from, to, protocol, port } = key;
  const [own, peer] = direction === "Egress" ? [from, to] : [to, from];
  const isOwnNode = direction === "Ingress" && peer.type === "Node" && peer.name === key.node;
  const text = `${direction} ${isOwnNode} ${ends.pair(key)}`;
  const pair = orMake(pairs, text, () => ({
    ...{ direction, own, peer, protocol, port, isOwnNode, text: pairText(key), moreAddresses: false },
    sum: { flows: 0, connections: 0, packets: 0, bytes: 0, since: sum.since, until: sum.until },
    addresses: new Set<string>(),
  }));
  addSum(pair.sum, sum);
  for (const address of direction === "Egress" ? destinations : sources) pair.addresses.add(address);
  if (more) pair.moreAddresses = true;
}

export function addSum(into: FlowSum, { flows, connections, packets, bytes, since, until }: FlowSum): void {
  into.flows += flows;
  into.connections += connections;
  into.packets += packets;
  into.bytes += bytes;
  into.since = Math.min(into.since, since);
  into.until = Math.max(into.until, until);
}

/** Where its rule is missing, of a denied flow; else where it was counted, each end once. */
function directionsOf({ reporter, verdict, policies }: FlowKey): PolicyHit["direction"][] {
  const denied = verdict === "Deny" ? policies.at(-1)?.direction : undefined;
  if (denied) return [denied];
  return reporter === "Source" ? ["Egress"] : reporter === "Destination" ? ["Ingress"] : ["Egress", "Ingress"];
}

function wantedDirections(key: FlowKey, options: PairOptions): PolicyHit["direction"][] {
  return directionsOf(key).filter((direction) => isAsked(key, direction, options));
}

/** Ends of workloads that a policy is asked for, and that did not count the flow. */
function missingDirections(
  key: FlowKey,
  counted: readonly PolicyHit["direction"][],
  options: PairOptions,
): PolicyHit["direction"][] {
  if (key.verdict === "Deny") return [];
  return (["Egress", "Ingress"] as const).filter((direction) => {
    const own = direction === "Egress" ? key.from : key.to;
    return own.type === "Workload" && isAsked(key, direction, options) && !counted.includes(direction);
  });
}

function isAsked(key: FlowKey, direction: PolicyHit["direction"], { namespace, egress }: PairOptions): boolean {
  const own = direction === "Egress" ? key.from : key.to;
  if (direction === "Egress" && !egress) return false;
  if (own.type === "HostEndpoint") return namespace === "";
  return own.type === "Workload" && (namespace === "" || own.namespace === namespace);
}

function leftBecause(key: FlowKey, { egress, anyVerdict }: PairOptions): string | undefined {
  if (key.verdict === "Allow") return undefined;
  if (!anyVerdict) return "it was denied: ask with verdict:deny to allow it";
  if (!isPolicyReason(key.reason)) return `no policy dropped it (${key.reason})`;
  if (!egress && directionsOf(key).every((direction) => direction === "Egress"))
    return "it was denied where it leaves: ask for egress too";
  return undefined;
}

function notForRules({ from, to, protocol, port }: FlowKey, direction: PolicyHit["direction"]): string | undefined {
  const [own, peer] = direction === "Egress" ? [from, to] : [to, from];
  if (own.type === "HostEndpoint") return "a host endpoint is protected by GlobalNetworkPolicies";
  if (peer.type === "HostEndpoint") return "a host endpoint has no addresses that are sure to stay";
  if (own.name === "" || peer.name === "") return "names were merged for want of memory";
  if (port === 0 && isKubernetesProtocol(protocol)) return "ports were merged for want of memory";
  return undefined;
}

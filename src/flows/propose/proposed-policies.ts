import type { KubeObject } from "../../api/object.ts";
import type { FlowEnd, PolicyHit } from "../../api/protocol/flow.ts";
import type { ProposalKind, ProposedPolicy, ProposedRule } from "../../api/protocol/flow-proposal.ts";
import { orMake } from "../../calc/or-make.ts";
import { nameOf } from "../explain/flow-words.ts";
import {
  allowRule,
  DEFAULT_TIER,
  type Fields,
  isKubernetesProtocol,
  kubernetesPeer,
  kubernetesRule,
  type Labels,
  policyObject,
  selectingPeer,
  selectorText,
} from "../explain/rule-objects.ts";
import { joinedPrefixes } from "./address-prefixes.ts";
import { type JoinedRule, joinedRules } from "./joined-rules.ts";
import { addSum, endName, type FlowSum, type LeftOut, type RulePair } from "./rule-pairs.ts";
import { labelsOf, type PodLabels, type WorkloadLabels } from "./workload-labels.ts";

/** A rule with more of them is for no one to read. */
const MOST_PREFIXES = 20;
/** In the line about a rule. */
const MOST_NAMES = 5;
const DNS_PROTOCOLS = ["TCP", "UDP"];

export interface PolicyOptions {
  kind: ProposalKind;
  addresses: boolean;
  /** Of pods of other namespaces labels are told only to who may list flows there. */
  sees(namespace: string): boolean;
  pods: PodLabels;
  /** Whether this is the cluster's resolver. */
  isResolver(end: FlowEnd, port: number): boolean;
}

/** What a rule can be about: workloads by their labels, a whole namespace, or prefixes. */
type Peer =
  | { is: "labels"; namespace: string; labels: Labels; name: string }
  | { is: "namespace"; namespace: string; name: string }
  | { is: "prefixes"; prefixes: readonly string[]; name: string };

/** One pair that has become part of a rule. */
interface Atom {
  peer: Peer;
  peerName: string;
  protocol: string;
  port: string;
  isDns: boolean;
  sum: FlowSum;
}

/** A policy for each workload. Yields now and then. */
export function* proposedPolicies(
  pairs: readonly RulePair[],
  options: PolicyOptions,
  left: LeftOut,
): Generator<void, ProposedPolicy[]> {
  const byOwn = new Map<string, RulePair[]>();
  for (const pair of pairs) orMake(byOwn, endName(pair.own), () => []).push(pair);
  const labels = yield* labelsByEnd(pairs, options);
  const policies: ProposedPolicy[] = [];
  const names = new Set<string>();
  for (const own of [...byOwn.keys()].sort()) {
    yield;
    const made = policyFor(byOwn.get(own)!, labels, names, options, left);
    if (made) policies.push(made);
  }
  return policies;
}

type LabelsByEnd = (end: FlowEnd) => WorkloadLabels;

/** Of all ends that may be named. Yields after each: a namespace may have thousands of workloads to tell one from. */
function* labelsByEnd(pairs: readonly RulePair[], { pods, sees }: PolicyOptions): Generator<void, LabelsByEnd> {
  const known = new Map<string, WorkloadLabels>();
  for (const { own, peer } of pairs) {
    for (const end of [own, peer]) {
      const name = endName(end);
      if (end.type !== "Workload" || known.has(name) || !sees(end.namespace)) continue;
      known.set(name, labelsOf(pods.get(end.namespace) ?? [], end));
      yield;
    }
  }
  return (end) => known.get(endName(end)) ?? { like: [] };
}

function policyFor(
  pairs: readonly RulePair[],
  labels: LabelsByEnd,
  names: Set<string>,
  options: PolicyOptions,
  left: LeftOut,
): ProposedPolicy | undefined {
  const { own } = pairs[0]!;
  const selected = labels(own);
  if ("like" in selected) {
    for (const { text, sum } of pairs) left.add(text, noLabels(own, selected.like), sum);
    return undefined;
  }
  const rules: Partial<Record<PolicyHit["direction"], readonly RuleWithSum[]>> = {};
  for (const direction of ["Ingress", "Egress"] as const) {
    const atoms = atomsOf(
      pairs.filter((pair) => pair.direction === direction),
      labels,
      options,
      left,
    );
    if (atoms.length > 0) rules[direction] = rulesOf(direction, own, atoms, options.kind);
  }
  const [first] = Object.values(rules);
  if (!first) return undefined;
  const object = policyObject({
    ...{ kubernetes: options.kind === "kubernetes", tier: DEFAULT_TIER },
    ...{ namespace: own.namespace, name: freeName(own, names), labels: selected.labels },
    rules: Object.fromEntries(
      Object.entries(rules).map(([direction, list]) => [direction, list.map(({ rule }) => rule)]),
    ),
  });
  const rested = Object.entries(rules).flatMap(([direction, list]) =>
    list.map(
      ({ text, sum }, index): ProposedRule => ({ path: `spec.${direction.toLowerCase()}[${index}]`, text, ...sum }),
    ),
  );
  return { object: object as unknown as KubeObject, rules: rested };
}

function freeName({ namespace, name, kind = "" }: FlowEnd, names: Set<string>): string {
  const short = `${name}-proposed`;
  const free = names.has(`${namespace}/${short}`) ? `${name}-${kind.toLowerCase()}-proposed` : short;
  names.add(`${namespace}/${free}`);
  return free;
}

function noLabels(end: FlowEnd, like: readonly string[]): string {
  if (like.length === 0) return `pods of ${nameOf(end)} have no labels that stay`;
  return `${nameOf(end)} has no labels that ${like.slice(0, 3).join(", ")} has not`;
}

function atomsOf(pairs: readonly RulePair[], labels: LabelsByEnd, options: PolicyOptions, left: LeftOut): Atom[] {
  const prefixes = prefixesByPort(pairs, options);
  return pairs.flatMap((pair): Atom[] => {
    const { peer: end, protocol, port, text, sum } = pair;
    const found =
      options.kind === "kubernetes" && !isKubernetesProtocol(protocol)
        ? `no rule of Kubernetes names ${protocol}: ask for policies of vendor`
        : peerOf(pair, prefixes.get(portName(pair)) ?? [], labels, options);
    if (typeof found === "string") {
      left.add(text, found, sum);
      return [];
    }
    const isDns = pair.direction === "Egress" && DNS_PROTOCOLS.includes(protocol) && options.isResolver(end, port);
    return byFamily(found, options.kind).flatMap((peer): Atom[] => {
      const atom = { peer, peerName: JSON.stringify(peer), protocol, port: portName(pair), isDns, sum };
      if (!isDns) return [atom];
      // Answers that are too long for UDP are asked for again by TCP.
      const other = DNS_PROTOCOLS.find((one) => one !== protocol)!;
      const nothing = { ...sum, flows: 0, connections: 0, packets: 0, bytes: 0 };
      return [atom, { ...atom, protocol: other, port: portName({ protocol: other, port }), sum: nothing }];
    });
  });
}

/** A set of ours is selected by its labels; its addresses may change. */
function hasSetLabels({ type, labels = {} }: FlowEnd, { kind }: PolicyOptions): boolean {
  return type === "NetworkSet" && kind === "vendor" && Object.keys(labels).length > 0;
}

function portName({ protocol, port }: Pick<RulePair, "protocol" | "port">): string {
  return `${protocol} ${String(port).padStart(5)}`;
}

/** Of all addresses on a port together. */
function prefixesByPort(pairs: readonly RulePair[], options: PolicyOptions): Map<string, string[]> {
  const addresses = new Map<string, Set<string>>();
  for (const pair of pairs) {
    if (pair.isOwnNode || pair.moreAddresses || hasSetLabels(pair.peer, options)) continue;
    const all = orMake(addresses, portName(pair), () => new Set());
    for (const address of pair.addresses) all.add(address);
  }
  return new Map([...addresses].map(([port, all]) => [port, joinedPrefixes(all)]));
}

/** What a rule says of the other end; a text: why it says nothing. */
function peerOf(
  { own, peer: end, addresses, moreAddresses, isOwnNode }: RulePair,
  prefixes: readonly string[],
  labels: LabelsByEnd,
  options: PolicyOptions,
): Peer | string {
  const name = nameOf(end);
  if (isOwnNode) return "a node reaches its own pods whatever policy says: kubelet probes need no rule";
  if (end.type === "Workload") {
    const { namespace } = end;
    if (!options.sees(namespace)) return { is: "namespace", namespace, name: `all of namespace ${namespace}` };
    const found = labels(end);
    if ("like" in found) return noLabels(end, found.like);
    return { is: "labels", namespace, labels: found.labels, name: namespace === own.namespace ? end.name : name };
  }
  if (hasSetLabels(end, options)) return { is: "labels", namespace: end.namespace, labels: end.labels ?? {}, name };
  if (!options.addresses) {
    if (end.type === "NetworkSet") return "a network set: ask for policies of vendor, or for addresses";
    return end.type === "Node" ? "addresses of nodes: ask for addresses" : "an outside address: ask for addresses";
  }
  if (addresses.size === 0) return "its addresses are not kept, or not yours to see";
  if (moreAddresses) return "not all of its addresses are kept";
  if (prefixes.length > MOST_PREFIXES)
    return `these are ${prefixes.length} prefixes, and a rule has at most ${MOST_PREFIXES}`;
  return { is: "prefixes", prefixes, name: "addresses" };
}

interface RuleWithSum {
  rule: Fields;
  text: string;
  sum: FlowSum;
}

/** DNS first, then by protocol, port and peers: the same order every time. */
function rulesOf(
  direction: PolicyHit["direction"],
  own: FlowEnd,
  atoms: readonly Atom[],
  kind: ProposalKind,
): RuleWithSum[] {
  const parts = new Map<string, Atom[]>();
  for (const atom of atoms) orMake(parts, partOf(atom, kind), () => []).push(atom);
  const joined = [...parts.values()].flatMap((part) =>
    joinedRules(part.map(({ peerName, port }) => ({ peer: peerName, port }))).map((rule) => ({ rule, part })),
  );
  const orderOf = ({ rule, part }: { rule: JoinedRule; part: readonly Atom[] }) =>
    [part[0]?.isDns ? 0 : 1, rule.ports.join(), rule.peers.join()].join(" ");
  return joined
    .sort((a, b) => (orderOf(a) < orderOf(b) ? -1 : 1))
    .map(({ rule, part }) => ruleOf(direction, own, rule, part, kind));
}

/** What may be in one rule: of ours a rule has one protocol and one selector for namespaces. */
function partOf({ isDns, protocol, peer }: Atom, kind: ProposalKind): string {
  if (kind === "kubernetes") return `${isDns}`;
  return [isDns, protocol, peer.is, peer.is === "prefixes" ? familyOf(peer.prefixes[0]!) : peer.namespace].join(" ");
}

function familyOf(prefix: string): "IPv4" | "IPv6" {
  return prefix.includes(":") ? "IPv6" : "IPv4";
}

/** A rule of ours has prefixes of one family. */
function byFamily(peer: Peer, kind: ProposalKind): Peer[] {
  if (peer.is !== "prefixes" || kind === "kubernetes") return [peer];
  return (["IPv4", "IPv6"] as const)
    .map((family) => ({ ...peer, prefixes: peer.prefixes.filter((prefix) => familyOf(prefix) === family) }))
    .filter(({ prefixes }) => prefixes.length > 0);
}

function ruleOf(
  direction: PolicyHit["direction"],
  own: FlowEnd,
  { peers, ports }: JoinedRule,
  part: readonly Atom[],
  kind: ProposalKind,
): RuleWithSum {
  const [asked, onPorts] = [new Set(peers), new Set(ports)];
  const atoms = part.filter(({ peerName, port }) => asked.has(peerName) && onPorts.has(port));
  const { since, until } = atoms[0]!.sum;
  const sum: FlowSum = { flows: 0, connections: 0, packets: 0, bytes: 0, since, until };
  for (const atom of atoms) addSum(sum, atom.sum);
  const chosen = peers.map((name) => JSON.parse(name) as Peer);
  const named = ports.map((text) => ({
    protocol: text.split(" ", 1)[0]!,
    port: Number(text.slice(text.indexOf(" "))),
  }));
  const rule =
    kind === "kubernetes"
      ? kubernetesRule(
          direction,
          chosen.flatMap((peer) => kubernetesPeersOf(peer, own)),
          named,
        )
      : allowRule(
          direction,
          peerFields(chosen, own),
          named[0]!.protocol,
          named.map(({ port }) => port).filter((port) => port > 0),
        );
  return { rule, text: ruleText(direction, chosen, named, atoms[0]!.isDns), sum };
}

function kubernetesPeersOf(peer: Peer, own: FlowEnd): Fields[] {
  if (peer.is === "prefixes") return peer.prefixes.map((cidr) => ({ ipBlock: { cidr } }));
  const elsewhere = peer.namespace === own.namespace ? {} : { namespace: peer.namespace };
  return [kubernetesPeer({ ...elsewhere, labels: peer.is === "labels" ? peer.labels : undefined })];
}

/** Of peers of one kind and one namespace. */
function peerFields(peers: readonly Peer[], own: FlowEnd): Fields {
  const [first] = peers;
  if (!first || first.is === "prefixes")
    return { nets: peers.flatMap((peer) => (peer.is === "prefixes" ? peer.prefixes : [])) };
  const elsewhere = first.namespace === own.namespace ? undefined : first.namespace;
  const selectors = peers.flatMap((peer) => (peer.is === "labels" ? [selectorText(peer.labels)] : []));
  const several = selectors.length > 1;
  return selectingPeer(
    elsewhere,
    selectors.map((text) => (several && text.includes("&&") ? `(${text})` : text)).join(" || "),
  );
}

function ruleText(
  direction: PolicyHit["direction"],
  peers: readonly Peer[],
  ports: readonly { protocol: string; port: number }[],
  isDns: boolean,
): string {
  const names = [...new Set(peers.map(({ name }) => name))];
  const shown =
    names.length > MOST_NAMES ? [...names.slice(0, MOST_NAMES), `${names.length - MOST_NAMES} more`] : names;
  const on = ports.map(({ protocol, port }) => (port === 0 ? protocol : `${protocol} ${port}`)).join(", ");
  return `${isDns ? "DNS " : ""}${direction === "Egress" ? "to" : "from"} ${shown.join(", ")} on ${on}`;
}

import type { FlowCounts, FlowEnd, FlowKey, PolicyHit } from "../../api/protocol/flow.ts";

/** A flow as a query sees it: its key, and what was counted and listed in the time that was asked for. */
export interface QueriedFlow extends FlowCounts {
  key: FlowKey;
  sourceAddresses: readonly string[];
  destinationAddresses: readonly string[];
}

/** What has a namespace and a name, as `NAMESPACE/NAME`; without a slash a value is compared with the name alone. */
export interface NamePair {
  namespace: string;
  name: string;
  /** Another text for what is in the list already: matched, and never suggested. */
  alias?: boolean;
}

interface Described {
  /** One line for completion and for the guide. */
  about: string;
}

/** Each field by what its values are. Those with `counted` depend on what was counted, all others on the key alone. */
export type QueryField = Described &
  (
    | { kind: "pairs"; of: (key: FlowKey) => readonly NamePair[] }
    | { kind: "names"; of: (key: FlowKey) => readonly string[] }
    | { kind: "labels"; of: (key: FlowKey) => readonly Readonly<Record<string, string>>[] }
    | {
        kind: "choice";
        of: (key: FlowKey) => string;
        choices: readonly string[];
        aliases?: Readonly<Record<string, string>>;
      }
    | { kind: "port"; of: (key: FlowKey) => number }
    | { kind: "amount"; counted: (flow: QueriedFlow) => number; unit: "bytes" | "count" }
    | { kind: "addresses"; counted: (flow: QueriedFlow) => readonly string[] }
    | { kind: "time" }
  );

const NO_LABELS: Readonly<Record<string, string>> = {};

/** Numbers of protocols that have a name here. */
const PROTOCOLS: Readonly<Record<string, string>> = {
  "1": "icmp",
  "6": "tcp",
  "17": "udp",
  "58": "icmpv6",
  "132": "sctp",
};

export const QUERY_FIELDS = {
  from: { kind: "pairs", of: ({ from }) => [pairOf(from)], about: "who began, as NAMESPACE/WORKLOAD" },
  to: { kind: "pairs", of: ({ to }) => [pairOf(to)], about: "who was spoken to, as NAMESPACE/WORKLOAD" },
  either: { kind: "pairs", of: ({ from, to }) => [pairOf(from), pairOf(to)], about: "one of both ends" },
  namespace: {
    kind: "names",
    of: ({ from, to }) => [from.namespace, to.namespace],
    about: "the namespace of one of both ends",
  },
  "from.label": { kind: "labels", of: ({ from }) => [labelsOf(from)], about: "a label of who began: KEY or KEY=VALUE" },
  "to.label": { kind: "labels", of: ({ to }) => [labelsOf(to)], about: "a label of who was spoken to" },
  label: { kind: "labels", of: ({ from, to }) => [labelsOf(from), labelsOf(to)], about: "a label of one of both ends" },
  service: {
    kind: "pairs",
    of: servicePairs,
    about: "the Service that was asked for: NAMESPACE/NAME or NAMESPACE/NAME:PORT",
  },
  port: { kind: "port", of: ({ port }) => port, about: "the destination's port: a number, a range 8000-8100 or >1024" },
  proto: {
    kind: "choice",
    of: ({ protocol }) => protocolOf(protocol),
    choices: ["tcp", "udp", "icmp", "icmpv6", "sctp"],
    aliases: PROTOCOLS,
    about: "the protocol, or its number",
  },
  verdict: {
    kind: "choice",
    of: ({ verdict }) => verdict.toLowerCase(),
    choices: ["allow", "deny"],
    about: "what happened to it",
  },
  pending: {
    kind: "choice",
    of: (key) => pendingVerdict(key).toLowerCase(),
    choices: ["allow", "deny"],
    about: "what would happen to it if staged policies were enforced",
  },
  reason: { kind: "names", of: ({ reason }) => (reason ? [reason] : []), about: "why a denied flow was dropped" },
  policy: {
    kind: "pairs",
    of: (key) => allSteps(key).map(policyPair),
    about: "a policy on its way, or a staged one that would be: NAMESPACE/NAME",
  },
  tier: { kind: "names", of: (key) => allSteps(key).map(({ tier }) => tier), about: "a tier on its way" },
  rule: {
    kind: "pairs",
    of: (key) => allSteps(key).flatMap(rulePairs),
    about: "a rule on its way: NAMESPACE/NAME#ingress[2], or the position 2",
  },
  reporter: {
    kind: "choice",
    of: ({ reporter }) => reporter.toLowerCase(),
    choices: ["source", "destination", "both"],
    about: "at whose end it was counted",
  },
  node: { kind: "names", of: ({ node }) => [node], about: "the node that counted it" },
  plane: {
    kind: "choice",
    of: ({ dataplane }) => dataplane.toLowerCase(),
    choices: ["nftables", "bpf"],
    aliases: { ebpf: "bpf", nft: "nftables" },
    about: "the data plane that carried it",
  },
  address: {
    kind: "addresses",
    counted: (flow) => [...flow.sourceAddresses, ...flow.destinationAddresses],
    about: "an address of one of both ends: 10.0.0.1, 10.0.0.0/8 or 10.0.0.1-10.0.0.9",
  },
  bytes: {
    kind: "amount",
    unit: "bytes",
    counted: ({ bytes, replyBytes }) => bytes + replyBytes,
    about: "bytes in both directions: >1MB, 10kB-1MB",
  },
  packets: {
    kind: "amount",
    unit: "count",
    counted: ({ packets, replyPackets }) => packets + replyPackets,
    about: "packets in both directions: >10k",
  },
  connections: {
    kind: "amount",
    unit: "count",
    counted: ({ started }) => started,
    about: "connections that began: >100",
  },
  since: { kind: "time", about: "the begin of the time that is asked for: 15m, or 2026-01-31T12:00:00Z" },
  until: { kind: "time", about: "its end: 5m, or 2026-01-31T12:00:00Z" },
} as const satisfies Record<string, QueryField>;

export type QueryFieldName = keyof typeof QUERY_FIELDS;

export const QUERY_FIELD_NAMES = Object.keys(QUERY_FIELDS) as QueryFieldName[];

export function queryField(name: QueryFieldName): QueryField {
  return QUERY_FIELDS[name];
}

/** What bare words search. */
export function searchedNames(key: FlowKey): string[] {
  const { from, to, service } = key;
  const names = [from.name, from.namespace, to.name, to.namespace];
  if (service) names.push(service.name, service.namespace);
  for (const { name, namespace } of allSteps(key)) names.push(name, namespace);
  return names;
}

/** The kind where there is no name: the end of a tier, or a policy whose name may not be seen. */
export function policyPair({ namespace, name, kind }: PolicyHit): NamePair {
  return { namespace, name: name || kind };
}

/** `NAMESPACE/NAME`, or the name alone. */
export function pairText({ namespace, name }: { namespace: string; name: string }): string {
  return namespace ? `${namespace}/${name}` : name;
}

/** The name of a rule as its object's own fields have it: `lock#ingress[2]`. */
export function ruleName(hit: PolicyHit): string {
  return `${policyPair(hit).name}#${hit.direction.toLowerCase()}[${hit.rule}]`;
}

/** What would happen to it if staged policies were enforced. */
export function pendingVerdict({ verdict, pending }: FlowKey): "Allow" | "Deny" {
  return pending?.verdict ?? verdict;
}

/** What policy was asked, and the staged policies that would have been. */
export function allSteps({ policies, pending }: FlowKey): readonly PolicyHit[] {
  return pending ? [...policies, ...pending.policies.filter(({ staged }) => staged)] : policies;
}

function pairOf({ namespace, name }: FlowEnd): NamePair {
  return { namespace, name };
}

function labelsOf({ labels }: FlowEnd): Readonly<Record<string, string>> {
  return labels ?? NO_LABELS;
}

function servicePairs({ service }: FlowKey): NamePair[] {
  if (!service) return [];
  const { namespace, name, port } = service;
  return [
    { namespace, name },
    { namespace, name: `${name}:${port}`, alias: true },
  ];
}

function rulePairs(hit: PolicyHit): NamePair[] {
  if (hit.rule === undefined) return [];
  return [
    { namespace: hit.namespace, name: ruleName(hit) },
    { namespace: "", name: String(hit.rule), alias: true },
  ];
}

function protocolOf(protocol: string): string {
  const name = protocol.toLowerCase();
  return PROTOCOLS[name] ?? name;
}

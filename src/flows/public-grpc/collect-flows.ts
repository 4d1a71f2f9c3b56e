import { createHash } from "node:crypto";
import {
  FLOW_ADDRESSES,
  type FlowBatch,
  type FlowEnd,
  type FlowKey,
  type FlowPending,
  type FlowRow,
  type PolicyHit,
} from "../../api/protocol/flow.ts";
import type { Received } from "../../kit/grpc/protobuf.ts";
import { invalid } from "./flow-filter.ts";
import { ACTION, END_TYPE, type FLOW_UPDATE, POLICY_KINDS, REPORTER } from "./messages.ts";

type Update = Received<typeof FLOW_UPDATE>;
type Flow = NonNullable<Update["flow"]>;
type Hits = NonNullable<NonNullable<NonNullable<Flow["key"]>["policies"]>["enforced"]>;

/** As in batches of our own agents. */
const TEXT_LIMIT = 512;
const LABELS_LIMIT = 128;
const POLICIES_LIMIT = 128;
/** A client that reconnects sends the flows of its last minutes again; so many are recognised. */
const REMEMBERED = 200_000;

/** Of one program of another system that sends flows; kept over its connections. */
export class FlowCollector {
  readonly #instance: string;
  readonly #keep: (batch: FlowBatch) => Promise<void>;
  readonly #now: () => number;
  /** The oldest first. */
  readonly #taken = new Set<string>();
  #intervals = 0;

  constructor(options: { instance: string; keep: (batch: FlowBatch) => Promise<void>; now: () => number }) {
    this.#instance = options.instance;
    this.#keep = options.keep;
    this.#now = options.now;
  }

  /** Resolves when all are kept. What an address has sent before is not added again: the public protocol has no number for an update. */
  async take(updates: readonly Update[], address: string): Promise<void> {
    const rows = updates.map(({ flow }) => rowOf(flow, address));
    const byBatch = new Map<string, { node: string; seconds: number; rows: FlowRow[] }>();
    const names: string[] = [];
    for (const [index, { row, seconds }] of rows.entries()) {
      const name = nameOf(updates[index] as Update, address);
      if (this.#taken.has(name)) continue;
      // At once: the same may come on another connection while this is being kept.
      this.#remember(name);
      names.push(name);
      const { node } = row.key;
      const batch = byBatch.get(`${seconds} ${node}`) ?? { node, seconds, rows: [] };
      batch.rows.push(row);
      byBatch.set(`${seconds} ${node}`, batch);
    }
    try {
      for (const batch of byBatch.values()) await this.#keep(this.#batchOf(batch));
    } catch (error) {
      for (const name of names) this.#taken.delete(name);
      throw error;
    }
  }

  #batchOf({ node, seconds, rows }: { node: string; seconds: number; rows: FlowRow[] }): FlowBatch {
    const since = Math.min(seconds * 1_000, this.#now());
    const [boot, interval] = [`public ${this.#instance}`, ++this.#intervals];
    // Just after its begin: it is of the window in which it began.
    return { node, boot, interval, since, until: since + 1, merged: 0, unattributed: 0, rows };
  }

  #remember(name: string): void {
    this.#taken.add(name);
    if (this.#taken.size <= REMEMBERED) return;
    const [oldest] = this.#taken;
    this.#taken.delete(oldest as string);
  }
}

/** Without the port: it differs with each connection of the same client. */
function nameOf(update: Update, address: string): string {
  return createHash("sha256")
    .update(`${address} ${JSON.stringify(update)}`)
    .digest("base64")
    .slice(0, 24);
}

function rowOf(flow: Flow | undefined, address: string): { row: FlowRow; seconds: number } {
  const key = flow?.key;
  if (!key) throw invalid("a flow update has no flow, or its flow has no key");
  const reporter = key.reporter === REPORTER.Source ? "Source" : "Destination";
  if (key.reporter !== REPORTER.Source && key.reporter !== REPORTER.Destination)
    throw invalid(`reporter is ${key.reporter ?? 0}; there are 1, source, and 2, destination`);
  if (key.action !== ACTION.Allow && key.action !== ACTION.Deny)
    throw invalid(`action is ${key.action ?? 0}; a flow is 1, allowed, or 2, denied`);
  const isSource = reporter === "Source";
  const reason = flow.dropReasons?.[0];
  const [planes, nodes] = [flow.planes ?? [], flow.nodes ?? []];
  const direction = isSource ? "Egress" : "Ingress";
  const verdict = key.action === ACTION.Deny ? "Deny" : "Allow";
  const pending = pendingOf(key.policies, direction, verdict);
  const made: FlowKey = {
    from: endOf("source", key.sourceType, key.sourceName, key.sourceNamespace, flow.sourceLabels),
    to: endOf("dest", key.destType, key.destName, key.destNamespace, flow.destLabels),
    ...(key.serviceName && {
      service: {
        namespace: checked("dest_service_namespace", key.serviceNamespace),
        name: checked("dest_service_name", key.serviceName),
        port: checked("dest_service_port_name", key.servicePortName) || String(key.servicePort ?? 0),
      },
    }),
    port: count("dest_port", key.destPort, 65_535),
    protocol: protocolOf(checked("proto", key.protocol)),
    verdict,
    ...(reason && { reason: checked("drop_reason", reason) }),
    policies: hitsOf(key.policies?.enforced, direction),
    ...(pending && { pending }),
    reporter,
    node: checked("node", nodes[0]) || address,
    dataplane: planes[0] === "BPF" ? "BPF" : "Nftables",
  };
  const measured = (name: string, value: number | undefined) => count(name, value, Number.MAX_SAFE_INTEGER);
  const incoming = { packets: measured("packets_in", flow.packetsIn), bytes: measured("bytes_in", flow.bytesIn) };
  const outgoing = { packets: measured("packets_out", flow.packetsOut), bytes: measured("bytes_out", flow.bytesOut) };
  const [sent, replied] = isSource ? [outgoing, incoming] : [incoming, outgoing];
  return {
    row: {
      ...{ key: made, ...sent, replyPackets: replied.packets, replyBytes: replied.bytes },
      started: measured("num_connections_started", flow.started),
      ended: measured("num_connections_completed", flow.completed),
      live: measured("num_connections_live", flow.live),
      ...{ sourceAddresses: addresses(flow.sourceAddresses), destinationAddresses: addresses(flow.destAddresses) },
      more: flow.moreAddresses === true,
    },
    seconds: count("start_time", flow.since, 2 ** 40),
  };
}

const END_TYPES: Readonly<Record<number, FlowEnd["type"]>> = {
  [END_TYPE.Workload]: "Workload",
  [END_TYPE.HostEndpoint]: "HostEndpoint",
  [END_TYPE.NetworkSet]: "NetworkSet",
  [END_TYPE.Network]: "Outside",
};
const OUTSIDE: Readonly<Record<string, string>> = { pub: "public", pvt: "private" };

function endOf(
  side: "source" | "dest",
  number: number | undefined,
  name: string | undefined,
  namespace: string | undefined,
  labels: readonly string[] | undefined,
): FlowEnd {
  const type = END_TYPES[number ?? 0];
  if (!type) throw invalid(`${side}_type is ${number ?? 0}; there are 1 to 4`);
  const given = checked(`${side}_name`, name);
  const pairs = (labels ?? []).slice(0, LABELS_LIMIT).map((label) => pairOf(checked(`${side}_labels`, label)));
  return {
    type,
    name: type === "Outside" ? (OUTSIDE[given] ?? given) : given,
    namespace: namespace === "-" ? "" : checked(`${side}_namespace`, namespace),
    ...(pairs.length > 0 && { labels: Object.fromEntries(pairs) }),
  };
}

function pairOf(label: string): [string, string] {
  const at = label.indexOf("=");
  return at < 0 ? [label, ""] : [label.slice(0, at), label.slice(at + 1)];
}

const kinds = new Map<number, string>(Object.entries(POLICY_KINDS).map(([kind, { number }]) => [number, kind]));

function hitsOf(hits: Hits | undefined, direction: PolicyHit["direction"]): readonly PolicyHit[] {
  if ((hits ?? []).length > POLICIES_LIMIT) throw invalid(`policies has more than ${POLICIES_LIMIT} hits`);
  return (hits ?? []).map((hit) => hitOf(hit, direction));
}

/** Absent where nothing is staged: what is pending is then what is enforced, once more. */
function pendingOf(
  trace: NonNullable<Flow["key"]>["policies"],
  direction: PolicyHit["direction"],
  verdict: FlowKey["verdict"],
): FlowPending | undefined {
  const policies = hitsOf(trace?.pending, direction);
  const enforced = hitsOf(trace?.enforced, direction);
  if (policies.length === 0 || JSON.stringify(policies) === JSON.stringify(enforced)) return undefined;
  const decided = policies.findLast(({ action }) => action === "Allow" || action === "Deny");
  return { verdict: decided?.action === "Deny" ? "Deny" : decided ? "Allow" : verdict, policies };
}

function hitOf(hit: Hits[number], direction: PolicyHit["direction"]): PolicyHit {
  const kind = kinds.get(hit.kind ?? 0);
  if (!kind) throw invalid(`kind of a policy is ${hit.kind ?? 0}; there are 1 to 11`);
  const action = (["Allow", "Deny", "Pass"] as const)[(hit.action ?? 0) - 1];
  if (!action) throw invalid(`action of a policy is ${hit.action ?? 0}; there are 1 to 3`);
  const rule = hit.ruleIndex ?? 0;
  return {
    ...{ direction, kind, action },
    tier: checked("tier", hit.tier || hit.trigger?.tier),
    ...{ namespace: checked("namespace of a policy", hit.namespace), name: checked("name of a policy", hit.name) },
    ...(rule >= 0 && { rule: count("rule_index", rule, Number.MAX_SAFE_INTEGER) }),
    ...(kind.startsWith("Staged") && { staged: true }),
  };
}

const PROTOCOLS: Readonly<Record<string, string>> = { icmp6: "ICMPv6", icmpv6: "ICMPv6" };

function protocolOf(text: string): string {
  return PROTOCOLS[text.toLowerCase()] ?? text.toUpperCase();
}

function addresses(given: readonly string[] | undefined): string[] {
  return (given ?? []).slice(0, FLOW_ADDRESSES).map((address) => checked("addresses", address));
}

function checked(name: string, text: string | undefined): string {
  if (text !== undefined && text.length > TEXT_LIMIT) throw invalid(`${name} is longer than ${TEXT_LIMIT} characters`);
  return text ?? "";
}

function count(name: string, value: number | undefined, most: number): number {
  const number = value ?? 0;
  if (!Number.isSafeInteger(number) || number < 0 || number > most)
    throw invalid(`${name} is ${number}, and has to be from 0 to ${most}`);
  return number;
}

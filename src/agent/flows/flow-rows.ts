import type { Dataplane } from "../../api/dataplane.ts";
import {
  FLOW_ADDRESSES,
  type FlowCounts,
  type FlowKey,
  type FlowPending,
  type FlowRow,
  type FlowService,
  type PolicyHit,
} from "../../api/protocol/flow.ts";
import type { DataplaneModel } from "../../calc/model.ts";
import { type HitPolicies, policyHits } from "../../calc/policy/policy-hits.ts";
import type { FlowSum } from "../../dataplane/flow-sums.ts";
import type { FlowEnds } from "./flow-ends.ts";

const PROTOCOLS: Readonly<Record<number, string>> = { 1: "ICMP", 6: "TCP", 17: "UDP", 58: "ICMPv6", 132: "SCTP" };

export interface NamingParts {
  node: string;
  dataplane: Dataplane;
  model: Pick<DataplaneModel, "policies" | "profiles" | "endpoints">;
  ends: FlowEnds;
  /** Whether an address is one of this node: of its pods, or its own. */
  isHere(address: string): boolean;
  /** What staged policies would do; undefined: they would do nothing at its ends. */
  pendingOf(sum: FlowSum): FlowPending | undefined;
}

/** Pods of one workload have ends that are equal, but not one. */
const texts = new WeakMap<object, string>();

function textOf(thing: object): string {
  let text = texts.get(thing);
  if (text === undefined) {
    text = JSON.stringify(thing);
    texts.set(thing, text);
  }
  return text;
}

/** Sums as flows: addresses become those whose they are, rules become words. Sums of the same ends, port and way are one row. */
export function flowRows(sums: readonly FlowSum[], parts: NamingParts): FlowRow[] {
  const rows = new Map<string, Row>();
  const ways = new Map<string, readonly PolicyHit[]>();
  const wayOf = (sum: FlowSum) => {
    const name = `${sum.verdict} ${sum.egress?.join() ?? "-"} ${sum.ingress?.join() ?? "-"}`;
    const known = ways.get(name);
    if (known) return known;
    const made = wayThroughPolicy(sum, parts.model);
    ways.set(name, made);
    return made;
  };
  for (const sum of sums) {
    const from = parts.ends.of(sum.source);
    const to = parts.ends.of(sum.destination);
    const policies = wayOf(sum);
    const pending = parts.pendingOf(sum);
    const reporter = reporterOf(sum, parts.isHere);
    if (!reporter) continue;
    const name = [
      ...[textOf(from), textOf(to), sum.destinationPort, sum.protocol, sum.service ?? ""],
      ...[sum.verdict, sum.reason ?? "", textOf(policies), reporter, pending ? textOf(pending) : ""],
    ].join("\0");
    let row = rows.get(name);
    if (!row) {
      const service = serviceOf(sum.service);
      const key: FlowKey = {
        ...{ from, to, policies, reporter, node: parts.node, dataplane: parts.dataplane },
        ...(service ? { service } : {}),
        ...{ port: sum.destinationPort, protocol: PROTOCOLS[sum.protocol] ?? String(sum.protocol) },
        verdict: sum.verdict,
        ...(sum.reason === undefined ? {} : { reason: sum.reason }),
        ...(pending ? { pending } : {}),
      };
      row = new Row(key);
      rows.set(name, row);
    }
    row.add(sum);
  }
  return [...rows.values()].map((row) => row.made());
}

class Row {
  readonly #key: FlowKey;
  readonly #counts: FlowCounts = {
    ...{ packets: 0, bytes: 0, replyPackets: 0, replyBytes: 0 },
    ...{ started: 0, ended: 0, live: 0 },
  };
  readonly #sources = new Set<string>();
  readonly #destinations = new Set<string>();
  #more = false;

  constructor(key: FlowKey) {
    this.#key = key;
  }

  add(sum: FlowSum): void {
    const counts = this.#counts;
    for (const name of Object.keys(counts) as (keyof FlowCounts)[]) counts[name] += sum[name];
    this.#note(this.#sources, sum.source);
    this.#note(this.#destinations, sum.destination);
  }

  #note(addresses: Set<string>, address: string): void {
    if (address === "" || addresses.has(address)) return;
    if (addresses.size < FLOW_ADDRESSES) addresses.add(address);
    else this.#more = true;
  }

  made(): FlowRow {
    // A packet that was counted in the interval before and dropped in this one is taken off here.
    for (const name of Object.keys(this.#counts) as (keyof FlowCounts)[]) {
      this.#counts[name] = Math.max(0, this.#counts[name]);
    }
    return {
      ...{ key: this.#key, ...this.#counts, more: this.#more },
      ...{ sourceAddresses: [...this.#sources].sort(), destinationAddresses: [...this.#destinations].sort() },
    };
  }
}

/** What leaves is asked first. Where it left decided against it, nothing was asked where it would have arrived. */
export function wayThroughPolicy(
  { egress = [], ingress = [], verdict }: Pick<FlowSum, "egress" | "ingress" | "verdict">,
  model: HitPolicies,
): readonly PolicyHit[] {
  const denied = verdict === "Deny";
  return [
    ...policyHits(model, egress, "Egress", denied && ingress.length === 0 ? "Deny" : "Allow"),
    ...policyHits(model, ingress, "Ingress", verdict),
  ];
}

/** Undefined: it only passes through, as from a client to a backend on another node, and is counted there. What is dropped on the way is counted here. */
function reporterOf(
  { source, destination, verdict }: FlowSum,
  isHere: NamingParts["isHere"],
): FlowKey["reporter"] | undefined {
  const [from, to] = [isHere(source), isHere(destination)];
  if (from && to) return "Both";
  if (from) return "Source";
  // Without addresses it was merged here with others.
  return to || verdict === "Deny" || destination === "" ? "Destination" : undefined;
}

/** `NAMESPACE/NAME:PORT`. */
function serviceOf(text: string | undefined): FlowService | undefined {
  const parts = text === undefined ? null : /^([^/]*)\/([^:]*):(.*)$/.exec(text);
  return parts ? { namespace: parts[1]!, name: parts[2]!, port: parts[3]! } : undefined;
}

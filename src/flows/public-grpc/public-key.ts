import { createHash } from "node:crypto";
import type { FlowEnd, FlowKey, PolicyHit } from "../../api/protocol/flow.ts";
import { encode, type Sent } from "../../kit/grpc/protobuf.ts";
import { ACTION, END_TYPE, FLOW_KEY, POLICY_KINDS, REPORTER } from "./messages.ts";

/** A hit as the public protocol has it; names are there, if empty. */
export interface PublicHit {
  kind: number;
  namespace: string;
  name: string;
  tier: string;
  action: number;
  policyIndex: number;
  ruleIndex: number;
  trigger?: { tier: string };
}

/** What the public protocol tells flows apart by: no node, no labels, and one end that reports. */
export interface PublicKey {
  sourceName: string;
  sourceNamespace: string;
  destName: string;
  destNamespace: string;
  sourceType: number;
  destType: number;
  destPort: number;
  protocol: string;
  reporter: number;
  action: number;
  enforced: PublicHit[];
  pending: PublicHit[];
}

export interface PublicView {
  key: PublicKey;
  /** The key as it is sent: keys are the same if their bytes are. */
  encoded: Buffer;
  name: string;
  /** The same for the same key, in every process. */
  id: number;
}

/** What has no namespace. */
const NO_NAMESPACE = "-";
const OUTSIDE: Readonly<Record<string, string>> = { public: "pub", private: "pvt" };
const ID_BYTES = 6;

const views = new WeakMap<FlowKey, readonly PublicView[]>();

/**
 * A flow as the public protocol shows it. There, each end reports for itself: what was counted once for both ends on one node is a flow of the
 * source and, unless policy of the source denied it, one of the destination.
 */
export function publicViews(key: FlowKey): readonly PublicView[] {
  let known = views.get(key);
  if (!known) {
    known = reportsOf(key).map((report) => viewOf(key, report));
    views.set(key, known);
  }
  return known;
}

interface Report {
  reporter: keyof typeof REPORTER;
  verdict: FlowKey["verdict"];
  hits: readonly PolicyHit[];
  pending: readonly PolicyHit[];
}

/** Where nothing is staged, what is enforced would be asked. */
function reportsOf({ reporter, verdict, policies, pending, reason = "" }: FlowKey): Report[] {
  const staged = pending?.policies ?? policies;
  if (reporter !== "Both") return [{ reporter, verdict, hits: policies, pending: staged }];
  const at = (direction: PolicyHit["direction"]) => ({
    hits: policies.filter((hit) => hit.direction === direction),
    pending: staged.filter((hit) => hit.direction === direction),
  });
  const denial = policies.findLast(({ action }) => action === "Deny");
  const isByHere = denial ? denial.direction === "Egress" : /egress/i.test(reason);
  if (verdict === "Deny" && isByHere) return [{ reporter: "Source", verdict, ...at("Egress") }];
  return [
    { reporter: "Source", verdict: "Allow", ...at("Egress") },
    { reporter: "Destination", verdict, ...at("Ingress") },
  ];
}

function viewOf(key: FlowKey, { reporter, verdict, hits, pending }: Report): PublicView {
  const made: PublicKey = {
    ...{ sourceName: nameOf(key.from), sourceNamespace: key.from.namespace || NO_NAMESPACE },
    ...{ destName: nameOf(key.to), destNamespace: key.to.namespace || NO_NAMESPACE },
    ...{ sourceType: typeOf(key.from), destType: typeOf(key.to), destPort: key.port },
    ...{ protocol: key.protocol.toLowerCase(), reporter: REPORTER[reporter], action: ACTION[verdict] },
    enforced: publicHits(hits),
    pending: publicHits(pending),
  };
  const encoded = encode(FLOW_KEY, sentKey(made, key.service));
  const id = createHash("sha256").update(encoded).digest().readUIntBE(0, ID_BYTES);
  return { key: made, encoded, name: encoded.toString("latin1"), id };
}

function sentKey({ enforced, pending, ...key }: PublicKey, service: FlowKey["service"]): Sent<typeof FLOW_KEY> {
  const hasNumber = service !== undefined && /^\d{1,5}$/.test(service.port);
  return {
    ...key,
    ...(service && { serviceName: service.name, serviceNamespace: service.namespace }),
    ...(service && (hasNumber ? { servicePort: Number(service.port) } : { servicePortName: service.port })),
    policies: { enforced, pending },
  };
}

function nameOf({ type, name }: FlowEnd): string {
  return type === "Outside" ? (OUTSIDE[name] ?? name) : name;
}

function typeOf({ type }: FlowEnd): number {
  if (type === "Outside") return END_TYPE.Network;
  return type === "Node" ? END_TYPE.HostEndpoint : END_TYPE[type];
}

function publicHits(hits: readonly PolicyHit[]): PublicHit[] {
  let before = "";
  let index = -1;
  // The protocol has no rules that log.
  const said = hits.filter(({ action }) => action !== "Log");
  return said.map((hit) => {
    const policy = [hit.kind, hit.tier, hit.namespace, hit.name].join("\0");
    if (policy !== before) index++;
    before = policy;
    return { ...publicPolicy(hit), action: ACTION[hit.action as keyof typeof ACTION], policyIndex: index };
  });
}

/** What is not of a rule has the rule -1. The end of a tier has the tier once more as what triggered it: which policy that was is not recorded. */
function publicPolicy({ kind, namespace, name, tier, rule }: PolicyHit): Omit<PublicHit, "action" | "policyIndex"> {
  const number = kind === "NoProfile" ? POLICY_KINDS.Profile.number : kindNumber(kind);
  const ruleIndex = rule ?? -1;
  const shown = kind === "NoProfile" ? "no-profile" : name;
  return { kind: number, namespace, name: shown, tier, ruleIndex, ...(kind === "EndOfTier" && { trigger: { tier } }) };
}

function kindNumber(kind: string): number {
  return Object.hasOwn(POLICY_KINDS, kind) ? POLICY_KINDS[kind as keyof typeof POLICY_KINDS].number : 0;
}

import type { Access } from "../../aggregated/access.ts";
import { FLOW_LOGS_API } from "../../api/names.ts";
import { groupVersion } from "../../api/object.ts";
import type { FlowKey, FlowPending, PolicyHit } from "../../api/protocol/flow.ts";
import {
  type ExplainedEnd,
  FLOW_EXPLANATION_KIND,
  type FlowExplanation,
  type PendingVerdict,
} from "../../api/protocol/flow-explanation.ts";
import type { UserInfo } from "../../apiserver/call.ts";
import type { FlowEvidence } from "../store/flow-store.ts";
import { type AskedEnd, askNodes, packetOf } from "./ask-nodes.ts";
import type { ClusterObjects } from "./cluster-objects.ts";
import { isPolicyReason } from "./drop-reasons.ts";
import { type FlowPlaces, flowPlaces } from "./flow-places.ts";
import { countedAt, isLost, lastHit, lostText, NO_END, placesUnknown, protocolUnknown } from "./flow-words.ts";
import { nearMisses } from "./near-misses.ts";
import { policyAccess } from "./policy-access.ts";
import { policyReferences } from "./policy-references.ts";
import { remedies } from "./remedies.ts";
import { pendingSentence, sentence } from "./sentence.ts";
import { type ShowingParts, shownEnd, shownHit } from "./shown-ends.ts";

export interface ExplanationParts {
  access: Access;
  objects(): Promise<ClusterObjects>;
  /** Ours: objects are shown as it serves them. */
  release: string;
}

export interface AskedExplanation {
  evidence: FlowEvidence;
  user: UserInfo;
  /** Of the request; empty: of the whole cluster, whose readers see everything. */
  namespace: string;
}

/** Why a flow was allowed or denied, and what would change that; as much of it as the reader may see. */
export async function explainFlow(asked: AskedExplanation, parts: ExplanationParts): Promise<FlowExplanation> {
  const { evidence, user, namespace } = asked;
  const { flow, key } = evidence;
  const access = policyAccess(parts.access, user);
  const seen = new Set<string>();
  for (const end of [key.from, key.to]) {
    if (namespace === "" || end.namespace === namespace) seen.add(end.namespace);
    else if (end.namespace !== "" && (await access.mayListFlows(end.namespace))) seen.add(end.namespace);
  }
  const objects = await parts.objects();
  const showing: ShowingParts = {
    references: policyReferences(objects, parts.release),
    ...{ access, sees: (name) => seen.has(name) },
  };
  const places = flowPlaces(key, evidence, objects);
  const calculated = calculate(objects, key, places);
  const shownAsked = calculated.ends.filter((end) => isShown(end, key, showing));
  const ends: ExplainedEnd[] = [];
  for (const end of calculated.ends) {
    ends.push(shownAsked.includes(end) ? await shownEnd(end, key, showing) : hiddenEnd(end, key));
  }
  const counted = calculated.ends.filter(({ direction }) => countedAt(key).includes(direction));
  const isKnown = calculated.note === undefined;
  const verdict = counted.some((end) => end.verdict === "Deny") ? "Deny" : "Allow";
  const hits = counted.flatMap((end) => end.hits);
  const changed = isKnown && isPolicyReason(key.reason) && hasChanged(key, verdict, hits);
  const misses = await nearMisses(shownAsked, key, showing);
  const address = (end: "from" | "to") =>
    seen.has(key[end].namespace) || key[end].type === "Outside" ? places[end]?.address : undefined;
  const offered = remedies(ends, misses, { key, addressOf: address, sees: showing.sees });
  const [source, destination] = [address("from"), address("to")];
  const last = lastHit(key.policies);
  return {
    ...{ apiVersion: groupVersion(FLOW_LOGS_API), kind: FLOW_EXPLANATION_KIND },
    metadata: { name: flow.id, namespace: namespace || key.to.namespace || key.from.namespace },
    sentence: sentence({
      ...{ key, changed, ends: ends.filter((end) => isCounted(end, key) || end.verdict === "Deny") },
      recorded: last && (await shownHit(last, access)),
      now: isKnown ? verdict : undefined,
      because: counted.find((end) => end.verdict === verdict)?.because,
    }),
    recorded: { verdict: key.verdict, ...(key.reason === undefined ? {} : { reason: key.reason }) },
    ...(isKnown ? { now: { verdict, policies: await shownHits(hits, showing) } } : {}),
    ...(key.pending ? { pending: await shownPending(key.pending, showing) } : {}),
    changed,
    ...(isKnown
      ? {
          packet: {
            ...{ protocol: key.protocol, port: key.port },
            ...(source === undefined ? {} : { source }),
            ...(destination === undefined ? {} : { destination }),
          },
        }
      : {}),
    ...{ ends, nearMisses: misses, remedies: offered },
    notes: notesOf(key, calculated, ends),
  };
}

interface Calculated {
  ends: readonly AskedEnd[];
  /** Why nothing could be calculated; undefined: it could. */
  note: string | undefined;
}

function calculate(objects: ClusterObjects, key: FlowKey, places: FlowPlaces): Calculated {
  const unknown = (note: string): Calculated => ({ ends: [], note });
  if ("unknown" in places) return unknown(placesUnknown(places, key));
  const packet = packetOf(key, places.from, places.to);
  if (!packet) return unknown(protocolUnknown(key));
  const ends = askNodes(objects, packet, places.from, places.to);
  const lost = ends.find(isLost);
  if (lost) return unknown(lostText(lost, key));
  if (ends.length === 0) return unknown(NO_END);
  // An end that asks nothing has nothing to show.
  return { ends: ends.filter(({ steps, verdict }) => steps.length > 0 || verdict === "Deny"), note: undefined };
}

/** An end in a namespace that the reader may not see is shown only as far as the flow itself shows it: where it was counted. */
function isShown({ direction }: AskedEnd, key: FlowKey, { sees }: ShowingParts): boolean {
  const end = direction === "Egress" ? key.from : key.to;
  return sees(end.namespace) || countedAt(key).includes(direction);
}

function hiddenEnd({ direction }: AskedEnd, key: FlowKey): ExplainedEnd {
  const end = direction === "Egress" ? key.from : key.to;
  const whose = end.namespace === "" ? "of the whole cluster" : `of namespace ${end.namespace}`;
  return { direction, unknown: `shown to who may list flows ${whose}`, steps: [] };
}

function isCounted({ direction }: ExplainedEnd, key: FlowKey): boolean {
  return countedAt(key).includes(direction);
}

/** By what decided at each end: of some denials the data plane knows that alone. */
function hasChanged(key: FlowKey, verdict: "Allow" | "Deny", hits: readonly PolicyHit[]): boolean {
  if (verdict !== key.verdict) return true;
  return countedAt(key).some((direction) => {
    const of = (list: readonly PolicyHit[]) => lastHit(list.filter((hit) => hit.direction === direction));
    const [before, after] = [of(key.policies), of(hits)];
    return before !== undefined && after !== undefined && nameOfHit(before) !== nameOfHit(after);
  });
}

function nameOfHit({ kind, tier, namespace, name, rule }: PolicyHit): string {
  return JSON.stringify([kind, kind === "Profile" ? "" : tier, namespace, name, rule ?? -1]);
}

async function shownPending({ verdict, policies }: FlowPending, showing: ShowingParts): Promise<PendingVerdict> {
  const hits = await shownHits(policies, showing);
  return { verdict, policies: hits, text: pendingSentence(verdict, hits) };
}

async function shownHits(hits: readonly PolicyHit[], { access }: ShowingParts): Promise<PolicyHit[]> {
  const shown: PolicyHit[] = [];
  for (const hit of hits) shown.push(await shownHit(hit, access));
  return shown;
}

function notesOf(key: FlowKey, { note, ends: asked }: Calculated, ends: readonly ExplainedEnd[]): string[] {
  const notes = note === undefined ? [] : [`${note} What policy says now cannot be calculated.`];
  if (key.port === 0 && /^(?:TCP|UDP|SCTP)$/.test(key.protocol))
    notes.push("The flow has no port, because ports were merged: port 0 was asked about.");
  if (/^ICMP/.test(key.protocol)) notes.push("Flows have no ICMP types: an echo request was asked about.");
  if (ends.some(({ steps }) => steps.some(({ hidden, rule }) => hidden || rule?.name === "")))
    notes.push("Some policies are left out, because you may not get them.");
  const beyond = asked.find(({ direction, verdict }) => verdict === "Deny" && !countedAt(key).includes(direction));
  const isShownThere = beyond && ends.some((end) => end.direction === beyond.direction && end.verdict === "Deny");
  if (key.verdict === "Allow" && beyond && isShownThere)
    notes.push(
      `It was counted at its other end alone: now it is denied ${beyond.direction === "Egress" ? "where it leaves" : "where it arrives"}.`,
    );
  return notes;
}

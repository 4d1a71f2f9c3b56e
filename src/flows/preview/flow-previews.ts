import type { Access } from "../../aggregated/access.ts";
import { TierAccess } from "../../aggregated/tier-access.ts";
import { type V3Kind, v3Kinds } from "../../aggregated/v3-kinds.ts";
import { FLOW_LOGS_API } from "../../api/names.ts";
import { groupVersion } from "../../api/object.ts";
import { type ChangedPair, FLOW_PREVIEW_KIND, type FlowPreview } from "../../api/protocol/flow-preview.ts";
import { Translator } from "../../api/resources/v3-translate.ts";
import type { Incoming } from "../../apiserver/call.ts";
import type { ClusterObjects } from "../explain/cluster-objects.ts";
import { type PolicyAccess, policyAccess } from "../explain/policy-access.ts";
import { shownHit } from "../explain/shown-ends.ts";
import type { FlowPair } from "../store/flow-pairs.ts";
import type { FlowStore } from "../store/flow-store.ts";
import type { Visible } from "../store/visibility.ts";
import { turns } from "../turns.ts";
import { askPairs, type PairVerdicts } from "./ask-pairs.ts";
import { errors } from "./errors.ts";
import { type PolicyChange, policyChanges } from "./policy-changes.ts";
import { readPreview } from "./preview-request.ts";
import { mustMayWrite } from "./preview-rights.ts";
import { settledChanges } from "./settled-change.ts";

/** Those of most packets; the answer says so if there were more. */
const MOST_PAIRS = 5_000;
/** Each takes seconds of calculation in a large cluster, in turns with all else. */
const MOST_PREVIEWS = 2;
/** Whether the reader may list flows there is asked for so many namespaces; ends in others count as hidden. */
const MOST_NAMESPACES = 60;

export interface PreviewParts {
  access: Access;
  objects(): Promise<ClusterObjects>;
  store: FlowStore;
  /** Ours: objects are validated as it would. */
  release: string;
}

export interface AskedPreview {
  incoming: Incoming;
  /** Of the request; empty: of the whole cluster, whose readers see everything. */
  namespace: string;
  visible: Visible;
}

/** Previews one at a time for a user, and few in all. */
export function flowPreviews(parts: PreviewParts): (asked: AskedPreview) => Promise<FlowPreview> {
  const users = new Set<string>();
  const kinds = v3Kinds(parts.release);
  return async (asked) => {
    const { name } = asked.incoming.user;
    if (users.has(name)) throw errors.FLOW_PREVIEWS_FULL("you have asked for one already");
    if (users.size >= MOST_PREVIEWS) throw errors.FLOW_PREVIEWS_FULL(`${users.size} are being calculated`);
    users.add(name);
    try {
      return await preview(asked, { ...parts, kinds });
    } finally {
      users.delete(name);
    }
  };
}

async function preview(
  { incoming, namespace, visible }: AskedPreview,
  { kinds, ...parts }: PreviewParts & { kinds: readonly V3Kind[] },
): Promise<FlowPreview> {
  const { user, signal } = incoming;
  const { metadata, spec, asked, ...given } = readPreview(incoming);
  const objects = await parts.objects();
  const changes = policyChanges({ metadata, spec, asked, ...given }, { kinds, objects, namespace });
  const tiers = new TierAccess(parts.access, kinds);
  for (const change of changes) await mustMayWrite(user, change, { access: parts.access, tiers });
  const settled = await settledChanges(changes, { translator: new Translator(kinds, parts.release), objects });
  const turn = turns(signal);
  const found = await parts.store.pairs({ ...asked, visible, most: MOST_PAIRS, turn });
  const access = policyAccess(parts.access, user);
  const sees = await seenNamespaces(found.pairs, namespace, access);
  const verdicts = await askPairs({ objects, pairs: found.pairs, changes: settled, sees }, turn);
  const naming = readingOf(access, changes);
  const changed = verdicts.known.filter(({ before, after }) => before.verdict !== after.verdict);
  const shown: ChangedPair[] = [];
  for (const one of changed.sort(byWeight)) shown.push(await shownPair(one, naming));
  const { pairs, total, since, until } = found;
  return {
    ...{ apiVersion: groupVersion(FLOW_LOGS_API), kind: FLOW_PREVIEW_KIND },
    metadata: { ...metadata, ...(namespace === "" ? {} : { namespace }) },
    spec,
    status: {
      ...{ since, until, pairs: pairs.length, flows: pairs.reduce((sum, { flows }) => sum + flows, 0) },
      same: verdicts.known.length - changed.length,
      ...{ changed: shown, unknown: verdicts.unknown },
      notes: notesOf(pairs, total, verdicts.hidden),
    },
  };
}

/** Those that would be denied first. */
function byWeight(one: PairVerdicts, other: PairVerdicts): number {
  const denied = ({ after }: PairVerdicts) => (after.verdict === "Deny" ? 0 : 1);
  const [a, b] = [one.pair, other.pair];
  return denied(one) - denied(other) || b.connections - a.connections || b.packets - a.packets;
}

async function shownPair({ pair, before, after }: PairVerdicts, access: Pick<PolicyAccess, "mayRead">) {
  const { from, to, port, protocol, flows, connections, packets, bytes, ids } = pair;
  const decidedBy = before.by && (await shownHit(before.by, access));
  const thenBy = after.by && (await shownHit(after.by, access));
  return {
    ...{ from, to, port, protocol, verdict: before.verdict },
    // biome-ignore lint/suspicious/noThenProperty: a word, and no function: nothing awaits it
    then: after.verdict,
    ...(decidedBy ? { decidedBy } : {}),
    ...(thenBy ? { thenBy } : {}),
    ...{ flows, connections, packets, bytes, ids },
  };
}

/** What the reader has sent is no secret of others. */
function readingOf(access: PolicyAccess, changes: readonly PolicyChange[]): Pick<PolicyAccess, "mayRead"> {
  const key = (kind: string, namespace: string, name: string) => JSON.stringify([kind, namespace, name]);
  const given = new Set(
    changes
      .filter(({ object }) => object !== undefined)
      .map(({ served, v3, namespace, ref }) => key(v3 ? served.kind : `Kubernetes${served.kind}`, namespace, ref.name)),
  );
  return {
    mayRead: async (policy) =>
      given.has(key(policy.kind, policy.namespace, policy.name)) || (await access.mayRead(policy)),
  };
}

async function seenNamespaces(
  pairs: readonly FlowPair[],
  namespace: string,
  access: PolicyAccess,
): Promise<(name: string) => boolean> {
  if (namespace === "") return () => true;
  const seen = new Set([namespace]);
  const others = new Set(pairs.flatMap(({ from, to }) => [from.namespace, to.namespace]));
  others.delete(namespace);
  others.delete("");
  for (const name of [...others].slice(0, MOST_NAMESPACES)) if (await access.mayListFlows(name)) seen.add(name);
  return (name) => seen.has(name);
}

function notesOf(pairs: readonly FlowPair[], total: number, hidden: boolean): string[] {
  const has = (is: (pair: FlowPair) => boolean) => pairs.some(is);
  return [
    ...(total > pairs.length
      ? [`There are ${total} pairs: only the ${pairs.length} with most packets were asked about.`]
      : []),
    ...(hidden
      ? ["Ends in namespaces whose flows you may not list were asked about only where the flow was counted."]
      : []),
    ...(has(({ port, protocol }) => port === 0 && /^(?:TCP|UDP|SCTP)$/.test(protocol))
      ? ["Some flows have no port, because ports were merged: port 0 was asked about."]
      : []),
    ...(has(({ protocol }) => /^ICMP/.test(protocol))
      ? ["Flows have no ICMP types: echo requests were asked about."]
      : []),
  ];
}

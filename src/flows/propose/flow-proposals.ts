import type { Access } from "../../aggregated/access.ts";
import { FLOW_LOGS_API } from "../../api/names.ts";
import { groupVersion, type KubeObject } from "../../api/object.ts";
import {
  FLOW_PROPOSAL_KIND,
  type FlowProposal,
  type ProposalKind,
  type ProposedPolicy,
} from "../../api/protocol/flow-proposal.ts";
import type { UserInfo } from "../../apiserver/call.ts";
import type { ClusterObjects } from "../explain/cluster-objects.ts";
import { type PolicyAccess, policyAccess } from "../explain/policy-access.ts";
import { DEFAULT_TIER } from "../explain/rule-objects.ts";
import type { Condition } from "../query/query.ts";
import type { FlowStore } from "../store/flow-store.ts";
import type { Asked } from "../store/selection.ts";
import { turns } from "../turns.ts";
import { proposedPolicies } from "./proposed-policies.ts";
import { resolverPorts } from "./resolver-ports.ts";
import { LeftOut, type RulePair, rulePairs } from "./rule-pairs.ts";
import { podLabels } from "./workload-labels.ts";

/** Beyond these an answer is cut, and says so. */
const MOST_PAIRS = 2_000;
const MOST_POLICIES = 200;
const MOST_LEFT = 100;
/** Asked about one by one. */
const MOST_NAMESPACES = 100;
const MOST_NAMED = 5;

export interface ProposalParts {
  access: Access;
  objects(): Promise<ClusterObjects>;
}

export interface AskedProposal extends Asked {
  user: UserInfo;
  /** Of the request; empty: of the whole cluster, whose readers see everything. */
  namespace: string;
  kind: ProposalKind;
  egress: boolean;
  addresses: boolean;
}

type Sightings = Awaited<ReturnType<FlowStore["sightings"]>>;

/** Policies that allow the flows that were asked for, by labels that stay; as much of it as the reader may see. */
export async function proposePolicies(
  asked: AskedProposal,
  store: Pick<FlowStore, "sightings">,
  parts: ProposalParts,
): Promise<FlowProposal> {
  const { user, namespace, egress, kind, addresses, query } = asked;
  const found = await store.sightings(asked);
  const left = new LeftOut();
  const anyVerdict = query !== undefined && asksVerdict(query.condition);
  const all = await finished(rulePairs(found.sightings, { namespace, egress, anyVerdict }, left));
  const pairs = await finished(busiest(all));
  const namespaces = namespacesOf(pairs);
  const access = policyAccess(parts.access, user);
  const seen = namespace === "" ? namespaces : await seenOf(namespace, namespaces, access);
  const objects = await parts.objects();
  const pods = await finished(podLabels(objects, seen));
  const sees = (name: string) => namespace === "" || seen.has(name);
  const options = { kind, addresses, sees, pods, isResolver: resolverPorts(objects) };
  const policies = await finished(proposedPolicies(pairs, options, left));
  const unnamed = left.all();
  return {
    ...{ apiVersion: groupVersion(FLOW_LOGS_API), kind: FLOW_PROPOSAL_KIND, since: found.since, until: found.until },
    policies: policies.slice(0, MOST_POLICIES),
    left: unnamed.slice(0, MOST_LEFT),
    notes: [
      ...restNotes(asked, found, policies.length),
      ...hiddenNotes([...namespaces].filter((name) => !sees(name))),
      ...(await existingNotes(policies.slice(0, MOST_POLICIES), objects, access)),
      ...cutNotes(all.length, policies.length, unnamed.length),
    ],
  };
}

/** Sorted in pieces: there may be hundreds of thousands. */
function* busiest(pairs: readonly RulePair[]): Generator<void, RulePair[]> {
  let found: RulePair[] = [];
  for (let from = 0; from < pairs.length; from += MOST_PAIRS) {
    const more = [...found, ...pairs.slice(from, from + MOST_PAIRS)];
    found = more
      .sort((a, b) => b.sum.connections - a.sum.connections || (a.text < b.text ? -1 : 1))
      .slice(0, MOST_PAIRS);
    yield;
  }
  return found;
}

/** Calculations are in pieces, so that others get their turn in between. */
async function finished<T>(steps: Generator<void, T>): Promise<T> {
  const giveTurns = turns();
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
    await giveTurns();
  }
}

/** Then it says itself whether denied flows are meant. */
function asksVerdict(condition: Condition): boolean {
  switch (condition.is) {
    case "all":
    case "any":
      return condition.of.some(asksVerdict);
    case "not":
      return asksVerdict(condition.of);
    case "word":
      return false;
    case "field":
      return condition.field === "verdict";
  }
}

function namespacesOf(pairs: readonly RulePair[]): Set<string> {
  const ends = pairs.flatMap(({ own, peer }) => [own, peer]);
  return new Set(ends.filter(({ type }) => type === "Workload").map(({ namespace }) => namespace));
}

async function seenOf(own: string, namespaces: ReadonlySet<string>, access: PolicyAccess): Promise<Set<string>> {
  const seen = new Set([own]);
  for (const name of [...namespaces].slice(0, MOST_NAMESPACES))
    if (name !== own && (await access.mayListFlows(name))) seen.add(name);
  return seen;
}

function restNotes({ query, egress }: AskedProposal, { shed, nodes }: Sightings, policies: number): string[] {
  if (policies === 0) return [];
  const types = egress
    ? "other traffic of the selected pods is denied"
    : "other traffic to the selected pods is denied";
  const lost = [
    ...(shed.ports ? ["ports"] : []),
    ...(shed.addresses ? ["addresses"] : []),
    ...(shed.names ? ["names"] : []),
  ];
  const missing = nodes.silent.length + nodes.late.length;
  return [
    `Once applied, ${types}, also such as was not seen in this time.`,
    ...(query ? ["Only flows that the query selects are allowed."] : []),
    ...(lost.length > 0 ? [`Of some flows ${lost.join(" and ")} were merged for want of memory.`] : []),
    ...(missing > 0 ? [`Flows of ${missing} nodes are missing or late.`] : []),
  ];
}

function hiddenNotes(hidden: readonly string[]): string[] {
  if (hidden.length === 0) return [];
  const names = `${hidden.slice(0, MOST_NAMED).join(", ")}${hidden.length > MOST_NAMED ? " and others" : ""}`;
  return [`Rules for ${names} are for all pods there: labels are shown to who may list flows of a namespace.`];
}

/** Of the policies that the reader may get. */
async function existingNotes(
  policies: readonly ProposedPolicy[],
  objects: ClusterObjects,
  access: PolicyAccess,
): Promise<string[]> {
  const idOf = ({ metadata }: KubeObject, name = metadata.name) => `${metadata.namespace}/${name}`;
  const isKubernetes = policies[0]?.object.apiVersion.startsWith("networking.") ?? true;
  const there = new Set(
    (objects.get(isKubernetes ? "kubernetesPolicies" : "networkPolicies") ?? []).map((one) => idOf(one)),
  );
  const found: string[] = [];
  for (const { object } of policies) {
    const { name, namespace = "" } = object.metadata;
    if (!there.has(idOf(object)) && (isKubernetes || !there.has(idOf(object, `${DEFAULT_TIER}.${name}`)))) continue;
    const kind = isKubernetes ? "KubernetesNetworkPolicy" : "NetworkPolicy";
    if (await access.mayRead({ kind, tier: DEFAULT_TIER, namespace, name })) found.push(`${namespace}/${name}`);
  }
  if (found.length === 0) return [];
  const names = `${found.slice(0, MOST_NAMED).join(", ")}${found.length > MOST_NAMED ? " and others" : ""}`;
  return [`NetworkPolicy ${names} exists: kubectl apply replaces its rules.`];
}

function cutNotes(pairs: number, policies: number, left: number): string[] {
  return [
    ...(pairs > MOST_PAIRS
      ? [`There are ${pairs} pairs of ends and ports: rules are for the ${MOST_PAIRS} of most connections.`]
      : []),
    ...(policies > MOST_POLICIES ? [`There are ${policies} policies: these are the first ${MOST_POLICIES}.`] : []),
    ...(left > MOST_LEFT ? [`Of ${left} kinds of flows without a rule the first ${MOST_LEFT} are listed.`] : []),
  ];
}

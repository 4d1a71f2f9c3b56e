import type { PolicyHit } from "../../api/protocol/flow.ts";
import type { UnknownPairs } from "../../api/protocol/flow-preview.ts";
import { type DecidedEnd, endQuestions, packetOf } from "../explain/ask-nodes.ts";
import type { ClusterObjects } from "../explain/cluster-objects.ts";
import { flowPlaces } from "../explain/flow-places.ts";
import { countedAt, isLost, lastHit, lostText, NO_END, placesUnknown, protocolUnknown } from "../explain/flow-words.ts";
import type { FlowPair } from "../store/flow-pairs.ts";
import type { Turns } from "../turns.ts";
import { type AskedObjects, askedObjects } from "./asked-objects.ts";
import { type ComparedEnd, compareNode, type NodeQuestion } from "./compare-node.ts";
import type { SettledChange } from "./settled-change.ts";

export interface PairVerdicts {
  pair: FlowPair;
  before: PairVerdict;
  after: PairVerdict;
}

interface PairVerdict {
  verdict: "Allow" | "Deny";
  /** What decides at the end where before and after differ. */
  by: PolicyHit | undefined;
}

export interface AskedPairs {
  known: PairVerdicts[];
  unknown: UnknownPairs[];
  /** Some ends were not asked: they are not for the reader. */
  hidden: boolean;
}

export interface PairsParts {
  objects: ClusterObjects;
  pairs: readonly FlowPair[];
  changes: readonly SettledChange[];
  /** Whether the reader may see flows of a namespace. */
  sees(namespace: string): boolean;
}

/** Both ends of each pair, on their nodes, before and after. One node after the other, so that there is one model at a time. */
export async function askPairs({ objects, pairs, changes, sees }: PairsParts, turn: Turns): Promise<AskedPairs> {
  const asked = await askedObjects(objects, turn);
  const byNode = new Map<string, (NodeQuestion & { pair: FlowPair })[]>();
  const unknown = new Map<string, FlowPair[]>();
  const isUnknown = (pair: FlowPair, reason: string) => unknown.set(reason, [...(unknown.get(reason) ?? []), pair]);
  let hidden = false;
  for (const pair of pairs) {
    const found = questionsOf(pair, asked);
    await turn();
    if (typeof found === "string") {
      isUnknown(pair, found);
      continue;
    }
    const shown = found.filter(({ question }) => isShown(question.end, pair, sees));
    if (shown.length < found.length) hidden = true;
    if (shown.length === 0) isUnknown(pair, NO_END);
    for (const question of shown) {
      const { node } = question.question;
      const list = byNode.get(node);
      if (list) list.push({ ...question, pair });
      else byNode.set(node, [{ ...question, pair }]);
    }
  }
  const ends = new Map<FlowPair, ComparedEnd[]>();
  for (const [node, questions] of byNode) {
    const addresses = questions.flatMap(({ packet }) => [packet.source, packet.destination]);
    const compared = await compareNode({ node, questions, changes, objects: asked.about(addresses) }, turn);
    for (const [index, { pair }] of questions.entries())
      ends.set(pair, [...(ends.get(pair) ?? []), compared[index] as ComparedEnd]);
  }
  const known: PairVerdicts[] = [];
  for (const [pair, compared] of ends) {
    const lost = compared.flatMap(({ before, after }) => [before, after]).find(isLost);
    if (lost) isUnknown(pair, lostText(lost, pair));
    else known.push(verdictsOf(pair, compared));
  }
  return { known, unknown: [...unknown].map(([reason, of]) => unknownPairs(reason, of)), hidden };
}

function questionsOf({ key, sources, destinations }: FlowPair, asked: AskedObjects): NodeQuestion[] | string {
  const places = flowPlaces(key, { sources, destinations }, asked.ofEnds(key.from, key.to));
  if ("unknown" in places) return placesUnknown(places, key);
  const packet = packetOf(key, places.from, places.to);
  if (!packet) return protocolUnknown(key);
  const questions = endQuestions(places.from, places.to);
  return questions.length === 0 ? NO_END : questions.map((question) => ({ question, packet }));
}

/** As in explanations: an end in a namespace of others only where the flow itself shows it. */
function isShown(end: "egress" | "ingress", { key, reporters }: FlowPair, sees: (namespace: string) => boolean) {
  const { namespace } = end === "egress" ? key.from : key.to;
  const direction = end === "egress" ? "Egress" : "Ingress";
  return sees(namespace) || [...reporters].some((reporter) => countedAt({ reporter }).includes(direction));
}

function verdictsOf(pair: FlowPair, ends: readonly ComparedEnd[]): PairVerdicts {
  const isDenied = ({ verdict }: DecidedEnd) => verdict === "Deny";
  const before = ends.some((end) => isDenied(end.before)) ? "Deny" : "Allow";
  const after = ends.some((end) => isDenied(end.after)) ? "Deny" : "Allow";
  const where = ends.find((end) => isDenied(before === "Deny" ? end.before : end.after));
  const by = (end: DecidedEnd | undefined) => end && lastHit(end.hits);
  return {
    pair,
    before: { verdict: before, by: by(where?.before) },
    after: { verdict: after, by: by(where?.after) },
  };
}

function unknownPairs(reason: string, pairs: readonly FlowPair[]): UnknownPairs {
  const sum = (of: (pair: FlowPair) => number) => pairs.reduce((total, pair) => total + of(pair), 0);
  return {
    ...{ reason, pairs: pairs.length, flows: sum(({ flows }) => flows) },
    connections: sum(({ connections }) => connections),
    ...{ packets: sum(({ packets }) => packets), bytes: sum(({ bytes }) => bytes) },
  };
}

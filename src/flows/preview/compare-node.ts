import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { type Calculator, createCalculator } from "../../calc/calculator.ts";
import type { Packet } from "../../calc/model.ts";
import { ModelCopy } from "../../calc/model-copy.ts";
import { type DecidedEnd, decideEnd, type EndQuestion } from "../explain/ask-nodes.ts";
import type { ClusterObjects } from "../explain/cluster-objects.ts";
import { modelObjects } from "../explain/node-model.ts";
import type { Turns } from "../turns.ts";
import type { PolicyChange } from "./policy-changes.ts";

export interface NodeQuestion {
  question: EndQuestion;
  packet: Packet;
}

export interface ComparedEnd {
  before: DecidedEnd;
  after: DecidedEnd;
}

/** So many objects are calculated in one step: all at once would keep the event loop for tens of milliseconds. */
const AT_ONCE = 8;

/** What is set, or, if nothing is kept, removed. */
export interface NodeChange {
  change: Pick<PolicyChange, "kept" | "ref">;
  kept: KubeObject | undefined;
}

export interface NodeComparison {
  node: string;
  /** At least what is about packets between the addresses of the questions. */
  objects: ClusterObjects;
  questions: readonly NodeQuestion[];
  changes: readonly NodeChange[];
}

/** What the agent of a node decides, and what it would decide: one calculation, asked, changed as the agent's watch would change it, and asked again. */
export async function compareNode(
  { node, objects, questions, changes }: NodeComparison,
  turn: Turns,
): Promise<ComparedEnd[]> {
  const addresses = new Set(questions.flatMap(({ packet }) => [packet.source, packet.destination]));
  const calculator = createCalculator(node, vendorNames);
  const model = new ModelCopy();
  let count = 0;
  for (const object of modelObjects(objects, node, [...addresses])) {
    calculator.set(object);
    if (++count % AT_ONCE === 0) take(calculator, model);
    await turn();
  }
  calculator.inSync();
  const ask = async () => {
    take(calculator, model);
    const ends: DecidedEnd[] = [];
    for (const { packet, question } of questions) {
      ends.push(decideEnd(model, packet, question));
      await turn();
    }
    return ends;
  };
  const before = await ask();
  for (const { change, kept } of changes) {
    if (kept) calculator.set(kept);
    else calculator.remove(change.kept, change.ref);
  }
  const after = await ask();
  return questions.map((_, index) => ({ before: before[index]!, after: after[index]! }));
}

function take(calculator: Calculator, model: ModelCopy): void {
  const delta = calculator.takeDelta();
  if (delta) model.apply(delta);
}

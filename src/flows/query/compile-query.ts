import type { FlowKey } from "../../api/protocol/flow.ts";
import { type Address, parseAddress } from "../../kit/ip.ts";
import { type NamePair, type QueriedFlow, queryField, searchedNames } from "./fields.ts";
import { findsGlob, matchesGlob } from "./glob.ts";
import type { Condition, FlowQuery, ValueTest } from "./query.ts";

export interface CompiledQuery {
  /** Whether flows with this key match; undefined: what was counted decides. The caller may keep the answer with the key. */
  matchesKey(key: FlowKey): boolean | undefined;
  matches(flow: QueriedFlow): boolean;
}

/** A condition on a key, and on a flow; the first says undefined where only the second knows. */
interface Test {
  key(key: FlowKey): boolean | undefined;
  flow(flow: QueriedFlow): boolean;
}

export function compileQuery({ condition }: Pick<FlowQuery, "condition">): CompiledQuery {
  const test = testOf(condition);
  return { matchesKey: (key) => test.key(key), matches: (flow) => test.flow(flow) };
}

function testOf(condition: Condition): Test {
  switch (condition.is) {
    case "all":
      return every(condition.of.map(testOf), true);
    case "any":
      return every(condition.of.map(testOf), false);
    case "not":
      return not(testOf(condition.of));
    case "word":
      return ofKey((key) => searchedNames(key).some((name) => findsGlob(condition.glob, name)));
    case "field":
      return fieldTest(condition);
  }
}

/** All hold (`goal` true), or one holds (`goal` false): either way the first that is not as the goal ends it. */
function every(tests: readonly Test[], goal: boolean): Test {
  return {
    key(key) {
      let isKnown = true;
      for (const test of tests) {
        const found = test.key(key);
        if (found === !goal) return !goal;
        if (found === undefined) isKnown = false;
      }
      return isKnown ? goal : undefined;
    },
    flow(flow) {
      for (const test of tests) if (test.flow(flow) !== goal) return !goal;
      return goal;
    },
  };
}

function not(test: Test): Test {
  return {
    key(key) {
      const found = test.key(key);
      return found === undefined ? undefined : !found;
    },
    flow: (flow) => !test.flow(flow),
  };
}

function ofKey(matches: (key: FlowKey) => boolean): Test {
  return { key: matches, flow: ({ key }) => matches(key) };
}

function ofCounts(matches: (flow: QueriedFlow) => boolean): Test {
  return { key: () => undefined, flow: matches };
}

function fieldTest({ field: name, values }: Extract<Condition, { is: "field" }>): Test {
  const field = queryField(name);
  switch (field.kind) {
    case "pairs":
      return ofKey((key) => field.of(key).some((pair) => values.some((value) => isPair(value, pair))));
    case "names":
      return ofKey((key) => field.of(key).some((text) => values.some((value) => isName(value, text))));
    case "labels":
      return ofKey((key) => field.of(key).some((labels) => values.some((value) => hasLabel(value, labels))));
    case "choice": {
      const choices = new Set(values.map((value) => (value.is === "choice" ? value.choice : "")));
      return ofKey((key) => choices.has(field.of(key)));
    }
    case "port":
      return ofKey((key) => isWithin(values, field.of(key)));
    case "amount":
      return ofCounts((flow) => isWithin(values, field.counted(flow)));
    case "addresses":
      return ofCounts((flow) => field.counted(flow).some((text) => isAddress(values, text)));
    case "time":
      // Bounds of time are the query's own and no condition.
      return every([], true);
  }
}

function isPair(value: ValueTest, pair: NamePair): boolean {
  if (value.is !== "pair") return false;
  if (value.namespace && !matchesGlob(value.namespace, pair.namespace)) return false;
  return matchesGlob(value.name, pair.name);
}

function isName(value: ValueTest, text: string): boolean {
  return value.is === "name" && matchesGlob(value.glob, text);
}

function hasLabel(value: ValueTest, labels: Readonly<Record<string, string>>): boolean {
  if (value.is !== "label" || !Object.hasOwn(labels, value.key)) return false;
  return value.value === undefined || matchesGlob(value.value, labels[value.key] as string);
}

function isWithin(values: readonly ValueTest[], number: number): boolean {
  return values.some((value) => value.is === "range" && number >= value.least && number <= value.most);
}

function isAddress(values: readonly ValueTest[], text: string): boolean {
  const address = known(text);
  if (!address) return false;
  const { family, value: number } = address;
  return values.some(
    (value) =>
      value.is === "addresses" && value.family === family.name && number >= value.first && number <= value.last,
  );
}

/** Addresses come again with every query; reading one costs more than finding it. */
const MOST_KNOWN = 65_536;
const addresses = new Map<string, Address | undefined>();

function known(text: string): Address | undefined {
  const found = addresses.get(text);
  if (found || addresses.has(text)) return found;
  if (addresses.size >= MOST_KNOWN) addresses.clear();
  const address = parseAddress(text);
  addresses.set(text, address);
  return address;
}

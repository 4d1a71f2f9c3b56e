import { isMap, isScalar, type JsonMap } from "./json.ts";
import { itemElement, UntypableValue } from "./list-items.ts";
import { displayPathElement, fieldElement } from "./path-element.ts";
import { kindOf, type ListType, type MapType, type ScalarType, type TypeNode } from "./type-node.ts";

interface Problem {
  path: string;
  message: string;
}

/** Everything about `value` that does not fit its type, one sentence each; empty when it fits. */
export function validate(type: TypeNode, value: unknown, options: { allowDuplicates: boolean }): string[] {
  const problems: Problem[] = [];
  check(type, value, { path: "", allowDuplicates: options.allowDuplicates, problems });
  return problems.map(({ path, message: says }) => (path === "" ? says : `${path}: ${says}`));
}

interface Visit {
  path: string;
  allowDuplicates: boolean;
  problems: Problem[];
}

function check(type: TypeNode, value: unknown, at: Visit): void {
  switch (kindOf(type, value)) {
    case "map":
      checkMap(type.map!, value, at);
      break;
    case "list":
      checkList(type.list!, value, at);
      break;
    case "scalar":
      checkScalar(type.scalar!, value, at);
      break;
    default:
      at.problems.push({ path: at.path, message: "schema error: the type accepts no value" });
  }
}

function checkMap(map: MapType, value: unknown, at: Visit): void {
  if (value === null) return;
  if (!isMap(value)) {
    at.problems.push({ path: at.path, message: `expected map, got ${JSON.stringify(value)}` });
    return;
  }
  for (const name of Object.keys(value as JsonMap)) {
    const path = at.path + displayPathElement(fieldElement(name));
    const type = map.fields.get(name)?.type() ?? map.element?.();
    if (type === undefined) at.problems.push({ path, message: "field not declared in schema" });
    else check(type, value[name], { ...at, path });
  }
}

function checkList(list: ListType, value: unknown, at: Visit): void {
  if (value === null) return;
  if (!Array.isArray(value)) {
    at.problems.push({ path: at.path, message: `expected list, got ${JSON.stringify(value)}` });
    return;
  }
  const seen = new Set<string>();
  for (const [index, item] of value.entries()) {
    const element = list.atomic ? `i:${index}` : elementOrProblem(list, item, index, at);
    if (element === undefined) return;
    if (seen.has(element) && !at.allowDuplicates) {
      at.problems.push({ path: at.path, message: `duplicate entries for key ${displayPathElement(element)}` });
    }
    seen.add(element);
    check(list.element(), item, { ...at, path: at.path + displayPathElement(element) });
  }
}

function elementOrProblem(list: ListType, item: unknown, index: number, at: Visit): string | undefined {
  try {
    return itemElement(list, item);
  } catch (error) {
    if (!(error instanceof UntypableValue)) throw error;
    at.problems.push({ path: at.path, message: `element ${index}: ${error.message}` });
    return undefined;
  }
}

const EXPECTED: Record<ScalarType, { says: string; fits: (value: unknown) => boolean }> = {
  numeric: { says: "numeric (int or float)", fits: (value) => typeof value === "number" },
  string: { says: "string", fits: (value) => typeof value === "string" },
  boolean: { says: "boolean", fits: (value) => typeof value === "boolean" },
  untyped: { says: "any scalar", fits: isScalar },
};

function checkScalar(scalar: ScalarType, value: unknown, at: Visit): void {
  if (value === null) return;
  const expected = EXPECTED[scalar];
  if (expected === undefined) {
    at.problems.push({ path: at.path, message: `unexpected scalar type in schema: ${String(scalar)}` });
  } else if (!expected.fits(value)) {
    at.problems.push({ path: at.path, message: `expected ${expected.says}, got ${JSON.stringify(value)}` });
  }
}

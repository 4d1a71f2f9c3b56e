import { describe, expect, it } from "vitest";
import { compare } from "../../src/apiserver/fields/compare.ts";
import {
  difference,
  type FieldSet,
  intersection,
  readFieldSet,
  recursiveDifference,
  union,
} from "../../src/apiserver/fields/field-set.ts";
import { merge } from "../../src/apiserver/fields/merge.ts";
import { displayPathElement, readPathElement } from "../../src/apiserver/fields/path-element.ts";
import { reconcile } from "../../src/apiserver/fields/reconcile.ts";
import { removeItems } from "../../src/apiserver/fields/remove-items.ts";
import { toFieldSet } from "../../src/apiserver/fields/to-field-set.ts";
import type { TypeNode } from "../../src/apiserver/fields/type-node.ts";
import { validate } from "../../src/apiserver/fields/validate.ts";
import { conformanceData, NO_CONFORMANCE_DATA } from "../support/conformance.ts";
import { extractItems, leavesOf, readTypes, renameSuffix, repeatTop, type TypeSchema } from "./apply-fixture.ts";

/** Single calls of the layers below apply: values with a type, and sets of fields. */
interface TypedCase {
  test: string;
  fn: "validate" | "merge" | "compare" | "toFieldSet" | "removeItems" | "extractItems" | "reconcile";
  schema: string;
  type: string;
  object: unknown;
  other?: unknown;
  set?: FieldSet;
  allowDuplicates?: boolean;
  appendKeyFields?: boolean;
  expectError?: boolean;
  result?: unknown;
}

interface SetCase {
  fn: string;
  text?: string;
  set?: FieldSet;
  other?: FieldSet;
  result?: unknown;
  display?: string;
  expectError?: boolean;
  unknownType?: boolean;
}

/** Sets are compared as text, because the order of their elements is part of the contract. */
function callTyped(type: TypeNode, call: TypedCase): { got: unknown; wanted: unknown } {
  const { object, other, set } = call;
  switch (call.fn) {
    case "validate": {
      const problems = validate(type, object, { allowDuplicates: call.allowDuplicates ?? false });
      return { got: problems.length > 0, wanted: call.expectError ?? false };
    }
    case "merge":
      return { got: merge(type, object, other), wanted: call.result };
    case "compare": {
      const { added, modified, removed } = compare(type, object, other);
      const result = call.result as { added: FieldSet; modified: FieldSet; removed: FieldSet };
      return {
        got: JSON.stringify([added, modified, removed]),
        wanted: JSON.stringify([result.added, result.modified, result.removed]),
      };
    }
    case "toFieldSet":
      return { got: JSON.stringify(toFieldSet(type, object)), wanted: JSON.stringify(call.result) };
    case "removeItems":
      return { got: removeItems(type, object, set!), wanted: call.result };
    case "extractItems":
      return { got: extractItems(type, object, set!, call.appendKeyFields), wanted: call.result };
    case "reconcile":
      return { got: JSON.stringify(reconcile(type, set!)), wanted: JSON.stringify(call.result ?? set) };
  }
}

function callSet(call: SetCase): { got: unknown; wanted: unknown } {
  switch (call.fn) {
    case "setFromJSON":
      return { got: JSON.stringify(readFieldSet(JSON.parse(call.text!))), wanted: JSON.stringify(call.result) };
    case "pathElementFromText": {
      const element = readPathElement(call.text!);
      if (element === undefined) return { got: "unknown", wanted: call.unknownType ? "unknown" : call.result };
      const display = call.display === undefined ? undefined : displayPathElement(element);
      return { got: [element, display], wanted: [call.result, call.display] };
    }
    case "leaves":
      return { got: JSON.stringify(leavesOf(call.set!)), wanted: JSON.stringify(call.result) };
    default: {
      const operation = { union, intersection, difference, recursiveDifference }[call.fn]!;
      return { got: JSON.stringify(operation(call.set!, call.other!)), wanted: JSON.stringify(call.result) };
    }
  }
}

function agreeOn<T>(title: string, calls: readonly T[], name: (call: T) => string, check: (call: T) => void): void {
  const failed: string[] = [];
  for (const call of calls) {
    try {
      check(call);
    } catch (error) {
      failed.push(`${name(call)}: ${(error as Error).message}`);
    }
  }
  console.log(`${title}: ${calls.length} cases, ${calls.length - failed.length} agree`);
  expect(failed).toEqual([]);
}

describe("typed values, as the public suite calls them", () => {
  const data = conformanceData<{ schemas: Record<string, TypeSchema>; typed: TypedCase[] }>("typed-value-cases.json");
  it.skipIf(data === undefined)(data ? `agrees on all ${data.typed.length} calls` : NO_CONFORMANCE_DATA, () => {
    const schemas = Object.fromEntries(Object.entries(data!.schemas).map(([id, schema]) => [id, readTypes(schema)]));
    agreeOn(
      "typed values",
      data!.typed,
      (call) => `${call.fn} ${call.test} ${JSON.stringify(call)}`,
      (call) => {
        const { got, wanted } = callTyped(schemas[call.schema]!(call.type), call);
        expect(got).toEqual(wanted);
      },
    );
  });
});

describe("field sets, as the public suite calls them", () => {
  const data = conformanceData<{ fieldsets: SetCase[] }>("fieldset-cases.json");
  it.skipIf(data === undefined)(data ? `agrees on all ${data.fieldsets.length} calls` : NO_CONFORMANCE_DATA, () => {
    agreeOn(
      "field sets",
      data!.fieldsets,
      (call) => JSON.stringify(call),
      (call) => {
        if (call.expectError && !call.unknownType) {
          expect(() => callSet(call)).toThrow();
          return;
        }
        const { got, wanted } = callSet(call);
        expect(got).toEqual(wanted);
      },
    );
  });
});

describe("the suite's own converters", () => {
  const data = conformanceData<{ conversions: Conversion[] }>("server-side-apply-cases.json");
  it.skipIf(data === undefined)(data ? "convert as recorded" : NO_CONFORMANCE_DATA, () => {
    const calls = data!.conversions.filter(
      ({ converter }) => converter === "renameSuffix" || converter === "repeatKeys",
    );
    agreeOn(
      "conversions",
      calls,
      (call) => JSON.stringify(call),
      (call) => {
        if (call.error !== undefined) return;
        const times = Number(call.toVersion.slice(1));
        const got =
          call.converter === "renameSuffix"
            ? renameSuffix(call.object, call.fromType, call.toVersion)
            : repeatTop(call.object, times);
        expect(got).toEqual(call.result);
      },
    );
  });
});

interface Conversion {
  converter: string;
  fromType: string;
  toVersion: string;
  object: unknown;
  result?: unknown;
  error?: string;
}

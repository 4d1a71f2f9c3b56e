import { describe, expect, it } from "vitest";
import type { Definitions, Schema } from "../../src/api/schema/schema.ts";
import { applyJsonPatch } from "../../src/apiserver/patch/json-patch.ts";
import { PatchError } from "../../src/apiserver/patch/patch-error.ts";
import { applyStrategicPatch, type PatchType, patchTypeOf } from "../../src/apiserver/patch/strategic-patch.ts";
import { conformanceData, NO_CONFORMANCE_DATA } from "../support/conformance.ts";

/** Runs every case, prints one line of counts, and fails with the list of cases that disagree. */
function agreeOnAll<C>(
  what: string,
  cases: readonly C[],
  nameOf: (c: C, i: number) => string,
  suite: {
    leftOut: (c: C) => string | undefined;
    check: (c: C) => void;
  },
) {
  const leftOut: string[] = [];
  const disagree: string[] = [];
  let agree = 0;
  for (const [i, c] of cases.entries()) {
    const reason = suite.leftOut(c);
    if (reason !== undefined) {
      leftOut.push(`${nameOf(c, i)} (${reason})`);
      continue;
    }
    try {
      suite.check(c);
      agree++;
    } catch (error) {
      disagree.push(`${nameOf(c, i)}: ${error instanceof Error ? error.message : error}`);
    }
  }
  console.log(`${what}: ${cases.length} cases, ${agree} agree; left out: ${leftOut.join(", ") || "none"}`);
  expect(disagree).toEqual([]);
}

interface JsonPatchCase {
  comment?: string;
  doc: unknown;
  patch: unknown;
  expected?: unknown;
  error?: string;
  disabled?: boolean;
}

describe("RFC 6902, the public JSON patch cases", () => {
  for (const [what, file] of [
    ["JSON patch", "json-patch-cases.json"],
    ["JSON patch, examples of the RFC", "json-patch-spec-cases.json"],
  ] as const) {
    const cases = conformanceData<JsonPatchCase[]>(file);
    it.skipIf(!cases)(cases ? `agrees with ${file}` : `${file}: ${NO_CONFORMANCE_DATA}`, () => {
      agreeOnAll(what, cases!, (c, i) => c.comment ?? `#${i}`, {
        leftOut: (c) => (c.disabled ? "disabled upstream" : undefined),
        check: (c) => {
          if (c.error !== undefined) expect(() => applyJsonPatch(c.doc, c.patch)).toThrow(PatchError);
          // A case without an expectation only asks that the patch be accepted.
          else expect(applyJsonPatch(c.doc, c.patch)).toEqual("expected" in c ? c.expected : expect.anything());
        },
      });
    });
  }
});

interface Outcome {
  patch?: unknown;
  result?: unknown;
  conflict?: boolean;
  createError?: string;
  applyError?: string;
  error?: string;
}

interface StrategicCase {
  name: string;
  table: string;
  schema: string;
  original?: unknown;
  modified?: unknown;
  current?: unknown;
  patch?: unknown;
  originalText?: string;
  patchText?: string;
  beyondDouble?: boolean;
  twoWay?: Outcome;
  threeWay?: Outcome;
  apply?: Outcome;
  sort?: Outcome;
  twoWayBySchemaKind?: Record<string, Outcome>;
  threeWayBySchemaKind?: Record<string, Outcome>;
}

interface FieldType {
  type: string;
  ref?: string;
  items?: FieldType;
  patchStrategy?: string[];
  patchMergeKey?: string;
}

interface StrategicData {
  types: Record<string, { fields: Record<string, FieldType> }>;
  cases: StrategicCase[];
}

/** The types of the cases, said in the schema language Kubernetes publishes its own types in. */
function definitionsOf(types: StrategicData["types"]): Definitions {
  const schemaOf = (field: FieldType): Schema => ({
    ...(field.ref ? { $ref: `#/definitions/${field.ref}` } : {}),
    ...(field.type === "list" ? { type: "array", items: schemaOf(field.items!) } : {}),
    ...(field.type === "map" ? { type: "object", additionalProperties: schemaOf(field.items!) } : {}),
    ...(field.patchStrategy ? { "x-kubernetes-patch-strategy": field.patchStrategy.join(",") } : {}),
    ...(field.patchMergeKey ? { "x-kubernetes-patch-merge-key": field.patchMergeKey } : {}),
  });
  return Object.fromEntries(
    Object.entries(types).map(([name, { fields }]) => [
      name,
      // Types that hold raw JSON are published as objects without properties.
      name === "JSONItem" || name === "RawExtension"
        ? { type: "object" }
        : {
            type: "object",
            properties: Object.fromEntries(Object.entries(fields).map(([key, field]) => [key, schemaOf(field)])),
          },
    ]),
  );
}

function checkApply(document: unknown, patch: unknown, expected: Outcome, type: PatchType) {
  if (expected.error ?? expected.applyError)
    expect(() => applyStrategicPatch(document, patch, type)).toThrow(PatchError);
  else expect(applyStrategicPatch(document, patch, type), "result").toEqual(expected.result);
}

/** Clients make patches, servers apply them: of a case that makes one, the patch Kubernetes made is applied. */
function checkStrategicCase(c: StrategicCase, type: PatchType) {
  const { twoWay, threeWay } = madePatches(c);
  if (twoWay) checkApply(c.original, twoWay.patch, twoWay, type);
  if (threeWay) checkApply(c.current, threeWay.patch, threeWay, type);
  // Text that is not JSON never becomes a document: what is left of it is a string.
  if (c.apply) checkApply(parsed(c.originalText) ?? c.original, parsed(c.patchText) ?? c.patch, c.apply, type);
}

/** Our types are read from published schemas, as Kubernetes' second source (openapi-v2) reads its own. */
function madePatches(c: StrategicCase): { twoWay: Outcome | undefined; threeWay: Outcome | undefined } {
  const made = (outcome: Outcome | undefined) => (outcome?.patch === undefined ? undefined : outcome);
  return {
    twoWay: made(c.twoWay ?? c.twoWayBySchemaKind?.["openapi-v2"]),
    threeWay: made(c.threeWay ?? c.threeWayBySchemaKind?.["openapi-v2"]),
  };
}

function leftOutOf(c: StrategicCase): string | undefined {
  if (c.beyondDouble) return "a number above 2^53; numbers here are doubles";
  const { twoWay, threeWay } = madePatches(c);
  return twoWay || threeWay || c.apply ? undefined : "only clients sort, and refuse to make a patch";
}

function parsed(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return text;
  }
}

describe("strategic merge patch, Kubernetes' own cases", () => {
  const data = conformanceData<StrategicData>("strategic-merge-patch-cases.json");
  it.skipIf(!data)(data ? "agrees on applying" : NO_CONFORMANCE_DATA, () => {
    const definitions = definitionsOf(data!.types);
    const types = new Map(Object.keys(data!.types).map((name) => [name, patchTypeOf(definitions[name]!, definitions)]));
    agreeOnAll("strategic merge patch", data!.cases, (c) => c.name, {
      leftOut: leftOutOf,
      check: (c) => checkStrategicCase(c, types.get(c.schema)!),
    });
  });
});

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type Noun, vendorNames } from "../../src/api/names.ts";
import { groupVersion, type KubeObject } from "../../src/api/object.ts";
import { RESOURCES } from "../../src/api/resources/all.ts";
import { policyRule } from "../../src/api/resources/policy-rule.ts";
import { placesOf } from "../../src/api/resources/resource.ts";
import type { Schema } from "../../src/api/schema/schema.ts";
import { FIXED_VALUES } from "../../src/api/tables/fixed-values.ts";
import { REFUSED_FIELDS } from "../../src/api/tables/refused-fields.ts";
import { validateObject } from "../../src/api/validation/validate.ts";
import { differingFields, type KindTable, laidOver, leavesOf, makesADifference, type Shown } from "./field-table.ts";
import { INSTALLATION_TABLES } from "./installation-fields.ts";
import { NETWORK_TABLES } from "./network-fields.ts";
import { POLICY_TABLES } from "./policy-fields.ts";

/**
 * What is accepted has an effect, in every kind that people write. The fields of DataplaneConfiguration, which are those of one program, are in
 * `every-field.test.ts`.
 */
const TABLES = [...INSTALLATION_TABLES, ...NETWORK_TABLES, ...POLICY_TABLES];
/** The service writes these, and nobody else. */
const WRITTEN_BY_SERVICE: readonly Noun[] = [
  "status",
  "clusterInformation",
  "ipamBlock",
  "blockAffinity",
  "ipamHandle",
];

const resourceOf = (noun: Noun) => RESOURCES.find((resource) => resource.noun === noun)!;
const schemaOf = (noun: KindTable["noun"]): Schema => (noun === "rule" ? policyRule : resourceOf(noun).spec);
const fixedIn = (noun: KindTable["noun"]) => (noun === "rule" ? {} : (FIXED_VALUES[noun] ?? {}));
const isFixed = (noun: KindTable["noun"], path: string) => Object.hasOwn(fixedIn(noun), `spec.${path}`);
const baseOf = ({ base = {} }: KindTable, shown: Extract<Shown, { set: object }>) => shown.base ?? base;

/** An object of the kind with one field set, and what is refused of it. */
function refusalsOf(noun: Noun, path: string, value: unknown): string[] {
  const resource = resourceOf(noun);
  const spec = path.split(".").reduceRight<unknown>((inner, name) => ({ [name]: inner }), value);
  const { served } = placesOf(resource, vendorNames);
  const object = { apiVersion: groupVersion(served), kind: served.kind, metadata: { name: "default" }, spec };
  return validateObject(object as unknown as KubeObject)
    .filter((problem) => problem.path === `spec.${path}`)
    .map(({ code }) => code);
}

describe("every kind that people write", () => {
  it("has a table here, or says why not", () => {
    const kinds = RESOURCES.filter(({ noun, spec }) => leavesOf(spec).length > 0 && !WRITTEN_BY_SERVICE.includes(noun));
    const named = [...TABLES.map(({ noun }) => noun), "dataplaneConfiguration"];
    expect(named.sort()).toEqual([...kinds.map(({ noun }) => noun), "rule"].sort());
  });
});

describe.each(TABLES.map((table) => [table.noun, table] as const))("every field of %s", (noun, table) => {
  const leaves = leavesOf(schemaOf(noun));
  const shown = Object.entries(table.fields);
  const seen = shown.flatMap(([path, one]) => ("set" in one ? [[path, one] as const] : []));
  const scenarios = shown.flatMap(([path, one]) => ("scenario" in one ? [[path, one.scenario] as const] : []));

  it("is in its table, and no other", () => {
    expect(Object.keys(table.fields).sort()).toEqual(leaves.filter((path) => !isFixed(noun, path)).sort());
  });

  it.each(seen)("%s makes a difference", (path, one) => {
    const base = baseOf(table, one);
    const spec = laidOver(base, one.set);
    expect(differingFields(leaves, base, spec)).toEqual([path]);
    expect(makesADifference(one.seenIn ?? table.seenIn, base, spec)).toBe(true);
  });

  it.each(scenarios)("%s is set by %s", (path, file) => {
    const field = path.slice(path.lastIndexOf(".") + 1);
    expect(readFileSync(new URL(`../../${file}`, import.meta.url), "utf8")).toContain(field);
  });

  it("that was planted and did nothing would fail", () => {
    // A rule with a criterion that nobody knows denies: it is seen, and never matches more.
    const deniesUnknown = noun === "rule";
    for (const [, one] of seen) {
      const base = baseOf(table, one);
      expect(makesADifference(one.seenIn ?? table.seenIn, base, { ...base, planted: "Enabled" })).toBe(deniesUnknown);
    }
    const schema = schemaOf(noun);
    const planted = leavesOf({ ...schema, properties: { ...schema.properties, planted: { type: "string" } } });
    expect(planted.filter((path) => !isFixed(noun, path)).sort()).not.toEqual(Object.keys(table.fields).sort());
  });

  it("that has one value, or is refused, is refused by name when it is written", () => {
    const fixed = Object.entries(fixedIn(noun));
    for (const [path, { value }] of fixed) {
      const other = typeof value === "boolean" ? !value : typeof value === "number" ? value + 1 : "Disabled";
      const field = path.slice("spec.".length);
      expect([path, refusalsOf(noun as Noun, field, other)]).toEqual([path, ["VALUE_WITHOUT_EFFECT"]]);
      expect([path, refusalsOf(noun as Noun, field, value)]).toEqual([path, []]);
    }
    const refused = noun === "rule" ? [] : Object.keys(REFUSED_FIELDS[noun] ?? {});
    for (const path of refused) {
      expect([path, refusalsOf(noun as Noun, path.slice("spec.".length), "1s")]).toEqual([path, ["FIELD_REFUSED"]]);
    }
    console.info(
      `${noun}: ${seen.length} fields seen to make a difference, ${scenarios.length} by a scenario, ` +
        `${shown.length - seen.length - scenarios.length} with nothing to see, ${fixed.length} with one value, ${refused.length} refused by name`,
    );
  });
});

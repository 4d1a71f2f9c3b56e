import { describe, expect, it } from "vitest";
import { type FieldSet, pathsOf } from "../../src/apiserver/fields/field-set.ts";
import { merge } from "../../src/apiserver/fields/merge.ts";
import { displayPath } from "../../src/apiserver/fields/path-element.ts";
import {
  apply,
  type Managers,
  OwnershipConflict,
  type TypedValue,
  update,
} from "../../src/apiserver/fields/updater.ts";
import { validate } from "../../src/apiserver/fields/validate.ts";
import { conformanceData, NO_CONFORMANCE_DATA } from "../support/conformance.ts";
import {
  type ApplyContext,
  type ConverterId,
  extractItems,
  leavesOf,
  readTypes,
  type TypeSchema,
  versionsOf,
} from "./apply-fixture.ts";

/** Whole histories of an object: who wrote what, and what it, its owners and the conflicts were after every step. */
interface Operation {
  op: "Apply" | "ForceApply" | "ExtractApply" | "Update" | "ChangeSchema" | "SetServedVersions";
  manager: string;
  apiVersion: string;
  object: unknown;
  objectRef?: string;
  expectedConflicts?: { manager: string; text: string }[];
  expectError?: boolean;
  schema?: string;
  rootTypes?: Record<string, string>;
  versions?: string[];
  after?: { object: unknown; managers: OwnersOnPaper };
}
type OwnersOnPaper = Record<string, { apiVersion: string; applied: boolean; fields: FieldSet }>;

interface Case {
  name: string;
  schema: string;
  rootTypes: Record<string, string>;
  converter: ConverterId;
  servedVersions?: string[];
  ignoreFilter?: Record<string, FieldSet>;
  ignoredFields?: Record<string, FieldSet>;
  operations: Operation[];
  fails?: boolean;
  expectedObject?: unknown;
  expectedObjectRef?: string;
  expectedObjectVersion?: string;
  expectedManagers?: OwnersOnPaper;
}

interface Suite {
  schemas: Record<string, TypeSchema>;
  objects?: Record<string, unknown>;
  cases: Case[];
}

class History {
  live: TypedValue | undefined;
  managers: Managers = new Map();
  private readonly world: ApplyContext;
  private readonly suite: Suite;

  constructor(suite: Suite, story: Case) {
    this.suite = suite;
    this.world = {
      converter: story.converter,
      served: story.servedVersions ?? [],
      typeOf: this.typesOf(story.schema, story.rootTypes),
      ignored: story.ignoreFilter ?? story.ignoredFields ?? {},
    };
  }

  private typesOf(schema: string, rootTypes: Record<string, string>): ApplyContext["typeOf"] {
    const types = readTypes(this.suite.schemas[schema]!);
    return (version) => types(rootTypes[version] ?? rootTypes["*"] ?? version);
  }

  run(operation: Operation): void {
    switch (operation.op) {
      case "SetServedVersions":
        this.world.served = operation.versions!;
        return;
      case "ChangeSchema":
        this.world.typeOf = this.typesOf(operation.schema!, operation.rootTypes!);
        if (this.live) this.live = { ...this.live, type: this.world.typeOf(this.live.version) };
        return;
      default:
        this.write(operation);
    }
  }

  private write(operation: Operation): void {
    const { op, manager, apiVersion } = operation;
    const versions = versionsOf(this.world);
    const value = operation.objectRef === undefined ? operation.object : this.suite.objects![operation.objectRef];
    const given = { version: apiVersion, type: this.world.typeOf(apiVersion), value };
    const problems = validate(given.type, given.value, { allowDuplicates: op === "Update" });
    if (problems.length > 0) throw new Error(problems.join("\n"));
    const born = this.live === undefined;
    this.live = born ? { ...given, value: null } : versions.convert(this.live!, apiVersion)!;
    if (op === "Update") {
      this.managers = update(versions, this.live, given, this.managers, manager).managers;
      this.live = given;
      return;
    }
    const config = op === "ExtractApply" && !born ? this.withExtracted(given, manager) : given;
    const result = apply(versions, this.live, config, this.managers, { manager, force: op !== "Apply" });
    this.managers = result.managers;
    this.live = result.object ?? this.live;
  }

  private withExtracted(given: TypedValue, manager: string): TypedValue {
    const owned = this.managers.get(manager);
    if (owned && owned.version !== given.version) throw new Error("the manager's entry has another version");
    const mine = owned ? extractItems(given.type, this.live!.value, leavesOf(owned.set)) : null;
    return { ...given, value: merge(given.type, mine, given.value) };
  }

  objectIn(version: string | undefined): unknown {
    const live = this.live!;
    return version === undefined ? live.value : versionsOf(this.world).convert(live, version)?.value;
  }

  owners(): Record<string, { apiVersion: string; applied: boolean; fields: string }> {
    return Object.fromEntries(
      [...this.managers].map(([manager, { version, applied, set }]) => [
        manager,
        { apiVersion: version, applied, fields: JSON.stringify(set) },
      ]),
    );
  }
}

function onPaper(owners: OwnersOnPaper) {
  return Object.fromEntries(
    Object.entries(owners).map(([manager, entry]) => [manager, { ...entry, fields: JSON.stringify(entry.fields) }]),
  );
}

function conflictsOf(error: unknown): string[] {
  if (!(error instanceof OwnershipConflict)) throw error;
  return [...error.conflicts]
    .flatMap(([manager, set]) => pathsOf(set).map((path) => `${manager} ${displayPath(path)}`))
    .sort();
}

function play(suite: Suite, story: Case): void {
  const history = new History(suite, story);
  for (const operation of story.operations) {
    if (operation.expectedConflicts) {
      let refused: string[] = [];
      try {
        history.run(operation);
      } catch (error) {
        refused = conflictsOf(error);
      }
      expect(refused).toEqual(operation.expectedConflicts.map(({ manager, text }) => `${manager} ${text}`).sort());
    } else if (operation.expectError) {
      expect(() => history.run(operation)).toThrow();
    } else {
      history.run(operation);
    }
    if (operation.after && !operation.expectError) {
      expect(history.objectIn(undefined)).toEqual(operation.after.object);
      expect(history.owners()).toEqual(onPaper(operation.after.managers));
    }
  }
  if (story.fails) return;
  const expected = story.expectedObjectRef ? suite.objects![story.expectedObjectRef] : story.expectedObject;
  expect(history.objectIn(story.expectedObjectVersion)).toEqual(expected);
  expect(history.owners()).toEqual(onPaper(story.expectedManagers!));
}

describe.each([
  ["server-side apply", "server-side-apply-cases.json"],
  ["server-side apply on real objects", "server-side-apply-real-cases.json"],
])("%s, as the public suite tells it", (title, file) => {
  const suite = conformanceData<Suite>(file);
  it.skipIf(suite === undefined)(suite ? `agrees on all ${suite.cases.length} cases` : NO_CONFORMANCE_DATA, () => {
    const failed: string[] = [];
    for (const story of suite!.cases) {
      try {
        play(suite!, story);
      } catch (error) {
        failed.push(`${story.name}: ${(error as Error).message}`);
      }
    }
    console.log(`${title}: ${suite!.cases.length} cases, ${suite!.cases.length - failed.length} agree`);
    expect(failed).toEqual([]);
  });
});

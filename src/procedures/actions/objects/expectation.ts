import { isDeepStrictEqual } from "node:util";
import type { KubeObject } from "../../../api/object.ts";
import type { Work } from "../../action.ts";
import { errors } from "../errors.ts";
import { awaitObjects, type Source } from "./await-objects.ts";
import { kindOf, nameOf, readTarget, type Target } from "./target.ts";

/** Something a step waits to see in one object. A path is a list of keys, so that a key may have dots. */
export type Expectation = { target: Target } & (
  | { exists: boolean }
  /** The value at the path is this; `null` means there is none. */
  | { path: readonly string[]; equals: unknown }
  /** The text at the path is matched by this regular expression. */
  | { path: readonly string[]; matches: string }
  /** There is an object, and no text or key below the path is this. */
  | { path: readonly string[]; lacks: string }
);

/** What is not yet as expected, in words; undefined when all is. */
function unmet(expectation: Expectation, object: KubeObject | undefined): string | undefined {
  const name = nameOf(expectation.target);
  if ("exists" in expectation) {
    if (expectation.exists === (object !== undefined)) return undefined;
    return expectation.exists ? `${name} to exist` : `${name} to be deleted`;
  }
  const path = expectation.path.join(".");
  const value = object === undefined ? undefined : valueAt(object, expectation.path);
  if ("matches" in expectation) {
    const matched = typeof value === "string" && new RegExp(expectation.matches, "m").test(value);
    return matched ? undefined : `${path} of ${name} to match ${expectation.matches}`;
  }
  if ("lacks" in expectation) {
    const isGone = object !== undefined && !JSON.stringify(value ?? null).includes(JSON.stringify(expectation.lacks));
    return isGone ? undefined : `${path} of ${name} to have no ${expectation.lacks}`;
  }
  if (isDeepStrictEqual(value ?? null, expectation.equals)) return undefined;
  const wanted = expectation.equals === null ? "be unset" : `be ${JSON.stringify(expectation.equals)}`;
  return `${path} of ${name} to ${wanted}`;
}

function valueAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (inner, key) => (typeof inner === "object" && inner !== null ? (inner as Record<string, unknown>)[key] : undefined),
    value,
  );
}

/** Whether all is as expected now. */
export async function areMet(expectations: readonly Expectation[], work: Work): Promise<boolean> {
  for (const expectation of expectations) {
    if (unmet(expectation, await readTarget(work, expectation.target)) !== undefined) return false;
  }
  return true;
}

/** Waits until all is as expected at the same time. */
export async function awaitExpectations(expectations: readonly Expectation[], work: Work): Promise<void> {
  if (expectations.length === 0) return;
  const seen: { expectation: Expectation; source: Source | undefined }[] = [];
  for (const expectation of expectations) {
    const { target } = expectation;
    const kind = await kindOf(work.client, target);
    // A kind that is not served has no objects; only a wait for absence can go on without it.
    if (kind === undefined && !("exists" in expectation && !expectation.exists)) {
      throw errors.STEP_TARGET_MISSING(`the kind ${target.kind} (${target.apiVersion})`);
    }
    const { name, namespace } = target;
    seen.push({ expectation, source: kind === undefined ? undefined : { kind, namespace, name } });
  }
  const watched = seen.filter(
    (each): each is { expectation: Expectation; source: Source } => each.source !== undefined,
  );
  await awaitObjects(
    work,
    watched.map(({ source }) => source),
    (found) => {
      const missing = watched.flatMap(({ expectation }, index) => unmet(expectation, found[index]?.[0]) ?? []);
      return missing[0] === undefined ? "done" : { waitingFor: missing[0] };
    },
  );
}

import { RE2JS } from "re2js";

/** A pattern of a schema. Matching takes time linear in the text, whoever wrote the pattern. */
export interface Pattern {
  test(text: string): boolean;
}

/** Of schemas that were accepted, so as many as there are. */
const patterns = new Map<string, Pattern>();

/** What a pattern that is no regular expression matches: everything, rather than fail every object of a kind that is there already. */
const ANYTHING: Pattern = { test: () => true };

/** Kubernetes' patterns are RE2, matched anywhere in the text. */
export function pattern(source: string): Pattern {
  let made = patterns.get(source);
  if (!made) {
    made = patternProblem(source) === undefined ? RE2JS.compile(source) : ANYTHING;
    patterns.set(source, made);
  }
  return made;
}

/** Why this is not a regular expression of RE2; undefined where it is one. */
export function patternProblem(source: string): string | undefined {
  try {
    RE2JS.compile(source);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

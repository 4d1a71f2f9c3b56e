import { defineErrors } from "../../kit/errors.ts";

/** sysexits: a usage error. */
const USAGE = 64;

export const errors = defineErrors({
  FLOW_QUERY_BAD: {
    means: "A flow query cannot be read: the sentence names the character where it stops making sense.",
    example: [1, '"prot"', "a field", "port"],
    say: (character: number, found: string, expected: string, nearest?: string) =>
      `the query is wrong at character ${character}: found ${found}, expected ${expected}${nearest ? `; did you mean "${nearest}"?` : ""}`,
    fix: () => 'correct the query, or write "…" around a text that is meant as it stands',
    exitCode: USAGE,
  },
});

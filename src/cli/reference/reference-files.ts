import { checkReference } from "./check-reference.ts";
import { commandReference } from "./command-reference.ts";
import { errorReference } from "./error-reference.ts";
import { metricReference } from "./metric-reference.ts";
import { resourceReference } from "./resource-reference.ts";
import { variableReference } from "./variable-reference.ts";

const FOLDER = "docs/reference";

/** The reference pages of the documentation, by path: everything in them is read from the code that uses it. */
export async function renderGeneratedFiles(): Promise<Record<string, string>> {
  return {
    [`${FOLDER}/cli.md`]: commandReference(),
    [`${FOLDER}/checks.md`]: checkReference(),
    [`${FOLDER}/errors.md`]: await errorReference(),
    [`${FOLDER}/metrics.md`]: metricReference(),
    [`${FOLDER}/variables.md`]: variableReference(),
    ...resourceReference(`${FOLDER}/resources`),
  };
}

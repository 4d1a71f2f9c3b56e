import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";

/**
 * Test data from public suites lives beside the project, not in it: a user's machine has none, and the
 * project's own suites stand without it. `CONFORMANCE_DIR` names another place.
 */
const dir = resolve(process.env["CONFORMANCE_DIR"] ?? "../shared/conformance");

/** The parsed file, or undefined where this machine has no conformance data. */
export function conformanceData<T>(name: string): T | undefined {
  const file = resolve(dir, name);
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as T) : undefined;
}

export const NO_CONFORMANCE_DATA = `no conformance data at ${dir}; set CONFORMANCE_DIR to run this suite`;

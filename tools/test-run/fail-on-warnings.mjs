// A setup file: a warning that Node emits in the process of a test file fails that file.
// A promise that is rejected and never handled needs nothing here: vitest fails the run for it and names the file.
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterAll } from "vitest";
import { describeWarnings, isForeign } from "./warnings.mjs";

const seen = [];
const keep = (warning) => void (isForeign(warning) || seen.push(warning));

// Files share a process, and the hooks of one whose tests are all skipped do not run: its listener goes here.
const LISTENER = Symbol.for("test file's listener for warnings");
if (process[LISTENER]) process.off("warning", process[LISTENER]);
process[LISTENER] = keep;
process.on("warning", keep);

// Hooks end in the reverse order of their registration: this one, registered first, is the last.
afterAll(async () => {
  // Node emits warnings on the next tick.
  await nextTurn();
  process.off("warning", keep);
  if (seen.length > 0) throw new Error(describeWarnings(seen));
});

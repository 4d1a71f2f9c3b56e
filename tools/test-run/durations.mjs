import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../fingerprint.mjs";

/** Seconds that files took in a whole run on two cores, refreshed by `npm test -- --record`. Files below a second are left out. */
const FILE = join(ROOT, "tools/test-run/durations.json");

/** What a file takes that is not listed: most of it is starting a process and importing. */
const UNLISTED_SECONDS = 0.7;

let recorded;

export function secondsOf(path) {
  recorded ??= JSON.parse(readFileSync(FILE, "utf8"));
  return recorded[path] ?? UNLISTED_SECONDS;
}

/** @param {Map<string, number>} measured seconds by path, of a whole run: what is no longer there is forgotten */
export function recordDurations(measured, file = FILE) {
  const listed = [...measured].filter(([, seconds]) => seconds >= 1).sort(([a], [b]) => (a < b ? -1 : 1));
  const rounded = Object.fromEntries(listed.map(([path, seconds]) => [path, Math.round(seconds)]));
  writeFileSync(file, `${JSON.stringify(rounded, null, 2)}\n`);
}

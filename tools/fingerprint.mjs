import { createHash } from "node:crypto";
import { readdirSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** What `dist/` is made from, next to `src/` and `ui/`. */
const OTHER_INPUTS = ["package.json", "package-lock.json", "tools/build.mjs"];

/**
 * Names the state of everything the build reads, from file sizes and times only: a few milliseconds, because
 * `bin/vendorctl` asks on every start in a checkout. A removed or restored file changes it too.
 */
export function sourceFingerprint() {
  const hash = createHash("sha1");
  for (const path of [...OTHER_INPUTS, ...walk("src"), ...walk("ui")]) {
    const { size, mtimeMs } = statSync(ROOT + path);
    hash.update(`${path}\0${size}\0${mtimeMs}\n`);
  }
  return hash.digest("hex");
}

function* walk(directory) {
  const entries = readdirSync(ROOT + directory, { withFileTypes: true });
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = `${directory}/${entry.name}`;
    if (entry.isDirectory()) yield* walk(path);
    else if (!entry.name.endsWith(".md") && !entry.name.includes(".test.")) yield path;
  }
}

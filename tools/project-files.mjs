import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./fingerprint.mjs";
import { run } from "./say.mjs";

const NOT_OURS = new Set(["node_modules", "dist", ".git"]);

/** Paths of every file that is, or would be, part of the repository: without git (an unpacked archive), all of them. */
export function projectFiles() {
  const listed = run("git", ["ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate"]);
  const deleted = run("git", ["ls-files", "--deleted"]);
  if (!listed.ok) return [...walk("")];
  const gone = new Set(deleted.text.split("\n"));
  return listed.text.split("\n").filter((path) => path !== "" && !gone.has(path));
}

export function readText(path) {
  return readFileSync(join(ROOT, path), "utf8");
}

function* walk(directory) {
  for (const entry of readdirSync(join(ROOT, directory), { withFileTypes: true })) {
    if (NOT_OURS.has(entry.name)) continue;
    const path = directory === "" ? entry.name : `${directory}/${entry.name}`;
    if (entry.isDirectory()) yield* walk(path);
    else yield path;
  }
}

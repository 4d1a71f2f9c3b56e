import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

export interface Release {
  directory: string;
  remove(): void;
}

/** A change of one file below `bpf/`. */
export interface Edit {
  file: string;
  from: string;
  to: string;
}

const ROOT = new URL("../..", import.meta.url).pathname;
const COPIED = ["bin", "bpf", "src", "tools", "package.json", "package-lock.json"];
const run = promisify(execFile);

const GENERATE = `
  const { renderBpfFiles } = await import("./tools/build-bpf.mjs");
  const { writeFileSync } = await import("node:fs");
  for (const [path, text] of Object.entries(await renderBpfFiles())) writeFileSync(path, text);
  await (await import("./tools/build.mjs")).build();
`;

/** This release, but for its programs: compiled and bundled in a directory of its own, as an upgrade brings it to a node. */
export async function anotherRelease(edits: readonly Edit[]): Promise<Release> {
  const directory = mkdtempSync(join(tmpdir(), "vt-release-"));
  const remove = () => rmSync(directory, { recursive: true, force: true });
  try {
    for (const name of COPIED) cpSync(join(ROOT, name), join(directory, name), { recursive: true });
    symlinkSync(join(ROOT, "node_modules"), join(directory, "node_modules"));
    for (const { file, from, to } of edits) {
      const path = join(directory, "bpf", file);
      const text = readFileSync(path, "utf8");
      if (text.split(from).length !== 2) throw new Error(`bpf/${file} does not have this once: ${from}`);
      writeFileSync(path, text.replace(from, to));
    }
    await run(process.execPath, ["--input-type=module", "-e", GENERATE], { cwd: directory });
    return { directory, remove };
  } catch (error) {
    remove();
    throw error;
  }
}

import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { errors } from "./errors.ts";
import { OUR_IMAGE } from "./node-script.ts";
import { runCommand } from "./run-command.ts";

/** The bundle has everything it imports in it but these: see the Containerfile, of which this is the other half. */
const PACKAGES = ["koffi", "@koromix"];

/**
 * The one image as a directory, from the release this process is of or from another checkout. A copy, since a checkout may be built again
 * while programs that run from it still load their parts.
 */
export async function unpackImage(target: string, root: string = packageRoot()): Promise<void> {
  await buildIfStale(root);
  if (!existsSync(join(root, "dist/main.js"))) throw errors.OUR_IMAGE_INCOMPLETE(join(root, "dist/main.js"));
  copyTree(join(root, "dist"), join(target, "dist"));
  for (const name of PACKAGES) {
    const from = join(root, "node_modules", name);
    if (existsSync(from)) copyTree(from, join(target, "node_modules", name));
  }
  copyFileSync(join(root, "package.json"), join(target, "package.json"));
  mkdirSync(join(target, "bin"), { recursive: true });
  symlinkSync(process.execPath, join(target, "bin/node"));
  // The name it is called by decides what it is.
  for (const name of ["vendor", "vendorctl"]) {
    const path = join(target, "bin", name);
    writeFileSync(path, `#!${OUR_IMAGE}/bin/node\nimport "../dist/main.js";\n`);
    chmodSync(path, 0o755);
  }
}

/** In a checkout the tool builds itself when it is called; the copy must not be older than the sources. */
async function buildIfStale(root: string): Promise<void> {
  if (!existsSync(join(root, ".git"))) return;
  await runCommand([process.execPath, join(root, "bin/vendorctl"), "--version"]);
}

export function packageRoot(): string {
  let directory = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(directory, "package.json"))) {
    const parent = dirname(directory);
    if (parent === directory) throw errors.OUR_IMAGE_INCOMPLETE("package.json");
    directory = parent;
  }
  return directory;
}

/** On one file system nothing is copied: files of a build are replaced, never changed. */
function copyTree(from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  for (const name of readdirSync(from)) {
    const [source, copy] = [join(from, name), join(to, name)];
    if (statSync(source).isDirectory()) copyTree(source, copy);
    else if (!name.endsWith(".map")) copyFile(source, copy);
  }
}

function copyFile(source: string, copy: string): void {
  try {
    linkSync(source, copy);
  } catch {
    copyFileSync(source, copy);
  }
}

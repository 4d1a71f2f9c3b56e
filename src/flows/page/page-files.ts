import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { errors } from "../errors.ts";

export interface PageFile {
  body: Buffer;
  type: string;
}

/** By the path that they are asked for with. */
export type PageFiles = ReadonlyMap<string, PageFile>;

const INDEX = "index.html";

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** The page as it was built: some files, held in memory. What is asked for never becomes a path of the disk. */
export function readPageFiles(folder = builtPage()): PageFiles {
  if (!folder || !existsSync(join(folder, INDEX))) throw errors.FLOW_PAGE_NOT_BUILT();
  const files = new Map<string, PageFile>();
  for (const name of readdirSync(folder)) {
    const type = TYPES[extname(name)];
    if (!type) continue;
    const file = { body: readFileSync(join(folder, name)), type };
    files.set(`/${name}`, file);
    if (name === INDEX) files.set("/", file);
  }
  return files;
}

/** Beside the bundle that this is part of; from the sources, where they are built to. */
function builtPage(): string | undefined {
  let folder = dirname(fileURLToPath(import.meta.url));
  for (;;) {
    for (const place of ["page", "dist/page"]) {
      if (existsSync(join(folder, place, INDEX))) return join(folder, place);
    }
    const above = dirname(folder);
    if (above === folder || existsSync(join(folder, "package.json"))) return undefined;
    folder = above;
  }
}

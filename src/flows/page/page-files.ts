import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { embeddedFiles } from "../../api/embedded-files.ts";
import { errors } from "../errors.ts";

export interface PageFile {
  body: Buffer;
  type: string;
}

/** By the path that they are asked for with. */
export type PageFiles = ReadonlyMap<string, PageFile>;

const INDEX = "index.html";
/** Of names in the self-contained file of a release. */
const EMBEDDED = "page/";

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** The page as it was built: some files, held in memory. What is asked for never becomes a path of the disk. */
export function readPageFiles(folder?: string): PageFiles {
  const files = new Map<string, PageFile>();
  for (const [name, body] of folder === undefined ? builtFiles() : filesIn(folder)) {
    const type = TYPES[extname(name)];
    if (!type) continue;
    files.set(`/${name}`, { body, type });
    if (name === INDEX) files.set("/", { body, type });
  }
  if (!files.has("/")) throw errors.FLOW_PAGE_NOT_BUILT();
  return files;
}

function builtFiles(): [string, Buffer][] {
  const embedded = embeddedFiles();
  if (!embedded) return filesIn(builtPage());
  return Object.entries(embedded).flatMap(([name, text]) =>
    name.startsWith(EMBEDDED) ? [[name.slice(EMBEDDED.length), Buffer.from(text)] as [string, Buffer]] : [],
  );
}

function filesIn(folder: string | undefined): [string, Buffer][] {
  if (folder === undefined) return [];
  return readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))]);
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

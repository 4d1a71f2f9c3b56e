import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { embeddedFiles } from "../api/embedded-files.ts";
import { download } from "./download.ts";
import { errors } from "./errors.ts";
import type { ReleaseFiles } from "./release-files.ts";

/** The biggest of ours is a quarter of a megabyte; nothing a person would apply is bigger than this. */
const MOST_BYTES = 16 * 1024 * 1024;

/** The files of a release: the copies that came with this tool, or those of `manifestUrl`. Each is read once. */
export function openReleaseFiles(options: { manifestUrl?: string; signal?: AbortSignal } = {}): ReleaseFiles {
  const { manifestUrl, signal } = options;
  const base = manifestUrl === undefined ? undefined : baseAddress(manifestUrl);
  const read = base === undefined ? readBuiltIn : (name: string) => readFrom(base, name, signal);
  const texts = new Map<string, Promise<string>>();
  return {
    from: base === undefined ? "built in" : base.href.replace(/\/$/, ""),
    async read(name) {
      if (!/^[A-Za-z0-9][\w.-]*(?:\/[A-Za-z0-9][\w.-]*)?$/.test(name)) throw errors.MANIFEST_NAME_UNUSABLE(name);
      const text = texts.get(name) ?? read(name);
      texts.set(name, text);
      // A failure is not cached: the next call tries again.
      return await text.catch((error: unknown) => {
        texts.delete(name);
        throw error;
      });
    },
  };
}

/** What a person compares with what was published. */
export function digestOf(text: string): string {
  return `sha256:${createHash("sha256").update(text).digest("hex")}`;
}

/** `{manifest_url}` with `/manifests/` after it, whether or not it was written. */
function baseAddress(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !["http:", "https:", "file:"].includes(url.protocol) || url.username !== "" || url.search !== "") {
    throw errors.MANIFEST_URL_UNUSABLE(text);
  }
  url.hash = "";
  const path = url.pathname.replace(/\/+$/, "");
  url.pathname = path.endsWith("/manifests") ? `${path}/` : `${path}/manifests/`;
  return url;
}

async function readFrom(base: URL, name: string, signal: AbortSignal | undefined): Promise<string> {
  const address = new URL(name, base);
  if (address.protocol === "file:") return textOf(await readLocal(fileURLToPath(address), name), address.href);
  const bytes = await download(address, { mostBytes: MOST_BYTES, signal });
  if (bytes === undefined) throw errors.MANIFEST_NOT_FOUND(name, base.href);
  return textOf(bytes, address.href);
}

async function readLocal(path: string, name: string): Promise<Buffer> {
  try {
    const { size } = await stat(path);
    if (size > MOST_BYTES) throw errors.MANIFEST_TOO_BIG(path, megabytes(MOST_BYTES));
    return await readFile(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") throw errors.MANIFEST_NOT_FOUND(name, dirname(path)).from(error);
    if (code === "EACCES" || code === "EISDIR") throw errors.MANIFEST_NOT_SERVED(path, code).from(error);
    throw error;
  }
}

async function readBuiltIn(name: string): Promise<string> {
  const embedded = embeddedFiles();
  if (embedded) {
    const text = Object.hasOwn(embedded, name) ? embedded[name] : undefined;
    if (text === undefined) throw errors.MANIFEST_MISSING_FROM_PACKAGE(name);
    return text;
  }
  const folder = manifestsFolder();
  if (folder === undefined) throw errors.MANIFEST_MISSING_FROM_PACKAGE(name);
  try {
    return await readFile(join(folder, name), "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    throw errors.MANIFEST_MISSING_FROM_PACKAGE(name).from(error);
  }
}

/** From the sources as from the bundle: the folder next to the package's own description. */
function manifestsFolder(): string | undefined {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, "package.json"))) {
    const above = dirname(folder);
    if (above === folder) return undefined;
    folder = above;
  }
  return join(folder, "manifests");
}

function textOf(bytes: Buffer, where: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    throw errors.MANIFEST_NOT_TEXT(where).from(error);
  }
}

function megabytes(bytes: number): string {
  return `${bytes / 1024 / 1024} MB`;
}

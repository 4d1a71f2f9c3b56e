import { type Dirent, readdirSync, readFileSync, statSync } from "node:fs";
import { extname, join } from "node:path";
import { parseAllDocuments } from "yaml";
import type { KubeObject } from "../../api/object.ts";
import { KUBECTL_YAML } from "../merge/kubectl-yaml.ts";
import { errors } from "./errors.ts";

/** An object of a file, and where it was, for the error message. */
export interface ReadObject {
  object: KubeObject;
  where: string;
}

export interface ReadOptions {
  recursive?: boolean;
  /** What comes in where the file is `-`. */
  stdin?: () => Promise<string>;
}

const SUFFIXES = new Set([".yaml", ".yml", ".json"]);
const MOST_BYTES = 64 * 1024 * 1024;

/** Every object of files, folders and standard input, lists taken apart. Nothing is passed over that cannot be read. */
export async function readDocuments(paths: readonly string[], options: ReadOptions = {}): Promise<ReadObject[]> {
  const found: ReadObject[] = [];
  for (const path of paths) {
    if (path === "-") {
      if (!options.stdin) throw errors.RESOURCE_FILE_UNREADABLE("standard input", "there is none");
      found.push(...objectsIn("standard input", await options.stdin()));
      continue;
    }
    for (const file of filesAt(path, options.recursive ?? false)) found.push(...objectsIn(file, textOf(file)));
  }
  if (found.length === 0) throw errors.RESOURCE_FILE_BAD(paths.join(", "), "there is no object in it");
  return found;
}

function filesAt(path: string, recursive: boolean): string[] {
  const isFolder = attempt(path, () => statSync(path)).isDirectory();
  if (!isFolder) return [path];
  const entries: Dirent[] = attempt(path, () => readdirSync(path, { withFileTypes: true }));
  const sorted = entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  return sorted.flatMap((entry) => {
    const inside = join(path, entry.name);
    if (entry.isDirectory()) return recursive ? filesAt(inside, true) : [];
    return SUFFIXES.has(extname(entry.name)) ? [inside] : [];
  });
}

function textOf(file: string): string {
  const { size } = attempt(file, () => statSync(file));
  if (size > MOST_BYTES) throw errors.RESOURCE_FILE_UNREADABLE(file, "it is too big");
  return attempt(file, () => readFileSync(file, "utf8"));
}

function attempt<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why = code === "ENOENT" ? "it does not exist" : code === "EACCES" ? "permission denied" : message;
    throw errors.RESOURCE_FILE_UNREADABLE(path, why).from(error);
  }
}

function objectsIn(file: string, text: string): ReadObject[] {
  // Otherwise a key that is a list or a map becomes text, with a warning on the terminal that holds bytes of the file.
  return parseAllDocuments(text, { ...KUBECTL_YAML, stringKeys: true }).flatMap((document, index) => {
    const where = index === 0 ? file : `${file}, document ${index + 1}`;
    const [problem] = document.errors;
    if (problem) throw errors.RESOURCE_FILE_BAD(where, problem.message.split("\n", 1)[0]!);
    const value = plainValue(document, where);
    return value === null || value === undefined ? [] : itemsOf(value, where);
  });
}

/** Aliases that multiply are found only when values are made. */
function plainValue(document: { toJS(options: { maxAliasCount: number }): unknown }, where: string): unknown {
  try {
    return document.toJS({ maxAliasCount: 100 });
  } catch (error) {
    throw errors.RESOURCE_FILE_BAD(where, error instanceof Error ? error.message : String(error)).from(error);
  }
}

function itemsOf(value: unknown, where: string): ReadObject[] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw errors.RESOURCE_FILE_BAD(where, "it is not an object with apiVersion and kind");
  }
  const { apiVersion, kind, metadata, items } = value as Partial<KubeObject> & { items?: unknown };
  if (typeof apiVersion !== "string" || typeof kind !== "string") {
    throw errors.RESOURCE_FILE_BAD(where, "apiVersion or kind is missing");
  }
  if (Array.isArray(items) && kind.endsWith("List")) {
    return items.flatMap((item, index) => itemsOf(item, `${where}, item ${index + 1}`));
  }
  if (kind === "Plan") return [{ object: value as KubeObject, where }];
  if (typeof metadata !== "object" || metadata === null || typeof metadata.name !== "string" || metadata.name === "") {
    throw errors.RESOURCE_FILE_BAD(where, `the ${kind} has no name`);
  }
  return [{ object: value as KubeObject, where }];
}

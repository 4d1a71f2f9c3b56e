import { readFileSync } from "node:fs";
import { dirname, isAbsolute, resolve } from "node:path";
import { isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from "yaml";
import { errors } from "./errors.ts";

/** One map of a kubeconfig: reads fields with their type checked, and says where in the file a wrong one is. */
export interface Section {
  /** Where it is. */
  file: string;
  text(field: string): string | undefined;
  flag(field: string): boolean;
  texts(field: string): string[];
  section(field: string): Section | undefined;
  sections(field: string): Section[];
  /** Any value, as plain data. */
  value(field: string): unknown;
  /** Names of the fields it has. */
  fields(): string[];
  /** `field-data` decoded, or the text of the file `field` names. */
  content(field: string): string | undefined;
  /** A path, taken from where this file is. */
  path(field: string): string | undefined;
  malformed(field: string | undefined, why: string): Error;
}

/** The file's top section; undefined where there is no file. */
export function readKubeconfigFile(file: string): Section | undefined {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw unreadable(file, cause);
  }
  return parseKubeconfig(text, file);
}

function parseKubeconfig(text: string, file: string): Section {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const [problem] = document.errors;
  if (problem) {
    const { line } = lines.linePos(problem.pos[0]);
    throw errors.KUBECONFIG_MALFORMED(file, line, problem.message).from(problem);
  }
  return section(document.contents, { file, lines });
}

interface Place {
  file: string;
  lines: LineCounter;
}

function section(node: Node | null, place: Place): Section {
  const lineOf = (at: unknown) => {
    const range = (at as Node | null | undefined)?.range;
    return range ? place.lines.linePos(range[0]).line : undefined;
  };
  const fail = (at: unknown, why: string) => errors.KUBECONFIG_MALFORMED(place.file, lineOf(at), why);
  const isNull = (at: unknown) => at === undefined || at === null || (isScalar(at) && at.value === null);
  if (!isNull(node) && !isMap(node)) throw fail(node, "a map is expected here");
  const map = isMap(node) ? node : undefined;
  /** The field's node; undefined where it is absent or null. */
  const at = (field: string): unknown => {
    const child = map?.get(field, true);
    return isNull(child) ? undefined : child;
  };
  const text = (field: string): string | undefined => {
    const child = at(field);
    if (child === undefined) return undefined;
    if (isScalar(child) && typeof child.value === "string") return child.value === "" ? undefined : child.value;
    throw fail(child, `${field} must be text`);
  };
  const items = (field: string): unknown[] => {
    const child = at(field);
    if (child === undefined) return [];
    if (isSeq(child)) return child.items;
    throw fail(child, `${field} must be a list`);
  };
  const path = (field: string): string | undefined => {
    const given = text(field);
    return given === undefined || isAbsolute(given) ? given : resolve(dirname(place.file), given);
  };

  return {
    file: place.file,
    text,
    path,
    flag(field) {
      const child = at(field);
      if (child === undefined) return false;
      if (isScalar(child) && typeof child.value === "boolean") return child.value;
      throw fail(child, `${field} must be true or false`);
    },
    texts: (field) =>
      items(field).map((item) => {
        if (isScalar(item) && typeof item.value === "string") return item.value;
        throw fail(item, `${field} must be a list of texts`);
      }),
    section: (field) => {
      const child = at(field);
      return child === undefined ? undefined : section(child as Node, place);
    },
    sections: (field) => items(field).map((item) => section(item as Node, place)),
    value: (field) => (at(field) as { toJSON?(): unknown } | undefined)?.toJSON?.(),
    fields: () => (map?.items ?? []).map(({ key }) => String(isScalar(key) ? key.value : key)),
    content(field) {
      const data = text(`${field}-data`);
      if (data !== undefined) {
        if (isBase64(data)) return Buffer.from(data, "base64").toString("utf8");
        throw errors.KUBECONFIG_BAD_BASE64(place.file, lineOf(at(`${field}-data`)), `${field}-data`);
      }
      const file = path(field);
      return file === undefined ? undefined : readText(file);
    },
    malformed: (field, why) => fail(field === undefined ? map : (at(field) ?? map), why),
  };
}

/** Node skips what it does not understand; a certificate that lost a character must not. */
function isBase64(text: string): boolean {
  const packed = text.replace(/\s/g, "");
  return packed.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(packed);
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw unreadable(file, cause);
  }
}

function unreadable(file: string, cause: unknown): Error {
  const code = (cause as NodeJS.ErrnoException).code ?? "";
  return errors.KUBECONFIG_UNREADABLE(file, READ_FAILURES[code] ?? (code || String(cause))).from(cause);
}

const READ_FAILURES: Record<string, string> = {
  ENOENT: "there is no such file",
  EACCES: "permission denied",
  EISDIR: "it is a directory",
};

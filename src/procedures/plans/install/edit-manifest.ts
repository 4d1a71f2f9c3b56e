import { type Document, parseAllDocuments } from "yaml";
import type { KubeObject } from "../../../api/object.ts";
import { KUBECTL_YAML } from "../../merge/kubectl-yaml.ts";
import { printPath } from "../field-path.ts";
import { errors } from "../plan-errors.ts";

/** One field of one object of a manifest, and what it becomes. */
export interface ManifestEdit {
  /** Of the object to edit. */
  kind: string;
  path: readonly (string | number)[];
  value: unknown;
}

/**
 * A manifest as a careful user would edit it: the fields are set, objects are added at the end, and every comment and
 * every other line stays. `name` is the file's, for errors.
 */
export function editManifest(
  name: string,
  text: string,
  edits: readonly ManifestEdit[],
  added: readonly KubeObject[] = [],
): string {
  const documents = readDocuments(name, text);
  for (const { kind, path, value } of edits) {
    const document = documents.find((candidate) => candidate.get("kind") === kind);
    if (!document) throw errors.MANIFEST_WITHOUT_KIND(name, kind);
    try {
      document.setIn(withEmptyFilled(document, path), document.createNode(value));
    } catch (error) {
      throw errors.MANIFEST_FIELD_IMPOSSIBLE(name, printPath(path)).from(error);
    }
  }
  const present = new Set(documents.map((document) => document.get("kind")));
  const more = added.filter(({ kind }) => !present.has(kind));
  const all = [...documents.map((document) => document.toString({ lineWidth: 0 })), ...more.map(printed)];
  return all.map((part, index) => (index > 0 && !part.startsWith("---") ? `---\n${part}` : part)).join("");
}

/** The objects of a manifest, in its order. */
export function manifestObjects(name: string, text: string): KubeObject[] {
  return readDocuments(name, text).map((document) => document.toJS() as KubeObject);
}

function readDocuments(name: string, text: string): Document[] {
  const documents = [...parseAllDocuments(text, KUBECTL_YAML)] as Document[];
  const broken = documents.flatMap((document) => document.errors)[0];
  if (broken) throw errors.MANIFEST_NOT_YAML(name, broken.message.split("\n", 1)[0] ?? "").from(broken);
  const filled = documents.filter((document) => document.contents !== null);
  if (filled.length === 0 || !filled.every((document) => isObject(document.toJS()))) {
    throw errors.MANIFEST_NOT_OBJECTS(name);
  }
  return filled;
}

function isObject(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { apiVersion, kind, metadata } = value as Partial<KubeObject>;
  return typeof apiVersion === "string" && typeof kind === "string" && typeof metadata?.name === "string";
}

/** `spec:` with nothing behind it is null, which nothing can be put into: it goes first. */
function withEmptyFilled(document: Document, path: readonly (string | number)[]): readonly (string | number)[] {
  for (let length = 1; length < path.length; length++) {
    const above = path.slice(0, length);
    if (document.hasIn(above) && document.getIn(above) === null) document.deleteIn(above);
  }
  return path;
}

function printed({ apiVersion, kind, metadata, ...rest }: KubeObject): string {
  const body = Object.entries(rest).map(([key, value]) => `${key}: ${JSON.stringify(value)}\n`);
  return `---\napiVersion: ${apiVersion}\nkind: ${kind}\nmetadata:\n  name: ${metadata.name}\n${body.join("")}`;
}

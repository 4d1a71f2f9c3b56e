import { Document, parseAllDocuments } from "yaml";
import { type KubeObject, parseGroupVersion } from "../../api/object.ts";
import { errors } from "./errors.ts";
import { KUBECTL_YAML } from "./kubectl-yaml.ts";

/** One object of a manifest: as text, as nodes, and as a value. It is parsed only on demand. */
export interface ManifestDocument {
  /** `DaemonSet/kube-system/vendor-node`. */
  readonly name: string;
  readonly text: string;
  readonly document: Document;
  readonly object: KubeObject;
}

/** The objects of a manifest by their key, in their order. `file` is for errors. */
export function manifestDocuments(file: string, text: string): Map<string, ManifestDocument> {
  const found = new Map<string, ManifestDocument>();
  for (const [index, chunk] of chunksOf(text).entries()) {
    const document = () => parsed(file, chunk, index);
    const identity = identityOf(chunk) ?? (document().toJS() as KubeObject | null);
    // Documents with nothing in them stand between the others.
    if (identity === null) continue;
    const key = objectKey(identity);
    const name = objectLabel(identity);
    if (found.has(key)) throw errors.MERGE_FILE_TWICE(file, name);
    found.set(key, lazily(name, chunk, document));
  }
  return found;
}

function lazily(name: string, text: string, read: () => Document): ManifestDocument {
  let document: Document | undefined;
  let object: KubeObject | undefined;
  return {
    name,
    text,
    get document() {
      document ??= read();
      return document;
    },
    get object() {
      object ??= this.document.toJS() as KubeObject;
      return object;
    },
  };
}

/** One from a value, which was never written down. */
export function documentOf(object: KubeObject): ManifestDocument {
  const make = () => new Document(object, { ...KUBECTL_YAML, aliasDuplicateObjects: false });
  return lazily(objectLabel(object), "", make);
}

function parsed(file: string, chunk: string, index: number): Document {
  const documents = parseAllDocuments(chunk, KUBECTL_YAML);
  const document = Array.isArray(documents) ? documents.at(-1) : undefined;
  if (document === undefined) return new Document(null);
  const [problem] = document.errors;
  if (problem) throw errors.MERGE_FILE_UNREADABLE(file, problem.message.split("\n", 1)[0] ?? "");
  const value: unknown = document.toJS();
  if (value !== null && !isObject(value)) throw errors.MERGE_FILE_NOT_OBJECTS(file, `a document (number ${index + 1})`);
  return document;
}

/** The documents of a file. Comments that stand alone belong to what follows them. */
function chunksOf(text: string): string[] {
  const chunks: string[] = [];
  let ahead = "";
  for (const part of text.split(/^(?=---(?:\s|$))/m)) {
    const body = part.replace(/^---[^\S\n]*\n?/, "");
    if (/^(?:[^\S\n]*(?:#[^\n]*)?\n)*[^\S\n]*(?:#[^\n]*)?$/.test(body)) {
      ahead += body;
      continue;
    }
    chunks.push(ahead + part);
    ahead = "";
  }
  return chunks;
}

/** CRDs are long; in the usual form the name of an object is in its first lines. */
function identityOf(chunk: string): KubeObject | undefined {
  const field = (block: string, indent: string, name: string) =>
    new RegExp(`^${indent}${name}:[^\\S\\n]+([\\w.:/-]+)[^\\S\\n]*$`, "m").exec(block)?.[1];
  const metadata = /^metadata:[^\S\n]*\n((?:[ ]+\S[^\n]*\n)+)/m.exec(chunk)?.[1];
  const indent = /^ +/.exec(metadata ?? "")?.[0];
  if (metadata === undefined || indent === undefined) return undefined;
  const [apiVersion, kind] = [field(chunk, "", "apiVersion"), field(chunk, "", "kind")];
  const [name, namespace] = [field(metadata, indent, "name"), field(metadata, indent, "namespace")];
  if (apiVersion === undefined || kind === undefined || name === undefined) return undefined;
  // A name that reads as a number, or as true, is left to the parser.
  if (!/^[a-z]/i.test(name) || /^(?:true|false|null|yes|no|on|off)$/i.test(name)) return undefined;
  if (namespace === undefined && new RegExp(`^${indent}namespace:`, "m").test(metadata)) return undefined;
  return { apiVersion, kind, metadata: { name, ...(namespace === undefined ? {} : { namespace }) } };
}

/** The same object in any version of its group. */
export function objectKey({ apiVersion, kind, metadata }: KubeObject): string {
  return `${parseGroupVersion(apiVersion).group} ${kind} ${metadata.namespace ?? ""} ${metadata.name}`;
}

function objectLabel({ kind, metadata }: KubeObject): string {
  return [kind, metadata.namespace, metadata.name].filter((part) => part !== undefined).join("/");
}

function isObject(value: unknown): value is KubeObject {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const { apiVersion, kind, metadata } = value as Partial<KubeObject>;
  return typeof apiVersion === "string" && typeof kind === "string" && typeof metadata?.name === "string";
}

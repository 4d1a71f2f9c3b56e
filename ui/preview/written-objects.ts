import { type Document, isMap, isSeq, LineCounter, type Node, parseAllDocuments } from "yaml";
import type { DeletedObject } from "../../src/api/protocol/flow-preview.ts";
import { KUBECTL_YAML } from "../../src/procedures/merge/kubectl-yaml.ts";
import type { ApiRefusal } from "../api/flows-api.ts";

/** What is wrong with a text, and at which line of it, from 1; without a line: with all of it. */
export interface LineProblem {
  line?: number;
  message: string;
}

/** An object of the text, and where it is in it. */
interface WrittenObject {
  object: Fields;
  path: Path;
  document: Document;
}

export interface WrittenObjects {
  found: readonly WrittenObject[];
  /** Of the YAML itself; what it holds is the server's to refuse. */
  problems: readonly LineProblem[];
  lineAt(offset: number): number;
}

type Fields = Record<string, unknown>;
type Path = readonly (string | number)[];

/** More of them are no text of a person. */
const MOST_ALIASES = 100;

/** The objects of a text, read as kubectl reads it; lists, as `kubectl get -o yaml` prints them, are taken apart. */
export function writtenObjects(text: string): WrittenObjects {
  const lines = new LineCounter();
  const lineAt = (offset: number) => lines.linePos(offset).line;
  const found: WrittenObject[] = [];
  const problems: LineProblem[] = [];
  for (const document of parseAllDocuments(text, { ...KUBECTL_YAML, stringKeys: true, lineCounter: lines })) {
    const [error] = document.errors;
    if (error) {
      problems.push({ line: lineAt(error.pos[0]), message: firstLine(error.message) });
      continue;
    }
    const line = lineAt(document.contents?.range?.[0] ?? 0);
    try {
      const value: unknown = document.toJS({ maxAliasCount: MOST_ALIASES });
      if (value === null || value === undefined) continue;
      if (isFields(value)) found.push(...taken(value, document));
      else problems.push({ line, message: "this is no object with apiVersion and kind" });
    } catch (error) {
      // Aliases that multiply are found only when values are made.
      problems.push({ line, message: firstLine((error as Error).message) });
    }
  }
  return { found, problems, lineAt };
}

function taken(value: Fields, document: Document): WrittenObject[] {
  const { kind, items } = value;
  if (typeof kind !== "string" || !kind.endsWith("List") || !Array.isArray(items))
    return [{ object: value, path: [], document }];
  return items.flatMap((item: unknown, index) =>
    isFields(item) ? [{ object: item, path: ["items", index], document }] : [],
  );
}

/** What the server says of objects that were sent, at the lines that it is about. */
export function refusedLines({ found, lineAt }: WrittenObjects, { message, details }: ApiRefusal): LineProblem[] {
  const object = found[indexIn(message)] ?? found.find((one) => isNamed(one, details, message));
  if (!object) return [{ message }];
  const line = (field: string) => lineAt(offsetOf(object, pathOf(field)));
  const causes = (details?.causes ?? []).filter(({ field, message: text }) => field && text);
  if (causes.length === 0) return [{ line: line(""), message }];
  return causes.map(({ field = "", message: text = "" }) => ({ line: line(field), message: `${field}: ${text}` }));
}

/** `spec.objects[2] has no kind`; -1: it names none so. */
function indexIn(message: string): number {
  return Number(/spec\.objects\[(\d+)\]/.exec(message)?.[1] ?? -1);
}

function isNamed({ object }: WrittenObject, details: ApiRefusal["details"], message: string): boolean {
  const { kind, metadata } = object;
  const name = isFields(metadata) ? metadata["name"] : undefined;
  if (typeof kind !== "string" || typeof name !== "string") return false;
  if (details?.name !== undefined) return details.name === name && (details.kind ?? kind) === kind;
  return message.includes(kind) && message.includes(name);
}

/** `spec.ingress[0].ports` */
function pathOf(field: string): Path {
  const parts = field.split(/[.[\]]+/).filter((part) => part !== "");
  return parts.map((part) => (/^\d+$/.test(part) ? Number(part) : part));
}

/** Of what is nearest to a path: what is missing is a problem of what it is missing in. */
function offsetOf({ document, path }: WrittenObject, field: Path): number {
  let node: unknown = document.contents;
  let offset = (node as Node | null)?.range?.[0] ?? 0;
  for (const part of [...path, ...field]) {
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => String(key) === String(part));
      if (!pair) break;
      offset = (pair.key as Node).range?.[0] ?? offset;
      node = pair.value;
    } else if (isSeq(node)) {
      node = node.items[Number(part)];
      if (!node) break;
      offset = (node as Node).range?.[0] ?? offset;
    } else break;
  }
  return offset;
}

/** Kinds as statistics name them, and as they are written. */
const DELETABLE: Readonly<Record<string, Pick<DeletedObject, "apiVersion" | "kind">>> = {
  KubernetesNetworkPolicy: { apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy" },
  NetworkPolicy: { apiVersion: "vendor.io/v3", kind: "NetworkPolicy" },
  GlobalNetworkPolicy: { apiVersion: "vendor.io/v3", kind: "GlobalNetworkPolicy" },
};

/** Of a policy as the link has it; undefined: a preview deletes nothing like that. */
export function deletedObject(gone: string): DeletedObject | undefined {
  const [kind = "", namespace = "", name = ""] = gone.split("/", 3);
  const written = Object.hasOwn(DELETABLE, kind) ? DELETABLE[kind] : undefined;
  if (!written || name === "") return undefined;
  return { ...written, ...(namespace !== "" && { namespace }), name };
}

/** For the link; empty: a preview does not delete this. */
export function goneText({ kind, namespace, name }: { kind: string; namespace: string; name: string }): string {
  const text = `${kind}/${namespace}/${name}`;
  return deletedObject(text) ? text : "";
}

function firstLine(message: string): string {
  return (message.split("\n", 1)[0] as string).replace(/ at line \d+, column \d+:?$/, "");
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

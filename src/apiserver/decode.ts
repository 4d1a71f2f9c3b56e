import { parseDocument } from "yaml";
import { groupVersion, type KubeObject } from "../api/object.ts";
import { pruneUnknown, validateAgainst } from "../api/schema/schema-walk.ts";
import { StatusError } from "../api/status.ts";
import { duplicateKeys } from "./duplicate-keys.ts";
import { decodeProtobuf, PROTOBUF } from "./kubernetes/protobuf.ts";
import type { ServedKind } from "./resource.ts";
import { badRequest, unsupportedMediaType } from "./status-errors.ts";

/** What to do with fields the kind does not have: drop them silently, drop and warn, or refuse. */
export type FieldValidation = "Ignore" | "Warn" | "Strict";

export interface Decoded {
  object: KubeObject;
  warnings: string[];
}

export function fieldValidationOf(query: URLSearchParams): FieldValidation {
  const asked = query.get("fieldValidation") ?? "Warn";
  if (asked === "Ignore" || asked === "Warn" || asked === "Strict" || asked === "") return asked || "Warn";
  throw badRequest(`invalid fieldValidation "${asked}": must be one of Ignore, Warn or Strict`);
}

/** An alias of aliases grows exponentially; so many copies of one node are no document of a person. */
const MOST_ALIASES = 100;

const MOST_DEPTH = 1_000;
const [OPEN_LIST, CLOSE_LIST, OPEN_MAP, CLOSE_MAP, DASH, QUESTION, SPACE] = [..."[]{}-? "].map((letter) =>
  letter.charCodeAt(0),
);

const JSON_TYPES = ["application/json", "application/yaml", "application/apply-patch+yaml"];

/** Is given the fields that the kind does not have, before they are dropped or refused. */
type OnUnknown = (paths: readonly string[], object: KubeObject) => void;

/** The body as plain data. YAML is welcome wherever JSON is. */
export function parseBody(body: Buffer, contentType: string | undefined): unknown {
  const type = (contentType ?? "application/json").split(";")[0]!.trim();
  if (type === PROTOBUF) return decodeProtobuf(body);
  if (type === "application/cbor") throw unsupportedMediaType(type, JSON_TYPES);
  const text = body.toString("utf8");
  if (type.endsWith("yaml")) return parseYaml(text);
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw badRequest(`error parsing JSON: ${(cause as Error).message}`);
  }
}

function parseYaml(text: string): unknown {
  if (nestsDeeply(text)) throw badRequest(`error parsing YAML: exceeded max depth ${MOST_DEPTH}`);
  try {
    // A key that is a list or a map is no JSON. The parser would make text of it, with a warning of this process that holds the client's bytes.
    const document = parseDocument(text, { prettyErrors: true, uniqueKeys: true, stringKeys: true });
    const problem = document.errors[0];
    if (problem) throw problem;
    return document.toJS({ maxAliasCount: MOST_ALIASES });
  } catch (cause) {
    // Aliases that multiply, or nesting that is too deep, are found only when values are made.
    throw badRequest(`error parsing YAML: ${(cause as Error).message.split("\n")[0]}`);
  }
}

/**
 * Whether brackets or list markers open more levels than any document has. The parser needs time by the square of the depth, so it must not
 * see such a text. Quotes are not looked at: text that opens so many brackets and closes none is refused, too.
 */
function nestsDeeply(text: string): boolean {
  let depth = 0;
  let markers = 0;
  for (let at = 0; at < text.length; at++) {
    const letter = text.charCodeAt(at);
    if (letter === OPEN_LIST || letter === OPEN_MAP) depth++;
    else if (letter === CLOSE_LIST || letter === CLOSE_MAP) depth = Math.max(0, depth - 1);
    if (letter === DASH || letter === QUESTION) markers++;
    else if (letter !== SPACE) markers = 0;
    if (depth > MOST_DEPTH || markers > MOST_DEPTH) return true;
  }
  return false;
}

/** An object of this kind out of a request body, unknown fields dealt with as asked. */
export function decodeObject(
  kind: ServedKind,
  body: Buffer,
  contentType: string | undefined,
  validation: FieldValidation,
  onUnknown?: OnUnknown,
): Decoded {
  if (body.length === 0) throw badRequest("the request has no body");
  const parsed = parseBody(body, contentType);
  const object = asObject(parsed, kind);
  const strict: string[] = [];
  const isJson = !/yaml|protobuf/.test(contentType ?? "");
  if (validation !== "Ignore" && isJson) {
    strict.push(...duplicateKeys(body.toString("utf8")).map((path) => `duplicate field "${path}"`));
  }
  return settle(kind, object, { found: strict, validation, ...(onUnknown && { onUnknown }) });
}

/** Unknown fields of an object that came some other way than a body (a patch's result). */
export function settle(
  kind: ServedKind,
  object: KubeObject,
  { found, validation, onUnknown }: { found: string[]; validation: FieldValidation; onUnknown?: OnUnknown },
): Decoded {
  const unknown = pruneUnknown(kind.schema, kind.definitions, object);
  onUnknown?.(unknown, object);
  if (validation === "Ignore") return { object, warnings: [] };
  const strict = [...found, ...unknown.map((path) => `unknown field "${path}"`)];
  if (strict.length === 0 || validation === "Warn") return { object, warnings: strict };
  const where = `${kind.kind} in version "${groupVersion(kind)}" cannot be handled as a ${kind.kind}`;
  throw badRequest(`${where}: strict decoding error: ${strict.join(", ")}`);
}

function asObject(parsed: unknown, kind: ServedKind): KubeObject {
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
    throw badRequest(`the body is not a ${kind.kind}: it must be an object`);
  }
  const object = parsed as KubeObject;
  const expected = groupVersion(kind);
  object.apiVersion ??= expected;
  object.kind ??= kind.kind;
  if (object.apiVersion !== expected || object.kind !== kind.kind) {
    throw badRequest(
      `the object provided is unrecognized (must be of type ${kind.kind} in ${expected}): it is ${object.kind} in ${object.apiVersion}`,
    );
  }
  object.metadata ??= {} as KubeObject["metadata"];
  if (typeof object.metadata !== "object" || Array.isArray(object.metadata)) {
    throw badRequest(`metadata of the ${kind.kind} must be an object`);
  }
  return object;
}

/** Schema problems, as Kubernetes answers them: a custom resource is invalid, a built-in one does not decode. */
export function checkSchema(
  kind: ServedKind,
  object: KubeObject,
): { field: string; message: string; reason: string }[] {
  const problems = validateAgainst(kind.schema, kind.definitions, object);
  const wrongType = problems.find((problem) => problem.kind === "type");
  if (wrongType && !kind.custom) {
    throw new StatusError(
      400,
      "BadRequest",
      `${kind.kind} in version "${groupVersion(kind)}" cannot be handled as a ${kind.kind}: ${wrongType.path}: ${wrongType.message}`,
    );
  }
  return problems.map((problem) => ({
    field: problem.path,
    message: problem.message,
    reason: REASONS[problem.kind] ?? "FieldValueInvalid",
  }));
}

const REASONS: Record<string, string> = {
  required: "FieldValueRequired",
  enum: "FieldValueNotSupported",
  duplicate: "FieldValueDuplicate",
  type: "FieldValueTypeInvalid",
};

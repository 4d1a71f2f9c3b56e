import { copyJson, isObject, jsonEqual, setMember } from "./json-value.ts";
import { malformed, PatchError, unfit } from "./patch-error.ts";

const MAX_OPERATIONS = 10_000;
/** `copy` can double a document with every operation; all copies of one patch together stay under this many characters. */
const MAX_COPIED = 3 * 1024 * 1024;

interface Operation {
  op: string;
  path: string[];
  /** As the client wrote it, for messages. */
  pathText: string;
  from: string[];
  fromText: string;
  value: unknown;
}

/** RFC 6902. Gives a new document; the one given is never changed, and a patch that fails half-way leaves no trace. */
export function applyJsonPatch(document: unknown, patch: unknown): unknown {
  const operations = parsePatch(patch);
  let result: unknown = copyJson(document);
  let copied = 0;
  for (const operation of operations) {
    if (operation.op === "copy") {
      copied += JSON.stringify(lookup(result, operation.from, operation)).length;
      if (copied > MAX_COPIED) throw unfit(`the copy operations of this patch copy more than ${MAX_COPIED} characters`);
    }
    result = apply(result, operation);
  }
  // `move` can stack values on one another deeper than either was: check what came out, not only what went in.
  return copyJson(result);
}

function parsePatch(patch: unknown): Operation[] {
  if (!Array.isArray(patch)) throw malformed("a JSON patch is a list of operations");
  if (patch.length > MAX_OPERATIONS) {
    throw new PatchError(
      "invalid",
      413,
      `The allowed maximum operations in a JSON patch is ${MAX_OPERATIONS}, got ${patch.length}`,
    );
  }
  return patch.map(parseOperation);
}

const NEEDS: Record<string, "value" | "from" | undefined> = {
  add: "value",
  replace: "value",
  test: "value",
  move: "from",
  copy: "from",
  remove: undefined,
};

function parseOperation(raw: unknown, index: number): Operation {
  if (!isObject(raw)) throw malformed(`operation ${index} is not an object`);
  const { op, path, from } = raw;
  if (typeof op !== "string" || !Object.hasOwn(NEEDS, op)) {
    throw malformed(`operation ${index}: unexpected kind: ${JSON.stringify(op) ?? "missing"}`);
  }
  if (typeof path !== "string") throw malformed(`operation ${index}: ${op} needs a "path"`);
  const need = NEEDS[op];
  if (need === "value" && raw["value"] === undefined) throw malformed(`operation ${index}: ${op} needs a "value"`);
  if (need === "from" && typeof from !== "string") throw malformed(`operation ${index}: ${op} needs a "from"`);
  const fromText = need === "from" ? (from as string) : "";
  return {
    op,
    path: parsePointer(path),
    pathText: path,
    from: parsePointer(fromText),
    fromText,
    value: copyJson(raw["value"]),
  };
}

/** RFC 6901: `/a~1b/0` is the field `a/b`, then its first item; the empty pointer is the whole document. */
function parsePointer(text: string): string[] {
  if (text === "") return [];
  if (!text.startsWith("/")) throw malformed(`path ${JSON.stringify(text)} does not start with a slash`);
  return text
    .slice(1)
    .split("/")
    .map((token) => {
      if (/~(?![01])/.test(token)) throw malformed(`path ${JSON.stringify(text)} has a ~ that is neither ~0 nor ~1`);
      return token.replaceAll("~1", "/").replaceAll("~0", "~");
    });
}

function apply(document: unknown, operation: Operation): unknown {
  const { path, from } = operation;
  switch (operation.op) {
    case "add":
      return add(document, path, operation.value, operation);
    case "remove":
      return remove(document, path, operation);
    case "replace":
      return replace(document, path, operation);
    case "move": {
      if (from.length < path.length && from.every((token, i) => token === path[i])) {
        throw unfit(`move operation does not apply: ${operation.fromText} cannot be moved into itself`);
      }
      const value = lookup(document, from, operation);
      return from.length === path.length && operation.fromText === operation.pathText
        ? document
        : add(remove(document, from, operation), path, value, operation);
    }
    case "copy":
      return add(document, path, copyJson(lookup(document, from, operation)), operation);
    default:
      if (!jsonEqual(lookup(document, path, operation), operation.value)) {
        throw new PatchError("test-failed", 422, `testing value ${operation.pathText} failed`);
      }
      return document;
  }
}

function add(document: unknown, path: string[], value: unknown, operation: Operation): unknown {
  if (path.length === 0) return value;
  const parent = lookup(document, path.slice(0, -1), operation);
  const last = path.at(-1)!;
  if (Array.isArray(parent)) {
    const index = last === "-" ? parent.length : indexIn(last, parent.length + 1, operation);
    parent.splice(index, 0, value);
  } else if (isObject(parent)) {
    setMember(parent, last, value);
  } else {
    throw missing(operation);
  }
  return document;
}

function remove(document: unknown, path: string[], operation: Operation): unknown {
  if (path.length === 0) throw unfit(`${operation.op} operation does not apply: the whole document cannot be removed`);
  lookup(document, path, operation);
  const parent = lookup(document, path.slice(0, -1), operation);
  const last = path.at(-1)!;
  if (Array.isArray(parent)) parent.splice(Number(last), 1);
  else delete (parent as Record<string, unknown>)[last];
  return document;
}

function replace(document: unknown, path: string[], operation: Operation): unknown {
  if (path.length === 0) return operation.value;
  lookup(document, path, operation);
  const parent = lookup(document, path.slice(0, -1), operation);
  const last = path.at(-1)!;
  if (Array.isArray(parent)) parent[Number(last)] = operation.value;
  else setMember(parent as Record<string, unknown>, last, operation.value);
  return document;
}

function lookup(document: unknown, path: string[], operation: Operation): unknown {
  let here = document;
  for (const token of path) {
    if (Array.isArray(here)) here = here[indexIn(token, here.length, operation)];
    else if (isObject(here) && Object.hasOwn(here, token)) here = here[token];
    else throw missing(operation);
  }
  return here;
}

function indexIn(token: string, length: number, operation: Operation): number {
  if (!/^(0|[1-9][0-9]*)$/.test(token)) {
    throw unfit(`${operation.op} operation does not apply: ${JSON.stringify(token)} is not an index of a list`);
  }
  const index = Number(token);
  if (index >= length) throw unfit(`${operation.op} operation does not apply: index ${token} is out of bounds`);
  return index;
}

function missing(operation: Operation): PatchError {
  const paths = operation.fromText === "" ? operation.pathText : `${operation.fromText} to ${operation.pathText}`;
  return unfit(`${operation.op} operation does not apply: doc is missing path: ${paths}`);
}

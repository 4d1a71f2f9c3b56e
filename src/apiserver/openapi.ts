import { createHash } from "node:crypto";
import { groupVersion } from "../api/object.ts";
import type { ForeignOpenApi } from "./discovery.ts";
import { type Document, forV2, forV3, ownTypes, sharedTypes, typeNameOf } from "./openapi-definitions.ts";
import { type Operation, type Path, pathsOf } from "./openapi-operations.ts";
import { encodeDefinition, encodeDocument, encodePath } from "./openapi-protobuf.ts";
import type { ServedKind } from "./resource.ts";

/**
 * What clients read of our types: `kubectl explain`, its validation, its patches. Made of pieces, one for each kind and
 * each shared type, that are kept: when a CRD comes or goes only its own piece is new.
 */
export interface OpenApiV2 {
  json(): string;
  protobuf(): Buffer;
}

export interface OpenApiV3 {
  index: { paths: Record<string, { serverRelativeURL: string }> };
  /** By group and version, such as `apps/v1`; undefined when nothing is served there. */
  document(groupVersion: string): string | undefined;
}

const INFO = { title: "Kubernetes", version: "unversioned" };
const V2_REF = "#/definitions/";
const V3_REF = "#/components/schemas/";

/** One named part of a document, in both forms, each made when first asked for. */
interface Piece {
  name: string;
  json: string;
  protobuf(): Buffer;
}

function piece(name: string, content: Document, encode: (name: string, content: Document) => Buffer): Piece {
  let encoded: Buffer | undefined;
  return {
    name,
    json: `${JSON.stringify(name)}:${JSON.stringify(content)}`,
    protobuf() {
      encoded ??= encode(name, content);
      return encoded;
    },
  };
}

interface KindPieces {
  paths: Piece[];
  types: Piece[];
}

const kindPieces = new WeakMap<ServedKind, KindPieces>();
const sharedPieces = new WeakMap<object, Piece>();

function piecesOf(kind: ServedKind): KindPieces {
  let made = kindPieces.get(kind);
  if (!made) {
    const paths = pathsOf(kind, typeNameOf(kind)).map((one) => piece(one.path, v2Path(one), encodePath));
    const types = Object.entries(ownTypes(kind)).map(([name, type]) => piece(name, forV2(type), encodeDefinition));
    made = { paths, types };
    kindPieces.set(kind, made);
  }
  return made;
}

const foreignKept = new WeakMap<ForeignOpenApi, KindPieces>();

function foreignPieces(foreign: ForeignOpenApi): KindPieces {
  let made = foreignKept.get(foreign);
  if (!made) {
    const paths = Object.entries(foreign.paths).map(([path, content]) => piece(path, content, encodePath));
    const types = Object.entries(foreign.definitions).map(([name, type]) => piece(name, type, encodeDefinition));
    made = { paths, types };
    foreignKept.set(foreign, made);
  }
  return made;
}

function sharedPiece(name: string, type: Document): Piece {
  let made = sharedPieces.get(type);
  if (!made) {
    made = piece(name, forV2(type), encodeDefinition);
    sharedPieces.set(type, made);
  }
  return made;
}

/** Definitions of other servers are merged with our own; where both describe a type, ours is taken. */
export function openApiV2(kinds: readonly ServedKind[], foreign: readonly ForeignOpenApi[] = []): OpenApiV2 {
  let parts: { paths: Piece[]; types: Piece[] } | undefined;
  const assembled = () => {
    if (parts) return parts;
    const types = new Map(Object.entries(sharedTypes(kinds)).map(([name, type]) => [name, sharedPiece(name, type)]));
    for (const one of kinds.flatMap((kind) => piecesOf(kind).types)) types.set(one.name, one);
    const theirs = foreign.map((one) => foreignPieces(one));
    for (const one of theirs.flatMap((pieces) => pieces.types)) if (!types.has(one.name)) types.set(one.name, one);
    const paths = [...kinds.map(piecesOf), ...theirs].flatMap((pieces) => pieces.paths);
    parts = { paths: sorted(paths), types: sorted([...types.values()]) };
    return parts;
  };
  let json: string | undefined;
  let protobuf: Buffer | undefined;
  return {
    json() {
      const { paths, types } = assembled();
      const listed = (pieces: readonly Piece[]) => pieces.map((one) => one.json).join(",");
      json ??= `{"swagger":"2.0","info":${JSON.stringify(INFO)},"paths":{${listed(paths)}},"definitions":{${listed(types)}}}`;
      return json;
    },
    protobuf() {
      const { paths, types } = assembled();
      const encoded = (pieces: readonly Piece[]) => pieces.map((one) => one.protobuf());
      protobuf ??= encodeDocument(INFO, encoded(paths), encoded(types));
      return protobuf;
    },
  };
}

function sorted(pieces: Piece[]): Piece[] {
  return pieces.sort((a, b) => (a.name < b.name ? -1 : 1));
}

function v2Path({ variables, operations }: Path): Document {
  const parameters = variables.map((name) => ({ name, in: "path", required: true, type: "string" }));
  return { ...Object.fromEntries(operations.map((one) => [one.method, v2Operation(one)])), parameters };
}

function v2Operation({ method, action, id, kind, query, body, result }: Operation): Document {
  const required = method !== "delete";
  const carried = body && { name: "body", in: "body", required, schema: { $ref: `${V2_REF}${body.type}` } };
  const parameters = query.map(({ name, type }) => ({ name, in: "query", type }));
  return {
    operationId: id,
    produces: ["application/json", "application/yaml"],
    ...(body ? { consumes: body.consumes } : {}),
    parameters: carried ? [carried, ...parameters] : parameters,
    responses: { "200": { description: "OK", schema: { $ref: `${V2_REF}${result}` } } },
    "x-kubernetes-action": action,
    "x-kubernetes-group-version-kind": kind,
  };
}

export function openApiV3(kinds: readonly ServedKind[], foreign: readonly ForeignOpenApi[] = []): OpenApiV3 {
  const groups = new Map<string, ServedKind[]>();
  for (const kind of kinds) {
    const name = groupVersion(kind);
    groups.set(name, [...(groups.get(name) ?? []), kind]);
  }
  const paths = [...groups].map(([name, served]) => {
    const path = `${name.includes("/") ? "apis" : "api"}/${name}`;
    const serverRelativeURL = `/openapi/v3/${path}?hash=${fingerprint(served)}`;
    return [path, { serverRelativeURL }] as const;
  });
  for (const { serverRelativeURL } of foreign) {
    const path = serverRelativeURL.replace(/^\/openapi\/v3\/|\?.*$/g, "");
    paths.push([path, { serverRelativeURL }]);
  }
  const documents = new Map<string, string>();
  return {
    index: { paths: Object.fromEntries(paths) },
    document(name) {
      const served = groups.get(name);
      if (!served) return undefined;
      const made = documents.get(name) ?? JSON.stringify(v3Document(served));
      documents.set(name, made);
      return made;
    },
  };
}

const fingerprints = new WeakMap<ServedKind, string>();

/** Changes with what a document says, so that clients may keep it for as long as its address is the same. */
function fingerprint(kinds: readonly ServedKind[]): string {
  const all = createHash("sha256");
  for (const kind of kinds) {
    let own = fingerprints.get(kind);
    if (own === undefined) {
      const { group, version, plural, verbs, status, scale, schema } = kind;
      const said = JSON.stringify([group, version, kind.kind, plural, verbs, status, scale, schema]);
      own = createHash("sha256").update(said).digest("hex");
      fingerprints.set(kind, own);
    }
    all.update(own);
  }
  return all.digest("hex").toUpperCase();
}

function v3Document(kinds: readonly ServedKind[]): Document {
  const types: Record<string, Document> = { ...sharedTypes(kinds) };
  for (const kind of kinds) Object.assign(types, ownTypes(kind));
  const schemas = Object.entries(types)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, type]) => [name, forV3(type)]);
  const paths = kinds.flatMap((kind) => pathsOf(kind, typeNameOf(kind)).map((one) => [one.path, v3Path(one)]));
  return {
    openapi: "3.0.0",
    info: INFO,
    paths: Object.fromEntries(paths),
    components: { schemas: Object.fromEntries(schemas) },
  };
}

function v3Path({ variables, operations }: Path): Document {
  const parameters = variables.map((name) => ({ name, in: "path", required: true, schema: { type: "string" } }));
  return { ...Object.fromEntries(operations.map((one) => [one.method, v3Operation(one)])), parameters };
}

function v3Operation({ method, action, id, kind, query, body, result }: Operation): Document {
  const required = method !== "delete";
  const content = (types: readonly string[], name: string) =>
    Object.fromEntries(types.map((type) => [type, { schema: { $ref: `${V3_REF}${name}` } }]));
  return {
    operationId: id,
    parameters: query.map(({ name, type }) => ({ name, in: "query", schema: { type } })),
    ...(body ? { requestBody: { required, content: content(body.consumes, body.type) } } : {}),
    responses: { "200": { description: "OK", content: content(["application/json"], result) } },
    "x-kubernetes-action": action,
    "x-kubernetes-group-version-kind": kind,
  };
}

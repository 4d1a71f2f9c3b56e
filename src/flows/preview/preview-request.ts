import type { KubeObject } from "../../api/object.ts";
import type { DeletedObject, FlowPreviewSpec } from "../../api/protocol/flow-preview.ts";
import { FLOW_PREVIEW_KIND } from "../../api/protocol/flow-preview.ts";
import type { Incoming } from "../../apiserver/call.ts";
import { parseBody } from "../../apiserver/decode.ts";
import { tooLarge } from "../../apiserver/status-errors.ts";
import { askedFlows } from "../api/flow-request.ts";
import type { Asked } from "../store/selection.ts";
import { errors } from "./errors.ts";

const MOST_BYTES = 256 * 1024;
const MOST_OBJECTS = 50;

export interface PreviewRequest {
  metadata: { name?: string };
  /** As it was sent. */
  spec: FlowPreviewSpec;
  objects: readonly KubeObject[];
  deleted: readonly DeletedObject[];
  asked: Pick<Asked, "query" | "since" | "until">;
}

type Fields = Record<string, unknown>;

export function readPreview({ body, headers }: Pick<Incoming, "body" | "headers">): PreviewRequest {
  if (body.length > MOST_BYTES) throw tooLarge(MOST_BYTES);
  const given = body.length === 0 ? undefined : parseBody(body, headers["content-type"]);
  if (!isFields(given) || given["kind"] !== FLOW_PREVIEW_KIND)
    throw errors.FLOW_PREVIEW_BAD(`the body is no ${FLOW_PREVIEW_KIND}`);
  const spec = given["spec"] ?? {};
  if (!isFields(spec)) throw errors.FLOW_PREVIEW_BAD("spec is no object");
  refuseUnknown(spec, ["query", "since", "until", "objects", "delete"]);
  const [objects, deleted] = [listIn(spec, "objects").map(objectIn), listIn(spec, "delete").map(deletedIn)];
  const count = objects.length + deleted.length;
  if (count > MOST_OBJECTS)
    throw errors.FLOW_PREVIEW_BAD(`a preview has at most ${MOST_OBJECTS} objects, and this one has ${count}`);
  if (count === 0) throw errors.FLOW_PREVIEW_BAD("there is nothing to preview: spec.objects and spec.delete are empty");
  const asked = new URLSearchParams();
  for (const name of ["query", "since", "until"] as const) {
    const value = spec[name];
    if (value === undefined) continue;
    if (typeof value !== "string" && (typeof value !== "number" || name === "query"))
      throw errors.FLOW_PREVIEW_BAD(`spec.${name} is no text`);
    asked.set(name, String(value));
  }
  const { query, since, until } = askedFlows(asked);
  const metadata = isFields(given["metadata"]) ? given["metadata"] : {};
  return {
    metadata: typeof metadata["name"] === "string" ? { name: metadata["name"] } : {},
    // What is answered is what was asked, also after the objects have been completed.
    spec: structuredClone(spec) as FlowPreviewSpec,
    ...{ objects, deleted, asked: { query, since, until } },
  };
}

function listIn(spec: Fields, name: "objects" | "delete"): unknown[] {
  const list = spec[name] ?? [];
  if (!Array.isArray(list)) throw errors.FLOW_PREVIEW_BAD(`spec.${name} is no list`);
  return list;
}

function objectIn(object: unknown, index: number): KubeObject {
  const metadata = isFields(object) ? object["metadata"] : undefined;
  const texts = isFields(object) && isFields(metadata) ? [object["apiVersion"], object["kind"], metadata["name"]] : [];
  const { namespace } = isFields(metadata) ? metadata : {};
  if (texts.length === 0 || !texts.every(isText) || !(namespace === undefined || typeof namespace === "string"))
    throw errors.FLOW_PREVIEW_BAD(`spec.objects[${index}] has no apiVersion, kind or metadata.name`);
  return object as KubeObject;
}

function deletedIn(object: unknown, index: number): DeletedObject {
  const at = `spec.delete[${index}]`;
  if (!isFields(object)) throw errors.FLOW_PREVIEW_BAD(`${at} is no object`);
  refuseUnknown(object, ["apiVersion", "kind", "namespace", "name"], `${at}.`);
  const { apiVersion, kind, namespace, name } = object;
  if (![apiVersion, kind, name].every(isText) || !(namespace === undefined || typeof namespace === "string"))
    throw errors.FLOW_PREVIEW_BAD(`${at} has no apiVersion, kind or name`);
  return object as unknown as DeletedObject;
}

function refuseUnknown(fields: Fields, known: readonly string[], before = "spec."): void {
  const strange = Object.keys(fields).find((name) => !known.includes(name));
  if (strange !== undefined)
    throw errors.FLOW_PREVIEW_BAD(`${before}${strange.slice(0, 60)} is no field; these are: ${known.join(", ")}`);
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

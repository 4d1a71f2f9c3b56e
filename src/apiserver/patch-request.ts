import { groupVersion, type KubeObject } from "../api/object.ts";
import { StatusError } from "../api/status.ts";
import type { Call, Reply } from "./call.ts";
import { type Core, objectOf, type WriteStore } from "./core.ts";
import { decodeObject, fieldValidationOf, parseBody, settle } from "./decode.ts";
import { ownershipOf, patchTypeFor } from "./kind-cache.ts";
import { applyJsonPatch } from "./patch/json-patch.ts";
import { applyMergePatch } from "./patch/merge-patch.ts";
import { PatchError } from "./patch/patch-error.ts";
import { applyStrategicPatch } from "./patch/strategic-patch.ts";
import { storageKey } from "./registry.ts";
import type { ServedKind } from "./resource.ts";
import { badRequest, notFound, unsupportedMediaType } from "./status-errors.ts";
import { createObject, updateObject, warningHeader, whoOf } from "./write.ts";

const APPLY = "application/apply-patch+yaml";
const JSON_PATCH = "application/json-patch+json";
const MERGE_PATCH = "application/merge-patch+json";
const STRATEGIC_PATCH = "application/strategic-merge-patch+json";

/** PATCH, all four types. */
export async function patch(core: Core<WriteStore>, call: Call): Promise<Reply> {
  const type = (call.headers["content-type"] ?? "").split(";")[0]!.trim();
  if (type === APPLY) return await serverSideApply(core, call);
  const live = findLive(core, call);
  if (!live) throw notFound(call.kind, call.name);
  const body = parseBody(call.body, "application/json");
  const patched = asPatched(call, applyPatch(call.kind, type, live, body));
  const { object, warnings } = settle(call.kind, patched, { found: [], validation: fieldValidationOf(call.query) });
  const updated = await updateObject(core, call, live, object);
  return { status: 200, headers: warningHeader(warnings), body: JSON.stringify(updated) };
}

/** Whether this is an apply of an object that is not there. It creates one, and Kubernetes asks for that right too. */
export function createsByApply(core: Core<WriteStore>, call: Call): boolean {
  const type = (call.headers["content-type"] ?? "").split(";")[0]!.trim();
  return type === APPLY && findLive(core, call) === undefined;
}

function findLive(core: Core<WriteStore>, call: Call): KubeObject | undefined {
  const namespace = call.kind.namespaced ? call.namespace : "";
  const stored = core.store.get(storageKey(call.kind), namespace, call.name);
  return stored && objectOf(call.kind, stored);
}

/** The patched document; `live` itself is left as it was. */
export function applyPatch(kind: ServedKind, type: string, live: KubeObject, body: unknown): unknown {
  try {
    if (type === JSON_PATCH) return applyJsonPatch(live, body);
    if (type === MERGE_PATCH) return applyMergePatch(live, body);
    if (type === STRATEGIC_PATCH && !kind.custom) return applyStrategicPatch(live, body, patchTypeFor(kind));
  } catch (error) {
    throw error instanceof PatchError ? asStatus(error) : error;
  }
  const accepted = [JSON_PATCH, MERGE_PATCH, APPLY, ...(kind.custom ? [] : [STRATEGIC_PATCH])];
  throw unsupportedMediaType(type, accepted);
}

function asStatus(error: PatchError): StatusError {
  if (error.code === 422) {
    const message = `the server rejected our request due to an error in our request: ${error.message}`;
    return new StatusError(422, "Invalid", message);
  }
  return new StatusError(error.code, error.code === 413 ? "RequestEntityTooLarge" : "BadRequest", error.message);
}

function asPatched(call: Call, patched: unknown): KubeObject {
  if (typeof patched !== "object" || patched === null || Array.isArray(patched)) {
    throw badRequest("the patch turns the object into something that is not an object");
  }
  const object = patched as KubeObject;
  const expected = groupVersion(call.kind);
  if (object.kind !== call.kind.kind || object.apiVersion !== expected) {
    throw badRequest(`a patch may not change apiVersion or kind: ${call.kind.kind} in ${expected} was patched`);
  }
  if (object.metadata?.name !== call.name) {
    throw badRequest(
      `the name of the object (${object.metadata?.name}) does not match the name on the URL (${call.name})`,
    );
  }
  return object;
}

async function serverSideApply(core: Core<WriteStore>, call: Call): Promise<Reply> {
  if (!call.query.get("fieldManager")) {
    throw badRequest(
      'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
    );
  }
  const force = call.query.get("force") === "true";
  const { object: config, warnings } = decodeObject(call.kind, call.body, APPLY, fieldValidationOf(call.query));
  if (config.metadata.name && config.metadata.name !== call.name) {
    throw badRequest(
      `the name of the object (${config.metadata.name}) does not match the name on the URL (${call.name})`,
    );
  }
  config.metadata.name = call.name;
  if (call.kind.namespaced) config.metadata.namespace = call.namespace;
  const live = findLive(core, call);
  if (!live && (call.subresource !== "" || config.metadata.uid)) throw notFound(call.kind, call.name);
  const merged = ownershipOf(call.kind).apply(live, config, whoOf(core, call), { force });
  const headers = warningHeader(warnings);
  if (!live) return { status: 201, headers, body: JSON.stringify(await createObject(core, call, merged, true)) };
  return { status: 200, headers, body: JSON.stringify(await updateObject(core, call, live, merged, true)) };
}

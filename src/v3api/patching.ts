import { refuseFields } from "../aggregated/v3-causes.ts";
import { groupVersion, type KubeObject } from "../api/object.ts";
import type { Reply } from "../apiserver/call.ts";
import { decodeObject, fieldValidationOf, parseBody, settle as settleFields } from "../apiserver/decode.ts";
import { applyPatch } from "../apiserver/patch-request.ts";
import { badRequest, notFound } from "../apiserver/status-errors.ts";
import { type Parts, storedPath, type V3Request, type Verb, writeOf } from "./request.ts";
import { findServed, isWriteConflict, mustBeNamed, replace, replyTo, settle } from "./writing.ts";

const APPLY = "application/apply-patch+yaml";
const ATTEMPTS = 5;

export const patch: Verb = async (parts, asked) => {
  const type = (asked.incoming.headers["content-type"] ?? "").split(";")[0]!.trim();
  const attempt = type === APPLY ? applyOnce : patchOnce;
  for (let left = ATTEMPTS; ; left--) {
    const { versioned, write } = await attempt(parts, asked, type);
    try {
      return await write();
    } catch (error) {
      if (versioned || left <= 1 || !isWriteConflict(error)) throw error;
    }
  }
};

interface Attempt {
  /** The client said which version it means, so a newer one is its problem to solve. */
  versioned: boolean;
  write(): Promise<Reply>;
}

/** JSON and merge patches are written for this API's objects, so they are applied to one, and the whole is put in place of what was read. */
async function patchOnce(parts: Parts, asked: V3Request, type: string): Promise<Attempt> {
  const { kind, info, incoming, query } = asked;
  const live = await findServed(parts, asked);
  if (!live) throw notFound(kind.served, info.name);
  const old = structuredClone(live);
  const patched = asObject(
    parts,
    asked,
    applyPatch(kind.served, type, live, parseBody(incoming.body, "application/json")),
  );
  const { object, warnings } = settleFields(kind.served, patched, {
    ...{ found: [], validation: fieldValidationOf(query), onUnknown: refuseFields(kind) },
  });
  const versioned = object.metadata.resourceVersion !== old.metadata.resourceVersion;
  await settle(parts, asked, object, old);
  return { versioned, write: () => replace(parts, asked, object, warnings) };
}

function asObject(parts: Parts, asked: V3Request, patched: unknown): KubeObject {
  if (typeof patched !== "object" || patched === null || Array.isArray(patched)) {
    throw badRequest("the patch turns the object into something that is not an object");
  }
  const object = patched as KubeObject;
  const { kind } = asked.kind.served;
  const expected = groupVersion(asked.kind.served);
  if (object.kind !== kind || object.apiVersion !== expected) {
    throw badRequest(`a patch may not change apiVersion or kind: ${kind} in ${expected} was patched`);
  }
  mustBeNamed(parts, asked, object.metadata?.name);
  return object;
}

/**
 * Field ownership is kept by the main API server, so it runs the apply as a dry run, the result is validated, and the apply
 * sent again for the same version. Defaults the result lacks are applied as well, by the same manager: they follow from its fields.
 */
async function applyOnce(parts: Parts, asked: V3Request): Promise<Attempt> {
  const { kind, info, incoming, query } = asked;
  if (!query.get("fieldManager")) {
    const why = "fieldManager: Required value: is required for apply patch";
    throw badRequest(`PatchOptions.meta.k8s.io "" is invalid: ${why}`);
  }
  const { object: config, warnings } = decodeObject(
    ...([kind.served, incoming.body, APPLY, fieldValidationOf(query), refuseFields(kind)] as const),
  );
  mustBeNamed(parts, asked, config.metadata.name);
  config.metadata.name ||= info.name;
  if (kind.served.namespaced) config.metadata.namespace ||= info.namespace;
  const old = await findServed(parts, asked);
  const versioned = config.metadata.resourceVersion !== undefined;
  if (old && !versioned) config.metadata.resourceVersion = old.metadata.resourceVersion;
  const send = async (dryRun: boolean) => {
    const body = parts.translator.toStored(kind, structuredClone(config));
    const request = { method: "PATCH", path: storedPath(parts, asked), body, type: APPLY, dryRun } as const;
    return await parts.backend.json<KubeObject>(writeOf(asked, request));
  };
  const write = async () => {
    const result = parts.translator.toServed(kind, (await send(true)).body);
    const before = new Set(Object.keys(specOf(result)));
    await settle(parts, asked, result, old);
    const added = Object.entries(specOf(result)).filter(([field]) => !before.has(field));
    if (added.length > 0) config["spec"] = { ...specOf(config), ...Object.fromEntries(added) };
    const { status, body } = await send(false);
    return await replyTo(parts, asked, body, { status, warnings });
  };
  return { versioned, write };
}

function specOf(object: KubeObject): Record<string, unknown> {
  return (object["spec"] ?? {}) as Record<string, unknown>;
}

import { causesOf, refuseFields } from "../aggregated/v3-causes.ts";
import type { KubeObject } from "../api/object.ts";
import { setDefaults } from "../api/resources/v3-defaults.ts";
import { type StatusCause, StatusError } from "../api/status.ts";
import type { Reply } from "../apiserver/call.ts";
import { decodeObject, fieldValidationOf } from "../apiserver/decode.ts";
import { badRequest, invalid, notFound } from "../apiserver/status-errors.ts";
import { warningHeader } from "../apiserver/write.ts";
import { type Parts, shaper, storedPath, storedRef, type V3Request, type Verb, writeOf } from "./request.ts";

export const create: Verb = async (parts, asked) => {
  const { object, warnings } = decodeBody(asked);
  const { kind, info, incoming } = asked;
  if (kind.served.namespaced) placeInNamespace(asked, object);
  const { name = "", generateName = "" } = object.metadata;
  if (kind.tiered) await parts.tiers.mustAllow(incoming.user, kind, info, name || generateName);
  await settle(parts, asked, object, undefined);
  const stored = parts.translator.toStored(kind, object);
  const { status, body } = await parts.backend.json<KubeObject>(
    writeOf(asked, { method: "POST", path: storedPath(parts, asked), body: stored }),
  );
  return await replyTo(parts, asked, body, { status, warnings });
};

export const update: Verb = async (parts, asked) => {
  const { object, warnings } = decodeBody(asked);
  mustBeNamed(parts, asked, object.metadata.name);
  object.metadata.name ||= asked.info.name;
  const old = await findServed(parts, asked);
  if (!old) throw notFound(asked.kind.served, asked.info.name);
  await settle(parts, asked, object, old);
  return await replace(parts, asked, object, warnings);
};

/** The whole object in place of what is stored; its resource version, if it has one, must still be the newest. */
export async function replace(
  parts: Parts,
  asked: V3Request,
  object: KubeObject,
  warnings: readonly string[],
): Promise<Reply> {
  const stored = parts.translator.toStored(asked.kind, object);
  const { status, body } = await parts.backend.json<KubeObject>(
    writeOf(asked, { method: "PUT", path: storedPath(parts, asked), body: stored }),
  );
  return await replyTo(parts, asked, body, { status, warnings });
}

export async function replyTo(
  parts: Parts,
  asked: V3Request,
  stored: KubeObject,
  { status, warnings }: { status: number; warnings: readonly string[] },
): Promise<Reply> {
  const object = parts.translator.toServed(asked.kind, stored);
  const more = asked.info.subresource === "" ? await parts.warnings.of(asked.kind, object) : [];
  return shaper(parts, asked).one(object, status, warningHeader([...warnings, ...more]));
}

/** The object as people see it now; undefined when there is none. */
export async function findServed(parts: Parts, asked: V3Request): Promise<KubeObject | undefined> {
  const stored = await parts.backend.find(asked.kind, storedRef(parts, asked), asked.incoming.signal);
  return stored && parts.translator.toServed(asked.kind, stored);
}

/** Fills what was left out and refuses what must not be stored. A status is its writer's own affair: the schema is enough. */
export async function settle(
  parts: Parts,
  { kind, info, incoming }: V3Request,
  object: KubeObject,
  old: KubeObject | undefined,
): Promise<void> {
  const { name = "", generateName = "" } = object.metadata;
  const judged = info.subresource === "";
  const refuse = (causes: readonly StatusCause[]) => {
    if (causes.length > 0) throw invalid(kind.served, name || generateName, causes);
  };
  if (judged) {
    setDefaults(kind.noun, object);
    refuse(causesOf(kind, object, old));
  }
  parts.guards.mayTouch(kind, name || generateName, incoming.user);
  if (judged) refuse(await parts.guards.causes(kind, object, old));
}

function decodeBody({ kind, incoming, query }: V3Request) {
  const type = incoming.headers["content-type"];
  return decodeObject(kind.served, incoming.body, type, fieldValidationOf(query), refuseFields(kind));
}

function placeInNamespace({ info }: V3Request, { metadata }: KubeObject): void {
  if (metadata.namespace && metadata.namespace !== info.namespace) {
    throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
  }
  metadata.namespace = info.namespace;
}

export function mustBeNamed(parts: Parts, { kind, info }: V3Request, name: string | undefined): void {
  const { translator } = parts;
  if (!name || translator.storedName(kind, name) === translator.storedName(kind, info.name)) return;
  throw badRequest(`the name of the object (${name}) does not match the name on the URL (${info.name})`);
}

/** A conflict between our read and our write; a client that gave no resourceVersion does not see it. */
export function isWriteConflict(error: unknown): boolean {
  if (!(error instanceof StatusError) || error.reason !== "Conflict") return false;
  return !(error.status.details?.causes ?? []).some(({ reason }) => reason === "FieldManagerConflict");
}

import { groupVersion, type KubeObject } from "../api/object.ts";
import type { Status } from "../api/status.ts";
import { parseBody } from "../apiserver/decode.ts";
import { statusReply } from "../apiserver/shape.ts";
import { isConflict, isNotFound } from "../cluster/failures.ts";
import { objectPath } from "../cluster/paths.ts";
import { selected } from "./reading.ts";
import { type Parts, shaper, storedPath, type V3Request, type Verb, writeOf } from "./request.ts";
import { statusToServed } from "./translate-status.ts";

interface DeleteOptions {
  apiVersion?: string;
  kind?: string;
  preconditions?: { uid?: string; resourceVersion?: string } | null;
}

export const remove: Verb = async (parts, asked) => {
  const { kind, info, incoming } = asked;
  await parts.guards.mayDelete(kind, info.name, incoming.user);
  const body = deleteOptions(parts, asked);
  const request = writeOf(asked, { method: "DELETE", path: storedPath(parts, asked), body });
  const { body: left } = await parts.backend.json<KubeObject | Status>(request);
  if (left.kind === "Status") return statusReply(statusToServed(left as Status, kind, parts.translator));
  // Something holds it back still: the object as it waits.
  return shaper(parts, asked).one(parts.translator.toServed(kind, left as KubeObject));
};

/** One by one, so that each is validated as if it were deleted by name. What may not be deleted is found before any delete. */
export const removeCollection: Verb = async (parts, asked) => {
  const { kind, incoming } = asked;
  const { items, metadata } = await selected(parts, asked);
  for (const item of items) await parts.guards.mayDelete(kind, item.metadata.name, incoming.user);
  const options = deleteOptions(parts, asked);
  for (const item of items) await removeOne(parts, asked, item, options);
  const { served } = kind;
  const list = { kind: `${served.kind}List`, apiVersion: groupVersion(served), metadata, items };
  return { status: 200, body: JSON.stringify(list) };
};

async function removeOne(parts: Parts, asked: V3Request, item: KubeObject, options: DeleteOptions): Promise<void> {
  const { name, namespace, uid = "" } = item.metadata;
  const path = objectPath(asked.kind.stored, { name: parts.translator.storedName(asked.kind, name), namespace });
  const body = { ...options, preconditions: { ...options.preconditions, uid: parts.translator.uid(uid) } };
  try {
    await parts.backend.json(writeOf(asked, { method: "DELETE", path, body }));
  } catch (error) {
    // Gone already, or another of the same name has come: what was to be deleted is not there.
    if (!isNotFound(error) && !isConflict(error)) throw error;
  }
}

function deleteOptions(parts: Parts, { incoming }: V3Request): DeleteOptions {
  const { body, headers } = incoming;
  const given = (body.length === 0 ? {} : (parseBody(body, headers["content-type"]) ?? {})) as DeleteOptions;
  const options: DeleteOptions = { ...given, apiVersion: "meta.k8s.io/v1", kind: "DeleteOptions" };
  const uid = given.preconditions?.uid;
  if (uid !== undefined) options.preconditions = { ...given.preconditions, uid: parts.translator.uid(uid) };
  return options;
}

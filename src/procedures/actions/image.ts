import type { KubeObject, ObjectMeta } from "../../api/object.ts";

/**
 * The part of an object that a user or tool wrote; the rest is written, again and again, by the server and the controllers. An image is what is kept in
 * the journal, and what is restored.
 */
export function imageOf(object: KubeObject): KubeObject {
  const { status: _, ...written } = object;
  return { ...written, apiVersion: object.apiVersion, kind: object.kind, metadata: writtenMeta(object.metadata) };
}

function writtenMeta(metadata: ObjectMeta): ObjectMeta {
  const { name, namespace, labels, annotations, finalizers, ownerReferences } = metadata;
  const kept = { name, namespace, labels, annotations, finalizers, ownerReferences };
  return Object.fromEntries(Object.entries(kept).filter(([, value]) => value !== undefined)) as unknown as ObjectMeta;
}

/**
 * The image on top of the live object: what was written is as it was. Finalizers and owners stay as they are now, because they
 * are promises others have made since; only what is being deleted has no use for them.
 */
export function restored(image: KubeObject, live: KubeObject): KubeObject {
  const { resourceVersion, uid, finalizers, ownerReferences } = live.metadata;
  const metadata = { ...image.metadata, resourceVersion, uid, finalizers, ownerReferences };
  const status = "status" in live ? { status: live["status"] } : {};
  return { ...image, metadata, ...status };
}

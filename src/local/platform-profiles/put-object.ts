import { isDeepStrictEqual } from "node:util";
import type { KubeObject } from "../../api/object.ts";
import type { Client } from "../../cluster/client.ts";
import { isNotFound } from "../../cluster/failures.ts";

/** `leaving`: the object is being deleted, and can be made again only when it is gone. */
export type PutResult =
  | { did: "created" | "changed"; object: KubeObject }
  | { did: "nothing"; object: KubeObject }
  | { did: "leaving" };

/**
 * Makes an object exactly what its manifest says, as a platform does that owns it: what others added goes too. Whether there is
 * a difference the server is asked, because only it knows the defaults the manifest leaves out.
 */
export async function putObject(client: Client, manifest: KubeObject): Promise<PutResult> {
  const kind = await client.resourceFor(manifest);
  const live = await client.get<KubeObject>(kind, manifest.metadata).catch(orUndefined);
  if (!live) return { did: "created", object: await client.create(kind, manifest) };
  if (live.metadata.deletionTimestamp !== undefined) return { did: "leaving" };
  const wanted = inPlaceOf(live, manifest);
  const proposal = await client.replace(kind, wanted, { dryRun: true });
  if (isDeepStrictEqual(contentOf(proposal), contentOf(live))) return { did: "nothing", object: live };
  return { did: "changed", object: await client.replace(kind, wanted) };
}

/** The manifest with the live object's identity and status; labels and annotations others added may stay. */
function inPlaceOf(live: KubeObject, manifest: KubeObject): KubeObject {
  const labels = { ...live.metadata.labels, ...manifest.metadata.labels };
  const annotations = { ...live.metadata.annotations, ...manifest.metadata.annotations };
  const status = live["status"] === undefined ? {} : { status: live["status"] };
  return { ...manifest, metadata: { ...live.metadata, labels, annotations }, ...status };
}

function contentOf({ metadata, status: _, ...content }: KubeObject): unknown {
  return { ...content, labels: metadata.labels ?? {}, annotations: metadata.annotations ?? {} };
}

function orUndefined(error: unknown): undefined {
  if (!isNotFound(error)) throw error;
  return undefined;
}

import type { KubeObject } from "../../../api/object.ts";
import { digestOf, openReleaseFiles } from "../../../releases/open-release-files.ts";
import type { ReleaseFiles } from "../../../releases/release-files.ts";
import type { Action, Work } from "../../action.ts";
import { manifestObjects } from "../../plans/install/edit-manifest.ts";
import { errors } from "../errors.ts";
import { applyObjects } from "./apply-objects.ts";
import type { Settle } from "./settle.ts";

export type ApplyManifestInputs = {
  /** The published file, where it comes from, and what it was when the plan was made. */
  file: string;
  from: string;
  digest: string;
  /** Of the file, only objects of this kind. */
  only?: string;
  /** Waited for after the undo. */
  afterUndo?: Settle;
};

type Before = (KubeObject | null)[];

/** Server-side apply of a whole published file, for files too long to be written into a plan. */
export const applyManifest: Action<ApplyManifestInputs, Before> = {
  needed: async (inputs, work) => applyObjects.needed({ objects: await objectsOf(inputs, work) }, work),
  before: async (inputs, work) => (await applyObjects.before?.({ objects: await objectsOf(inputs, work) }, work)) ?? [],
  apply: async (inputs, work, before) => applyObjects.apply({ objects: await objectsOf(inputs, work) }, work, before),
  preview: async (inputs, work) =>
    (await applyObjects.preview?.({ objects: await objectsOf(inputs, work) }, work)) ?? [],
  async undo(inputs, work, before) {
    const { afterUndo } = inputs;
    const objects = await objectsOf(inputs, work);
    await applyObjects.undo?.({ objects, ...(afterUndo && { afterUndo }) }, work, before);
  },
};

type Reading = Pick<Work, "files" | "signal">;

/** A step is asked several times about the same long file; it is read once for each place it comes from. */
const read = new WeakMap<ReleaseFiles, Map<string, readonly KubeObject[]>>();

export async function objectsOf(inputs: ApplyManifestInputs, work: Reading): Promise<KubeObject[]> {
  const { only, digest } = inputs;
  const known = read.get(work.files) ?? new Map<string, readonly KubeObject[]>();
  read.set(work.files, known);
  const objects = known.get(digest) ?? (await readObjects(inputs, work));
  known.set(digest, objects);
  return structuredClone(only === undefined ? [...objects] : objects.filter(({ kind }) => kind === only));
}

/** A file that is no longer the same is not what the plan showed. */
async function readObjects({ file, from, digest }: ApplyManifestInputs, work: Reading): Promise<KubeObject[]> {
  const files =
    from === work.files.from
      ? work.files
      : openReleaseFiles({ ...(from === "built in" ? {} : { manifestUrl: from }), signal: work.signal });
  const text = await files.read(file);
  if (digestOf(text) !== digest) throw errors.STEP_FILE_CHANGED(file, from);
  return manifestObjects(file, text);
}

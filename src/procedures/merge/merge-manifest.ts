import { type Document, isScalar, visit } from "yaml";
import type { KubeObject } from "../../api/object.ts";
import { carryComments } from "./carry-comments.ts";
import { fieldName, formatPath } from "./field-path.ts";
import { MovedPlaces } from "./image-parts.ts";
import { documentOf, type ManifestDocument, manifestDocuments, objectKey } from "./manifest-documents.ts";
import { type Clash, type Edit, mergeValues, sameButPlaces } from "./merge-values.ts";
import { makeEdit, nodeAt } from "./yaml-nodes.ts";

export interface MergeInputs {
  /** What the version that runs published. */
  base: string;
  /**
   * The base is not what was published but close to it. Rights that are in it and not in theirs are then new in this version rather than removed by
   * the person, and are not kept away from it.
   */
  baseGuessed?: boolean;
  /** What the person made of it: their file, or the objects as they are in the cluster. */
  theirs: { file: string; text: string } | { objects: readonly KubeObject[] };
  /** What the new version published. */
  ours: string;
  /** A kind that is taken from the new manifest whatever became of it. */
  leave?: string;
  /** Clashes a person has decided: by the path they were reported under. */
  take: Readonly<Record<string, "mine" | "new">>;
}

/** `path` names the object too: `DaemonSet/kube-system/vendor-node:spec.template.spec.tolerations`. */
export interface CarriedEdit {
  path: string;
  from: unknown;
  to: unknown;
}

export interface MergeConflict {
  path: string;
  why: Clash["why"];
  base: unknown;
  theirs: unknown;
  ours: unknown;
}

export interface MergedManifest {
  /** The new manifest with the person's edits and comments; what clashed is as the new version has it. */
  text: string;
  /** Of one kind, or of all but one; the definitions are many and long. */
  objects(which: { only?: string; not?: string }): KubeObject[];
  edits: CarriedEdit[];
  conflicts: MergeConflict[];
  /** How many of the person's own comments were kept. */
  comments: number;
  /** Objects of the old manifest that the new one no longer has. */
  dropped: string[];
  /** Decisions that fit no clash. */
  untaken: string[];
}

interface Merging {
  take: MergeInputs["take"];
  baseGuessed: boolean;
  taken: Set<string>;
  edits: CarriedEdit[];
  conflicts: MergeConflict[];
  comments: number;
  /** Documents of the result that are no longer as they were published. */
  edited: Set<ManifestDocument>;
  /** Where the person has images of the release from. */
  places: MovedPlaces;
}

/**
 * Finds what a person changed in the manifest of the version they run, and makes the same changes in the new one. Both having
 * changed one field, or the new one no longer having what was changed, is a conflict: reported, and never decided here.
 */
export function mergeManifest({ base, baseGuessed, theirs, ours, take, leave }: MergeInputs): MergedManifest {
  const merging: Merging = {
    ...{ take, baseGuessed: baseGuessed ?? false, taken: new Set() },
    ...{ edits: [], conflicts: [], comments: 0, edited: new Set(), places: new MovedPlaces() },
  };
  const published = manifestDocuments("the published manifest", base);
  const own = "text" in theirs ? manifestDocuments(theirs.file, theirs.text) : fromObjects(theirs.objects);
  const result = manifestDocuments("the new manifest", ours);
  const left = (one: ManifestDocument | undefined) =>
    leave !== undefined && one !== undefined && isOfKind(one.name, leave);
  for (const key of new Set([...published.keys(), ...own.keys()])) {
    if (left(published.get(key) ?? own.get(key))) continue;
    mergeOne(merging, key, { base: published.get(key), theirs: own.get(key) }, result);
  }
  const documents = [...result.values()];
  for (const one of documents) if (!left(one)) moveAddedImages(merging, one);
  const edited = merging.edited;
  const dropped = [...published].filter(([key, one]) => !result.has(key) && !left(one)).map(([, { name }]) => name);
  return {
    text: documents.map((one) => (edited.has(one) ? printed(one.document) : withSeparator(one.text))).join(""),
    objects: ({ only, not }) =>
      documents
        .filter(
          ({ name }) => (only === undefined || isOfKind(name, only)) && (not === undefined || !isOfKind(name, not)),
        )
        .map(({ document }) => document.toJS() as KubeObject),
    edits: merging.edits,
    conflicts: merging.conflicts,
    comments: merging.comments,
    dropped,
    untaken: Object.keys(take).filter((path) => !merging.taken.has(path)),
  };
}

interface Pair {
  base: ManifestDocument | undefined;
  theirs: ManifestDocument | undefined;
}

function mergeOne(merging: Merging, key: string, { base, theirs }: Pair, result: Map<string, ManifestDocument>): void {
  const ours = result.get(key);
  if (theirs === undefined) {
    if (base && ours && mayRemove(merging, base.name)) leftOut(merging, key, { base, ours }, result);
    return;
  }
  if (ours === undefined) {
    if (base === undefined) addOwn(merging, key, theirs, result);
    else goneObject(merging, key, { base, theirs }, result);
    return;
  }
  // Byte for byte as published: nothing was edited. CRDs in the cluster are not compared by their text.
  if (base && base.text !== "" && base.text === theirs.text) return;
  const { name } = theirs;
  const label = (path: Edit["path"]) => `${name}:${formatPath(path)}`;
  const found = mergeValues([], [base?.object ?? {}, theirs.object, ours.object], (path) =>
    decided(merging, label(path)),
  );
  const edits = found.edits.filter(({ to }) => to !== undefined || mayRemove(merging, name));
  for (const edit of edits) {
    const given = nodeAt(theirs.document, edit.path);
    const published = nodeAt(ours.document, edit.path)?.toJS(ours.document);
    if (typeof published === "string" && typeof edit.to === "string") merging.places.learn(published, edit.to);
    makeEdit(ours.document, edit, sameValue(given, theirs.document, edit.to) ? given : undefined);
    merging.edits.push({ path: label(edit.path), from: edit.from, to: edit.to });
  }
  merging.conflicts.push(...found.clashes.map((clash) => ({ ...clash, path: label(clash.path) })));
  const comments = carryComments(base?.document, theirs.document, ours.document).length;
  merging.comments += comments;
  if (comments > 0 || edits.length > 0) merging.edited.add(ours);
}

/** Containers that the new release adds: their images are where the person's other images of it are. */
function moveAddedImages(merging: Merging, one: ManifestDocument): void {
  visit(one.document, {
    Pair(_key, { key, value }) {
      if (!isScalar(key) || key.value !== "image" || !isScalar(value) || typeof value.value !== "string") return;
      const from = value.value;
      const to = merging.places.moved(from);
      if (to === undefined) return;
      value.value = to;
      merging.edits.push({ path: `${one.name}:image ${from}`, from, to });
      merging.edited.add(one);
    },
  });
}

const RIGHTS = ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];

/** Whether what is missing was removed by the person. */
function mayRemove({ baseGuessed }: Merging, name: string): boolean {
  return !(baseGuessed && RIGHTS.some((kind) => isOfKind(name, kind)));
}

function decided({ take, taken }: Merging, path: string): "mine" | "new" | undefined {
  if (!Object.hasOwn(take, path)) return undefined;
  taken.add(path);
  return take[path];
}

/** The person took a whole object out. */
function leftOut(
  merging: Merging,
  key: string,
  { base, ours }: { base: ManifestDocument; ours: ManifestDocument },
  result: Map<string, ManifestDocument>,
): void {
  const path = ours.name;
  const taken = decided(merging, path);
  if (taken === "mine") {
    result.delete(key);
    merging.edits.push({ path, from: base.object, to: undefined });
  } else if (taken === undefined) {
    merging.conflicts.push({ path, why: "both changed", base: base.object, theirs: undefined, ours: ours.object });
  }
}

function addOwn(merging: Merging, key: string, theirs: ManifestDocument, result: Map<string, ManifestDocument>): void {
  result.set(key, theirs);
  merging.edits.push({ path: theirs.name, from: undefined, to: theirs.object });
}

/** The new version no longer has an object. That matters only where the person changed it. */
function goneObject(
  merging: Merging,
  key: string,
  { base, theirs }: { base: ManifestDocument; theirs: ManifestDocument },
  result: Map<string, ManifestDocument>,
): void {
  const path = theirs.name;
  if (base.text !== "" && base.text === theirs.text) return;
  const { edits } = mergeValues([], [base.object, theirs.object, base.object], () => undefined);
  if (edits.length === 0 || edits.every((edit) => sameButPlaces(edit.from, edit.to, fieldName(edit.path)))) return;
  const taken = decided(merging, path);
  if (taken === "mine") addOwn(merging, key, theirs, result);
  else if (taken === undefined) {
    merging.conflicts.push({ path, why: "gone", base: base.object, theirs: theirs.object, ours: undefined });
  }
}

/** An image or a JSON text may have been merged inside: then the person's own node is not what is to be written. */
function sameValue(node: ReturnType<typeof nodeAt>, document: Document, value: unknown): boolean {
  return node !== undefined && JSON.stringify(node.toJS(document)) === JSON.stringify(value);
}

function fromObjects(objects: readonly KubeObject[]): Map<string, ManifestDocument> {
  return new Map(objects.map((object) => [objectKey(object), documentOf(object)]));
}

const isOfKind = (name: string, kind: string) => name.startsWith(`${kind}/`);

function printed(document: Document): string {
  return withSeparator(document.toString({ lineWidth: 0 }));
}

function withSeparator(text: string): string {
  const whole = text.endsWith("\n") ? text : `${text}\n`;
  return /^---(?:\s|$)/m.test(whole) ? whole : `---\n${whole}`;
}

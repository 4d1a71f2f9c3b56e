import type { KubeObject } from "../../api/object.ts";
import { compare } from "./compare.ts";
import { difference, type FieldSet } from "./field-set.ts";
import { canonicalText, isMap } from "./json.ts";
import { toFieldSet } from "./to-field-set.ts";
import type { TypeNode } from "./type-node.ts";
import { validate } from "./validate.ts";

/**
 * Moving from `kubectl apply` to `kubectl apply --server-side`: the first keeps what it applied in an annotation and
 * owns it as an ordinary writer, so the second, under kubectl's own name, may take it over, and keeps the annotation true.
 */
export const KUBECTL = "kubectl";
const ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration";
const MAX_ANNOTATIONS_BYTES = 256 * 1024;

/** The fields client-side apply set and no other manager changed since; undefined when the object does not come from it. */
export function ownedByClientSideApply(type: TypeNode, live: KubeObject, apiVersion: string): FieldSet | undefined {
  const text = live.metadata.annotations?.[ANNOTATION];
  if (!text) return undefined;
  const last = parsed(text);
  if (!isMap(last) || last["apiVersion"] !== apiVersion) return undefined;
  if (validate(type, last, { allowDuplicates: false }).length > 0) return undefined;
  const { added, modified, removed } = compare(type, last, live);
  return [modified, added, removed].reduce(difference, toFieldSet(type, last));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The object with its annotation, if it has one, set to the configuration just applied. */
export function withLastApplied(object: KubeObject, config: KubeObject): KubeObject {
  const annotations = object.metadata.annotations;
  if (!annotations?.[ANNOTATION]) return object;
  const { [ANNOTATION]: _, ...others } = config.metadata.annotations ?? {};
  const metadata: Record<string, unknown> = { ...config.metadata, annotations: others };
  if (Object.keys(others).length === 0) delete metadata["annotations"];
  const { [ANNOTATION]: _old, ...rest } = annotations;
  const updated = { ...rest, [ANNOTATION]: `${canonicalText({ ...config, metadata })}\n` };
  const fits = sizeOf(updated) <= MAX_ANNOTATIONS_BYTES;
  return { ...object, metadata: { ...object.metadata, annotations: fits ? updated : rest } };
}

function sizeOf(annotations: Readonly<Record<string, string>>): number {
  return Object.entries(annotations).reduce(
    (sum, pair) => sum + Buffer.byteLength(pair[0]) + Buffer.byteLength(pair[1]),
    0,
  );
}

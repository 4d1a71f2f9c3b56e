import { type Document, isMap, isNode, isScalar, isSeq, type Node, type Pair, type YAMLMap, type YAMLSeq } from "yaml";
import type { FieldPath, Segment } from "./field-path.ts";
import { itemKey } from "./list-rules.ts";
import { type Edit, memberKey } from "./merge-values.ts";

/** The node a path leads to, in a document as it was written; undefined where it ends early. */
export function nodeAt(document: Document, path: FieldPath): Node | undefined {
  let node: unknown = document.contents;
  for (const segment of path) node = stepInto(document, node, segment);
  return isNode(node) ? node : undefined;
}

/** The pair of a map a path ends at: comments above a field hang on its key. */
export function pairAt(document: Document, path: FieldPath): Pair | undefined {
  const last = path.at(-1);
  const parent = nodeAt(document, path.slice(0, -1));
  return last?.at === "key" && isMap(parent) ? pairOf(parent, last.key) : undefined;
}

function stepInto(document: Document, node: unknown, segment: Segment): unknown {
  if (segment.at === "key") return isMap(node) ? pairOf(node, segment.key)?.value : undefined;
  return isSeq(node) ? node.items[indexOf(document, node, segment)] : undefined;
}

function pairOf(map: YAMLMap, key: string): Pair | undefined {
  return map.items.find((pair) => keyOf(pair) === key);
}

export function keyOf(pair: Pair): string {
  return String(isScalar(pair.key) ? pair.key.value : pair.key);
}

function indexOf(document: Document, list: YAMLSeq, segment: Exclude<Segment, { at: "key" }>): number {
  return list.items.findIndex((item) => {
    const value: unknown = isNode(item) ? item.toJS(document) : item;
    return (segment.at === "item" ? itemKey(value, segment.by) : memberKey(value)) === segment.value;
  });
}

/**
 * Makes an edit in a document. `exported` is the person's own node for the new value, whose comments and way of writing stay; without
 * one the value is written again.
 */
export function makeEdit(document: Document, edit: Edit, given: Node | undefined): void {
  const { path, to } = edit;
  const last = path.at(-1);
  if (last === undefined) return;
  const parent = parentFor(document, path);
  const value = to === undefined ? undefined : ((given?.clone() as Node | undefined) ?? document.createNode(to));
  if (last.at === "key") {
    if (!isMap(parent)) return;
    const pair = pairOf(parent, last.key);
    if (value === undefined) parent.items = parent.items.filter((one) => one !== pair);
    else if (pair) pair.value = keepComment(pair.value, value);
    else parent.items.push(document.createPair(last.key, undefined) as never);
    if (value !== undefined && !pair) (parent.items.at(-1) as Pair).value = value;
    return;
  }
  if (!isSeq(parent)) return;
  const index = indexOf(document, parent, last);
  if (value === undefined) parent.items = parent.items.filter((_, at) => at !== index);
  else if (index >= 0) parent.items[index] = value;
  else parent.items.splice(placeAfter(document, parent, last, edit.after), 0, value);
}

/** Maps and lists the path leads through are made where they are missing. */
function parentFor(document: Document, path: FieldPath): Node | undefined {
  for (let depth = 1; depth < path.length; depth++) {
    if (nodeAt(document, path.slice(0, depth)) !== undefined) continue;
    const isMapNext = path[depth]?.at === "key";
    makeEdit(document, { path: path.slice(0, depth), from: undefined, to: isMapNext ? {} : [] }, undefined);
  }
  return nodeAt(document, path.slice(0, -1));
}

function placeAfter(
  document: Document,
  list: YAMLSeq,
  segment: Exclude<Segment, { at: "key" }>,
  after?: string,
): number {
  const before = after === undefined ? -1 : indexOf(document, list, { ...segment, value: after });
  return before < 0 ? list.items.length : before + 1;
}

/** The new release's remark at the end of a line stays when the value changes. */
function keepComment(old: unknown, value: Node): Node {
  if (isScalar(old) && isScalar(value) && !value.comment) value.comment = old.comment ?? null;
  return value;
}

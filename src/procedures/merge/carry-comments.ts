import { type Document, isMap, isNode, isScalar, isSeq, type Node } from "yaml";
import { type FieldPath, fieldName, keySegment } from "./field-path.ts";
import { itemKey, listRule } from "./list-rules.ts";
import { memberKey } from "./merge-values.ts";
import { keyOf, nodeAt, pairAt } from "./yaml-nodes.ts";

/** A comment and the field it stands at: above it, at the end of its line, or after its last item. */
interface Remark {
  path: FieldPath;
  where: "above" | "behind" | "below";
  text: string;
}

/**
 * Puts the person's own comments (those that their version's published document does not have) where they stood. One whose field
 * the new document does not have goes to the nearest field above it that is there.
 */
export function carryComments(base: Document | undefined, theirs: Document, ours: Document): Remark[] {
  const published = new Map((base ? remarksOf(base) : []).map((remark) => [placeOf(remark), remark.text]));
  const own = remarksOf(theirs).flatMap((remark) => {
    const text = withoutLines(remark.text, published.get(placeOf(remark)) ?? "");
    return text === "" ? [] : [{ ...remark, text }];
  });
  for (const remark of own) put(ours, remark);
  return own;
}

const placeOf = ({ path, where }: Remark) => `${where} ${JSON.stringify(path)}`;

function withoutLines(text: string, known: string): string {
  const lines = new Set(known.split("\n"));
  return text
    .split("\n")
    .filter((line) => !lines.has(line))
    .join("\n");
}

function remarksOf(document: Document): Remark[] {
  const found: Remark[] = [];
  const note = (path: FieldPath, where: Remark["where"], text: string | null | undefined) => {
    if (text) found.push({ path, where, text });
  };
  note([], "above", document.commentBefore);
  note([], "below", document.comment);
  const walk = (node: unknown, path: FieldPath): void => {
    if (!isNode(node)) return;
    if (path.length > 0) note(firstPath(document, node, path), "above", node.commentBefore);
    note(path, isScalar(node) ? "behind" : "below", node.comment);
    if (isMap(node)) {
      for (const pair of node.items) {
        const inner = [...path, keySegment(keyOf(pair))];
        if (isNode(pair.key)) note(inner, "above", pair.key.commentBefore);
        walk(pair.value, inner);
      }
    }
    if (isSeq(node)) for (const [item, inner] of itemsOf(document, node.items, path)) walk(item, inner);
  };
  walk(document.contents, []);
  return found;
}

/** The parser hangs a comment above the first field of a section on the section. */
function firstPath(document: Document, node: Node, path: FieldPath): FieldPath {
  const inItem = path.at(-1)?.at !== "key";
  if (isMap(node) && !inItem && node.items[0]) return [...path, keySegment(keyOf(node.items[0]))];
  if (isSeq(node)) return itemsOf(document, node.items, path)[0]?.[1] ?? path;
  return path;
}

function itemsOf(document: Document, items: readonly unknown[], path: FieldPath): [unknown, FieldPath][] {
  const values = items.map((item) => (isNode(item) ? item.toJS(document) : item) as unknown);
  const rule = listRule(fieldName(path), [values]);
  return items.map((item, index) => {
    const value = values[index];
    const by = rule.as === "map" ? rule.by : undefined;
    const segment = by
      ? { at: "item" as const, by, value: itemKey(value, by)! }
      : { at: "member" as const, value: memberKey(value) };
    return [item, [...path, segment]];
  });
}

function put(document: Document, remark: Remark): void {
  const { where, text } = remark;
  let { path } = remark;
  while (path.length > 0 && nodeAt(document, path) === undefined && pairAt(document, path) === undefined) {
    path = path.slice(0, -1);
  }
  if (path.length === 0) {
    if (where === "below" && remark.path.length === 0) document.comment = joined(document.comment, text);
    else document.commentBefore = joined(document.commentBefore, text);
    return;
  }
  const moved = path.length < remark.path.length;
  const node = nodeAt(document, path);
  const key = pairAt(document, path)?.key;
  if (where === "above" || moved) {
    const holder = isNode(key) ? key : node;
    if (holder) holder.commentBefore = joined(holder.commentBefore, text);
  } else if (node) node.comment = joined(node.comment, text);
}

function joined(has: string | null | undefined, text: string): string {
  const lines = has ? has.split("\n") : [];
  return [...lines, ...text.split("\n").filter((line) => !lines.includes(line))].join("\n");
}

import { Document, isNode, LineCounter, parseDocument } from "yaml";
import type { KubeObject } from "../../api/object.ts";

/** An object as `kubectl get -o yaml` prints it, to point into. */
export interface ObjectText {
  /** Of a rule, as `["spec", "ingress", 2]`; undefined: there is no such field. */
  find(path: readonly (string | number)[]): { line: number; yaml: string } | undefined;
}

/** So much of a rule is shown; rules of thousands of prefixes are cut. */
const MOST_LINES = 40;

export function objectText(object: KubeObject): ObjectText {
  const { managedFields: _, ...metadata } = object.metadata;
  const text = yamlText({ ...object, metadata });
  const lines = text.split("\n");
  const counter = new LineCounter();
  const document = parseDocument(text, { lineCounter: counter });
  return {
    find(path) {
      const node = document.getIn(path, true);
      if (!isNode(node) || !node.range) return undefined;
      const [start, end] = node.range;
      const first = counter.linePos(start).line;
      const last = counter.linePos(Math.max(start, end - 1)).line;
      const found = lines.slice(first - 1, Math.min(last, first - 1 + MOST_LINES));
      const cut = last - first + 1 > MOST_LINES ? ["# …"] : [];
      return { line: first, yaml: unindented([...found, ...cut]).join("\n") };
    },
  };
}

/** Keys by the alphabet and lists not indented, as kubectl prints them. */
export function yamlText(value: unknown): string {
  const document = new Document(value, { sortMapEntries: true, aliasDuplicateObjects: false, compat: "yaml-1.1" });
  return document.toString({ lineWidth: 0, indentSeq: false });
}

function unindented(lines: readonly string[]): string[] {
  const indents = lines.filter((line) => line.trim() !== "" && line !== "# …").map((line) => line.search(/\S/));
  const indent = Math.min(...indents, 80);
  return lines.map((line) => (line.startsWith("#") ? line : line.slice(indent).trimEnd()));
}

import { Document, isScalar, visit } from "yaml";
import { printable } from "./printable.ts";

/** In a file of its own, so that the library is loaded only for `-o yaml`. */
export function toYaml(value: unknown): string {
  // kubectl reads YAML 1.1, in which a plain `Off` is a boolean.
  const document = new Document(value, { compat: "yaml-1.1" });
  // Quoted, a control character is an escape sequence; plain, it would be itself.
  visit(document, {
    Scalar(_key, node) {
      if (isScalar(node) && typeof node.value === "string" && printable(node.value) !== node.value)
        node.type = "QUOTE_DOUBLE";
    },
  });
  return document.toString({ lineWidth: 0 });
}

import { stringify } from "yaml";

/** One file of many documents. Objects may share parts; a file must not, so no aliases. */
export function printYaml(header: string, documents: readonly unknown[]): string {
  const printed = documents.map((document) => `---\n${printDocument(document)}`);
  return `${comment(header)}${printed.join("")}`;
}

/** kubectl and helm read YAML 1.1, in which a plain `Off` is a boolean: what the two versions read differently is quoted. */
export function printDocument(document: unknown): string {
  return stringify(document, { aliasDuplicateObjects: false, lineWidth: 0, compat: "yaml-1.1" });
}

export function comment(text: string): string {
  return text
    .trimEnd()
    .split("\n")
    .map((line) => (line === "" ? "#\n" : `# ${line}\n`))
    .join("");
}

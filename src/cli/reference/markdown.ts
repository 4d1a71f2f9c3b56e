/** The few pieces of GitHub markdown that the printed reference is made of. */

export const GENERATED = (source: string): string =>
  `<!-- Generated from ${source}. Do not edit: change the source and run \`npm run generate\`. -->\n`;

/** A table; columns that are empty in every row are left out. */
export function table(columns: readonly string[], rows: readonly (readonly string[])[]): string {
  const shown = columns.map((_, at) => rows.some((row) => (row[at] ?? "") !== ""));
  const line = (cells: readonly string[]) => `| ${cells.filter((_, at) => shown[at]).join(" | ")} |\n`;
  return line(columns) + line(columns.map(() => "---")) + rows.map((row) => line(row.map(cell))).join("");
}

export function code(text: string): string {
  return text === "" ? "" : `\`${text}\``;
}

export function fenced(language: string, text: string): string {
  return `\`\`\`${language}\n${text.trimEnd()}\n\`\`\`\n`;
}

/** Names that are written as they are, also at the beginning of a sentence. */
const NAME = /^(?:\S*[A-Z<_]|vendor|kube|iptables|nftables|helm|etcd)/;

/** Text from a source file as a sentence: a capital first, a full stop last. */
export function sentence(text: string): string {
  const trimmed = text.trim();
  if (trimmed === "") return "";
  const first = NAME.test(trimmed) ? trimmed : trimmed.charAt(0).toUpperCase() + trimmed.slice(1);
  return /[.!?:`]$/.test(first) ? first : `${first}.`;
}

/** GitHub takes `<name>` outside of code for a tag and drops it. */
export function plain(text: string): string {
  return text.replaceAll("<", "\\<").replaceAll("*", "\\*");
}

/** The anchor GitHub gives a heading. */
export function anchor(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replace(/\s/g, "-");
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("\n", " ");
}

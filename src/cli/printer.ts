import type { Session } from "./session.ts";

const GAP = "   ";

export interface Table {
  columns: readonly string[];
  rows: readonly (readonly string[])[];
  /** Said instead of a table without rows. */
  empty?: string;
}

/** Prints a result the way `-o` asks for. The table is only made when somebody will see it. */
export async function print(session: Session, value: unknown, table: () => Table): Promise<void> {
  session.out(await render(session, value, table));
}

async function render(session: Session, value: unknown, table: () => Table): Promise<string> {
  switch (session.flags.output) {
    case "json":
      return `${JSON.stringify(value, null, 2)}\n`;
    case "yaml":
      return (await import("./to-yaml.ts")).toYaml(value);
    case "table":
    // Commands that know no shorter form were refused before they started.
    case "short":
    case "junit":
    case "wide":
    case "name":
      return formatTable(table());
  }
}

/** Columns as wide as their widest cell, and no space at the end of a line. */
export function formatTable({ columns, rows, empty }: Table): string {
  if (rows.length === 0 && empty !== undefined) return `${empty}\n`;
  const lines = [columns, ...rows];
  const widths = columns.map((_, column) => Math.max(...lines.map((line) => (line[column] ?? "").length)));
  const text = lines.map((line) =>
    line
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join(GAP)
      .trimEnd(),
  );
  return `${text.join("\n")}\n`;
}

/** Label and value, one pair a line: for one object, where a table would have a single row. */
export function formatPairs(pairs: readonly (readonly [string, string])[]): string {
  const width = Math.max(...pairs.map(([label]) => label.length));
  return pairs.map(([label, value]) => `${`${label}:`.padEnd(width + 1)} ${value}\n`).join("");
}

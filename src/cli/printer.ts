import { csvLine } from "./csv.ts";
import { printableLine, type Styled } from "./printable.ts";
import type { Session } from "./session.ts";

const GAP = "   ";
const NARROW_GAP = "  ";

export interface Table {
  columns: readonly string[];
  rows: readonly (readonly string[])[];
  /** Printed instead of a table without rows. */
  empty?: string;
  /** Columns left out one after the other, in this order, until the table fits the terminal; `-o yaml` has all. */
  optional?: readonly string[];
}

/** Prints a result the way `-o` asks for. The table is only made when it is printed. */
export async function print(session: Session, value: unknown, table: () => Table): Promise<void> {
  session.out(await render(session, value, table));
}

async function render(session: Session, value: unknown, table: () => Table): Promise<string> {
  const { output, template = "" } = session.flags;
  switch (output) {
    case "jsonpath":
    case "custom-columns":
      return await (await import("./template-output.ts")).formatTemplate({ form: output, text: template }, value);
    case "json":
      return `${JSON.stringify(value, null, 2)}\n`;
    case "yaml":
      return (await import("./to-yaml.ts")).toYaml(value);
    case "wide":
      return await formatTable(table());
    case "csv":
      return csvTable(table());
    case "name":
      return table()
        .rows.map(([name = ""]) => `${printableLine(name)}\n`)
        .join("");
    case "table":
    // Commands that know no shorter form were refused before they started.
    case "short":
    case "junit":
      return await formatTable(table(), session.config.outColumns);
  }
}

function csvTable({ columns, rows }: Table): string {
  return [columns, ...rows].map((row) => csvLine(row.map(printableLine))).join("");
}

/** Columns as wide as their widest cell, or narrower and wrapped where the terminal is; no space at the end of a line. */
export async function formatTable(table: Table, width = Number.POSITIVE_INFINITY): Promise<string> {
  const { columns, rows, empty, optional = [] } = table;
  if (rows.length === 0 && empty !== undefined) return `${empty}\n`;
  const lines = [columns, ...rows].map((line) => columns.map((_, column) => printableLine(line[column] ?? "")));
  const plain = plainLines(lines);
  if (plain?.every((line) => line.length <= width)) return `${plain.join("\n")}\n`;
  const [first, ...others] = optional;
  if (first !== undefined && Number.isFinite(width)) return formatTable(without(table, first, others), width);
  // Loaded only when a table does not fit or has more than ASCII in it: the libraries cost as much as starting Node.
  const { layTable } = await import("./layout.ts");
  return `${layTable(lines, Number.isFinite(width) ? NARROW_GAP : GAP, width).join("\n")}\n`;
}

function without(table: Table, column: string, optional: readonly string[]): Table {
  const at = table.columns.indexOf(column);
  const keep = (line: readonly string[]) => line.filter((_, index) => index !== at);
  return { ...table, columns: keep(table.columns), rows: table.rows.map(keep), optional };
}

/** The table as it is if it fits; undefined if a character may take more than one column. */
function plainLines(lines: readonly (readonly string[])[]): string[] | undefined {
  if (lines.some((line) => line.some((cell) => !isAscii(cell)))) return undefined;
  const widths = (lines[0] ?? []).map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines.map((line) =>
    line
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join(GAP)
      .trimEnd(),
  );
}

/** Label and value, one pair a line: for one object, where a table would have a single row. */
export async function formatPairs(
  pairs: readonly (readonly [string, string])[],
  width = Number.POSITIVE_INFINITY,
): Promise<string> {
  const widest = Math.max(...pairs.map(([label]) => label.length));
  const lines = await Promise.all(
    pairs.map(([label, value]) => wrapped(value, { first: `${`${label}:`.padEnd(widest + 1)} `, width })),
  );
  return `${lines.flat().join("\n")}\n`;
}

/** A sentence as lines of the terminal's width, those after the first indented; a command is broken so that it can still be pasted. */
export async function wrapped(
  text: string,
  { first = "", width }: { first?: string; width: number },
): Promise<string[]> {
  const line = printableLine(text);
  if (isAscii(line) && first.length + line.length <= width) return [`${first}${line}`];
  if (!Number.isFinite(width)) return [`${first}${line}`];
  return wrapLine(await import("./layout.ts"), line, { first, width });
}

/** The same, with the layout at hand: for lines that are drawn from a callback. */
export function wrapLine(
  { hang }: Pick<typeof import("./layout.ts"), "hang">,
  line: string,
  { first, width }: { first: string; width: number },
): string[] {
  if (!isCommand(line)) return hang(first, line, width);
  // A comment ends with its line, so it has its own.
  const [command = "", comment] = line.split(COMMENT);
  const indent = " ".repeat(first.length);
  return [
    ...brokenCommand(command, first, width),
    ...(comment === undefined ? [] : hang(`${indent}# `, comment.slice(2), width, `${indent}# `)),
  ];
}

/** A line that starts with something styled, in the terminal's width; the lines after it start with `below`. */
export async function hanging(
  first: Styled,
  text: string,
  { width, below }: { width: number; below?: string },
): Promise<string[]> {
  const line = printableLine(text);
  if (!Number.isFinite(width)) return [`${first}${line}`];
  const { hang } = await import("./layout.ts");
  return hang(first.text, line, width, below);
}

const COMMAND = /^(?:\S*\/)?(?:vendorctl|vendor|kubectl|helm|kubeadm|export) \S/;
/** Words around a command, `vendorctl resume, or vendorctl rollback`, make a sentence of it; behind a `#` they are the shell's comment. */
const SENTENCE = /[,;:.] |\.$| or vendorctl /;
const COMMENT = / +(?=# )/;

/** Whether a shell takes the line as it is. */
function isCommand(line: string): boolean {
  const [command = ""] = line.replace(/'[^']*'|"[^"]*"/g, "").split(COMMENT);
  return COMMAND.test(line) && !SENTENCE.test(command);
}

/** At spaces that no quotes are around, each line but the last ended by a backslash. */
function brokenCommand(command: string, first: string, width: number): string[] {
  const words = command.match(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g) ?? [command];
  const indent = " ".repeat(first.length);
  const lines: string[] = [];
  let line = "";
  for (const word of words) {
    const longer = line === "" ? word : `${line} ${word}`;
    // Two columns are kept for the backslash.
    if (line === "" || indent.length + longer.length + 2 <= width) line = longer;
    else {
      lines.push(`${line} \\`);
      line = `  ${word}`;
    }
  }
  return [...lines, line].map((text, index) => `${index === 0 ? first : indent}${text}`);
}

function isAscii(text: string): boolean {
  return /^[\x20-\x7e]*$/.test(text);
}

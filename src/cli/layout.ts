import stringWidth from "string-width";
import wrapAnsi from "wrap-ansi";

/** Below this a column is too narrow to read; it then takes what it needs and the line is as wide as it is. */
const NARROWEST = 8;

/** Lines of at most `width` columns; a word that is longer is broken, behind a separator if it has one. Escape sequences take no room. */
export function wrap(text: string, width: number): string[] {
  if (stringWidth(text) <= width) return [text];
  const room = Math.max(width, NARROWEST);
  const words = text.split(" ").flatMap((word) => (stringWidth(word) > room ? brokenWord(word, room) : word));
  return wrapAnsi(words.join(" "), room, { hard: true, trim: true }).split("\n");
}

/** `vendor-operator/some-long-name` after the slash or a dash, as much as fits at a time. */
function brokenWord(word: string, room: number): string {
  const parts = word.match(/[^/.,;:=-]*[/.,;:=-]|[^/.,;:=-]+$/g) ?? [word];
  const lines = [""];
  for (const part of parts) {
    const line = lines.at(-1) ?? "";
    if (line === "" || stringWidth(line + part) <= room) lines[lines.length - 1] = line + part;
    else lines.push(part);
  }
  return lines.join("\n");
}

/** The first line starts with `first`, which may be styled; those after it with `below`, or as much space. */
export function hang(first: string, text: string, width: number, below?: string): string[] {
  const indent = stringWidth(first);
  const rest = pad(below ?? "", indent);
  return wrap(text, width - indent).map((line, index) => `${index === 0 ? first : rest}${line}`);
}

export function fits(text: string, width: number): boolean {
  return stringWidth(text) <= width;
}

/** One line of at most `width` columns; what does not fit is cut. */
export function cut(text: string, width: number): string {
  if (stringWidth(text) <= width) return text;
  const [line = ""] = wrapAnsi(text, Math.max(width - 1, 1), { hard: true, wordWrap: false, trim: false }).split("\n");
  return `${line.trimEnd()}…`;
}

export function pad(text: string, width: number): string {
  return `${text}${" ".repeat(Math.max(0, width - stringWidth(text)))}`;
}

/** Rows of cells as lines; long cells are wrapped in their column, so that no line is wider than `width`. */
export function layTable(lines: readonly (readonly string[])[], gap: string, width: number): string[] {
  const widths = columnWidths(lines, width - gap.length * Math.max(0, (lines[0]?.length ?? 0) - 1));
  return lines.flatMap((line) => {
    const cells = line.map((cell, column) => wrap(cell, widths[column] ?? 0));
    const height = Math.max(1, ...cells.map((cell) => cell.length));
    return Array.from({ length: height }, (_, at) =>
      cells
        .map((cell, column) => pad(cell[at] ?? "", widths[column] ?? 0))
        .join(gap)
        .trimEnd(),
    );
  });
}

/** Narrow columns keep their width; what is left is shared among the wide ones, none below its longest word as long as that can be. */
function columnWidths(lines: readonly (readonly string[])[], room: number): number[] {
  const count = lines[0]?.length ?? 0;
  const columns = Array.from({ length: count }, (_, column) => lines.map((line) => line[column] ?? ""));
  const natural = columns.map((cells) => Math.max(...cells.map((cell) => stringWidth(cell))));
  if (sum(natural) <= room) return natural;
  const longestWord = columns.map((cells) =>
    Math.max(...cells.flatMap((cell) => cell.split(" ").map((word) => stringWidth(word)))),
  );
  const least = sum(longestWord) <= room ? longestWord : natural.map((width) => Math.min(width, NARROWEST));
  return share(natural, least, room);
}

/** Raises all widths from `least` together, each up to what it asks for, until the room is used. */
function share(natural: readonly number[], least: readonly number[], room: number): number[] {
  const widths = [...least];
  for (let left = room - sum(widths); left > 0; left--) {
    const growing = widths.map((width, column) => (width < (natural[column] ?? 0) ? width : Number.POSITIVE_INFINITY));
    const narrowest = growing.indexOf(Math.min(...growing));
    if (growing[narrowest] === Number.POSITIVE_INFINITY) break;
    widths[narrowest] = (widths[narrowest] ?? 0) + 1;
  }
  return widths;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

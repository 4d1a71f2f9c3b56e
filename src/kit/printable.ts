/**
 * What may not reach a terminal as it is: C0 and C1 control characters (ESC, CR, BEL, CSI), line separators, and the marks that reorder text.
 * A newline and a tab are layout, and stay.
 */
const UNPRINTABLE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be printed.
  /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

/**
 * Text from a cluster, a file or a server, safe to print. Each such character is shown as `\u001b`: visible in a table, and in JSON the same
 * value as before.
 */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** The same for one cell or one line: what would start another line is shown too, so that data cannot forge a row. */
export function printableLine(text: string): string {
  return printable(text.replaceAll("\t", " ").replaceAll("\n", "\\n"));
}

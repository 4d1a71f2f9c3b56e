/** One record of RFC 4180, but with the newline of this system's other texts. A cell that a spreadsheet would take for a formula is made a text. */
export function csvLine(cells: readonly string[]): string {
  return `${cells.map(cellOf).join()}\n`;
}

function cellOf(text: string): string {
  const safe = text.length > 1 && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

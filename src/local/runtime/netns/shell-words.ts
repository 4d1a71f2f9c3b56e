/** A word as a shell reads it back unchanged. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

export function shellLine(...words: readonly string[]): string {
  return words.map(quoted).join(" ");
}

/** Writes a file, whatever was at its place, a link out of this root say. */
export function writeLines(path: string, text: string): string[] {
  return [shellLine("rm", "-rf", path), `printf %s ${quoted(text)} > ${quoted(path)}`];
}

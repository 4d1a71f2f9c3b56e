/** Cuts text in nft's language into pieces: at line ends, semicolons and commas that are not inside braces or quotes. */

function* pieces(text: string, ends: string): Generator<string> {
  let depth = 0;
  let quoted = false;
  let piece = "";
  for (let at = 0; at < text.length; at++) {
    const character = text[at]!;
    if (character === '"') quoted = !quoted;
    if (!quoted && character === "\\" && text[at + 1] === "\n") {
      at++;
      piece += " ";
      continue;
    }
    if (!quoted && character === "#") {
      while (at + 1 < text.length && text[at + 1] !== "\n") at++;
      continue;
    }
    if (!quoted && character === "{") depth++;
    if (!quoted && character === "}") depth--;
    if (!quoted && depth === 0 && ends.includes(character)) {
      yield piece;
      piece = "";
    } else piece += character;
  }
  yield piece;
}

export function splitStatements(text: string): string[] {
  return [...pieces(text, ";\n")].map((piece) => piece.trim()).filter((piece) => piece !== "");
}

export function tokens(text: string, count: number): string[] {
  return text.trim().split(/\s+/).slice(0, count);
}

/** Elements of a set, as pairs; what is not a map has nothing to map to. */
export function splitList(text: string): [string, string][] {
  const items = [...pieces(text, ",")]
    .map((piece) => piece.trim().replace(/\s+/g, " "))
    .filter((piece) => piece !== "");
  return items.map((item) => {
    // A colon with space around it: those of IPv6 addresses have none.
    const [key, value] = item.split(/ : /);
    return [key!.replace(/ (?:timeout|expires|comment|counter)\b.*/, "").trim(), value?.trim() ?? ""];
  });
}

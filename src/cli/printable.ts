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

/** Text with escape sequences of our own in it. Only `styled` and `raw` make it; everything else is cleaned before it is printed. */
export class Styled {
  readonly text: string;

  private constructor(text: string) {
    this.text = text;
  }

  /** For sequences this program composes itself, never for data. */
  static raw(text: string): Styled {
    return new Styled(text);
  }

  toString(): string {
    return this.text;
  }
}

/** A template whose plain values are cleaned and whose styled values are kept. */
export function styled(parts: TemplateStringsArray, ...values: readonly (string | Styled)[]): Styled {
  const texts = values.map((value) => (value instanceof Styled ? value.text : printable(value)));
  return Styled.raw(parts.map((part, index) => `${part}${texts[index] ?? ""}`).join(""));
}

interface Output {
  out(text: string | Styled): void;
  err(text: string | Styled): void;
  prompt?(question: string): Promise<string>;
}

/** The last stop of everything that is printed: nothing passes it but plain text and what this program styled itself. */
export function guarded<World extends Output>(world: World): World {
  const clean = (text: string | Styled) => (text instanceof Styled ? text : printable(text));
  const { prompt } = world;
  return {
    ...world,
    out: (text) => world.out(clean(text)),
    err: (text) => world.err(clean(text)),
    ...(prompt && { prompt: (question: string) => prompt(printable(question)) }),
  };
}

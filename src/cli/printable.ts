import { printable } from "../kit/printable.ts";

export { printable, printableLine } from "../kit/printable.ts";

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

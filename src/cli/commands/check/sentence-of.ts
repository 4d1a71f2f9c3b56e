// biome-ignore lint/suspicious/noExplicitAny: any list of arguments; each is only shown.
type Say = (...args: any[]) => string;

/** The sentence of an error without a concrete case: each argument is shown by its name, as in `port <port> is already in use`. */
export function sentenceOf(say: Say, args: readonly string[] = []): string {
  const placeholders = args.map((name) => `<${name}>`);
  try {
    return say(...placeholders);
  } catch {
    // Few sentences do more with an argument than print it; a list is the one thing they take apart.
    return say(...placeholders.map((text) => [text]));
  }
}

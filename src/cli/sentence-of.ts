// biome-ignore lint/suspicious/noExplicitAny: any list of arguments; only its names are used.
type Say = (...args: any[]) => string;

/**
 * The sentence of an error nobody has met yet: each argument is shown by its name, as in `port <port> is already in use`.
 * `names` is the function to take the names from when `say` uses only some of the same arguments.
 */
export function sentenceOf(say: Say, names: Say = say): string {
  const own = parameterNames(say);
  const placeholders = parameterNames(names).map((name, index) => placeholder(own[index] || name));
  try {
    return say(...placeholders);
  } catch {
    // Few sentences do more with an argument than print it; a list is the one thing they take apart.
    return say(...placeholders.map((text) => [text]));
  }
}

function placeholder(name: string): string {
  return `<${name
    .replace(/^_/, "")
    // A bundler tells names of one scope apart by a number at the end.
    .replace(/\d+$/, "")
    .replace(/(?<=[a-z])(?=[A-Z])/g, " ")
    .toLowerCase()}>`;
}

function parameterNames(say: Say): string[] {
  const source = /^(?:async\s*)?(?:function\s*\w*\s*)?(?:\(([^)]*)\)|(\w+)\s*=>)/.exec(say.toString());
  const list = source?.[1] ?? source?.[2] ?? "";
  return list.split(",").map((part) => /^\s*(\w*)/.exec(part)?.[1] ?? "");
}

/**
 * Paths of keys that occur twice in one object of a JSON text. `JSON.parse` keeps the last silently; a strict server must say so.
 * Assumes the text already parsed, so it only tracks structure.
 */
export function duplicateKeys(text: string): string[] {
  const found: string[] = [];
  const stack: Level[] = [];
  let at = 0;
  let key: string | undefined;
  while (at < text.length) {
    const char = text[at]!;
    const top = stack.at(-1);
    if (char === '"') {
      const end = endOfString(text, at);
      if (top?.keys && top.expectKey) {
        key = JSON.parse(text.slice(at, end)) as string;
        if (top.keys.has(key)) found.push(pathOf(stack, key));
        top.keys.add(key);
        top.key = key;
        top.expectKey = false;
      }
      at = end;
      continue;
    }
    if (char === "{") stack.push({ keys: new Set(), expectKey: true, key: "", index: 0 });
    else if (char === "[") stack.push({ keys: undefined, expectKey: false, key: "", index: 0 });
    else if (char === "}" || char === "]") stack.pop();
    else if (char === "," && top) {
      if (top.keys) top.expectKey = true;
      else top.index++;
    }
    at++;
  }
  return found;
}

interface Level {
  /** Undefined inside an array. */
  keys: Set<string> | undefined;
  expectKey: boolean;
  key: string;
  index: number;
}

function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
  return at + 1;
}

function pathOf(stack: readonly Level[], key: string): string {
  let path = "";
  for (const level of stack.slice(0, -1)) {
    path += level.keys ? `${path === "" ? "" : "."}${level.key}` : `[${level.index}]`;
  }
  return path === "" ? key : `${path}.${key}`;
}

/** Letters that spell no words and need no escaping: what Kubernetes writes its hashes with. */
const SAFE_LETTERS = "bcdfghjklmnpqrstvwxz2456789";

/**
 * A short name for a pod template, stable for equal content in any key order. The collision count is stirred in
 * so that a controller can step aside when a name is taken by something else.
 */
export function templateHash(template: unknown, collisionCount = 0): string {
  let hash = fnv1a(canonical(template), 0x811c9dc5);
  if (collisionCount > 0) hash = fnv1a(String(collisionCount), hash);
  return spell(String(hash));
}

export function randomSuffix(random: () => number = Math.random, length = 5): string {
  let suffix = "";
  for (let i = 0; i < length; i++) suffix += SAFE_LETTERS[Math.floor(random() * SAFE_LETTERS.length)];
  return suffix;
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  fields.sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${fields.map(([key, field]) => `${JSON.stringify(key)}:${canonical(field)}`).join(",")}}`;
}

function fnv1a(text: string, seed: number): number {
  let hash = seed;
  for (let i = 0; i < text.length; i++) {
    hash ^= text.charCodeAt(i);
    hash = Math.imul(hash, 0x01000193) >>> 0;
  }
  return hash;
}

function spell(digits: string): string {
  let word = "";
  for (let i = 0; i < digits.length; i++) word += SAFE_LETTERS[digits.charCodeAt(i) % SAFE_LETTERS.length];
  return word;
}

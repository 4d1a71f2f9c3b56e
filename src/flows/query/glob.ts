/** A text with `*` in it, cut at each `*`: one segment is a text as it stands. Lower case. */
export type Glob = readonly string[];

/**
 * Whether a text is what a glob describes. Each segment is searched once, behind the one before: the first place that fits is as good as any
 * later one, so there is nothing to go back to, whatever the pattern.
 */
export function matchesGlob(glob: Glob, text: string): boolean {
  const value = text.toLowerCase();
  const first = glob[0] as string;
  if (glob.length === 1) return value === first;
  const last = glob[glob.length - 1] as string;
  if (value.length < first.length + last.length || !value.startsWith(first) || !value.endsWith(last)) return false;
  const end = value.length - last.length;
  let at = first.length;
  for (let index = 1; index < glob.length - 1; index++) {
    const segment = glob[index] as string;
    const found = value.indexOf(segment, at);
    if (found < 0 || found + segment.length > end) return false;
    at = found + segment.length;
  }
  return true;
}

/** The same anywhere in a text: how a bare word searches. */
export function findsGlob(glob: Glob, text: string): boolean {
  return glob.length === 1 ? text.toLowerCase().includes(glob[0] as string) : matchesGlob(glob, text);
}

interface ImageParts {
  /** Everything before the last slash. */
  place: string;
  name: string;
  /** Tag and digest, with their marks. */
  version: string;
}

function partsOf(image: string): ImageParts | undefined {
  const match = /^(?:(.+)\/)?([^/:@]+)((?::[^/:@]+)?(?:@[\w+.-]+:[0-9a-fA-F]+)?)$/.exec(image);
  return match ? { place: match[1] ?? "", name: match[2] as string, version: match[3] ?? "" } : undefined;
}

/**
 * The new image from the person's own registry: where they changed only the place the image comes from, and the new release did
 * not, the new image comes from there too. Undefined where that is not all they changed.
 */
export function mergeImages(base: string, theirs: string, ours: string): string | undefined {
  const [b, t, o] = [partsOf(base), partsOf(theirs), partsOf(ours)];
  if (!b || !t || !o || b.version !== t.version || b.name !== t.name || b.place !== o.place) return undefined;
  return `${t.place === "" ? "" : `${t.place}/`}${o.name}${o.version}`;
}

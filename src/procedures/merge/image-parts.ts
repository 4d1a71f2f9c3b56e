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
 * The new image from the person's own registry: where they changed only the place the image comes from, the new image comes from there
 * too, under its new name and tag, wherever the release itself has moved. Undefined where that is not all they changed.
 */
export function mergeImages(base: string, theirs: string, ours: string): string | undefined {
  const [b, t, o] = [partsOf(base), partsOf(theirs), partsOf(ours)];
  if (!b || !t || !o || b.version !== t.version || b.name !== t.name) return undefined;
  return imageAt(movedPlace(b.place, t.place, o.place), o);
}

/** A mirror often has the path of what it mirrors: then it has the new path. */
function movedPlace(base: string, theirs: string, ours: string): string {
  const [before, after] = [pathIn(base), pathIn(ours)];
  if (before === after || before === "" || !`/${theirs}`.endsWith(`/${before}`)) return theirs;
  return `${theirs.slice(0, theirs.length - before.length)}${after}`;
}

/** `calico` of `docker.io/calico`: without the host, which has a dot or a port. */
const pathIn = (place: string) => place.replace(/^(?:[^/]*[.:][^/]*|localhost)(?:\/|$)/, "");

const imageAt = (place: string, { name, version }: ImageParts) => `${place === "" ? "" : `${place}/`}${name}${version}`;

/** Where images of the new release come from, and where the person's copies of them come from. */
export class MovedPlaces {
  readonly #places = new Map<string, string>();

  /** One image that was moved, as the new release has it and as it became. */
  learn(ours: string, merged: string): void {
    const [o, m] = [partsOf(ours), partsOf(merged)];
    if (o && m && o.name === m.name && o.version === m.version && o.place !== m.place)
      this.#places.set(o.place, m.place);
  }

  /** An image that the new release adds, at the same place as the others. */
  moved(image: string): string | undefined {
    const parts = partsOf(image);
    const place = parts && this.#places.get(parts.place);
    return parts && place !== undefined ? imageAt(place, parts) : undefined;
  }
}

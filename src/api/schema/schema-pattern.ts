const patterns = new Map<string, RegExp>();

/** Kubernetes' patterns are RE2; those that JavaScript cannot read accept everything rather than fail every object. */
export function pattern(source: string): RegExp {
  let made = patterns.get(source);
  if (!made) {
    try {
      made = new RegExp(source, "u");
    } catch {
      made = tolerant(source);
    }
    patterns.set(source, made);
  }
  return made;
}

function tolerant(source: string): RegExp {
  try {
    return new RegExp(source.replaceAll("\\z", "$").replaceAll("\\A", "^"));
  } catch {
    return /(?:)/;
  }
}

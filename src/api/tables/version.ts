/** A release of the service, as people write it: `v3.31.3`, `3.22.2`, `v3.31`, `v3.31.3-0.dev`. */
export interface Version {
  major: number;
  minor: number;
  /** Absent when only the line was named, as in `v3.31`. */
  patch?: number;
  /** What follows the first hyphen, such as `0.dev` or `rc1`. */
  prerelease?: string;
}

/** The line of releases in which something first came, as `v3.20`. */
export type Since = `v3.${number}`;

const WRITTEN = /^v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,6}))?(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?$/;

export function parseVersion(text: string): Version | undefined {
  const match = WRITTEN.exec(text.trim());
  if (!match) return undefined;
  const [, major, minor, patch, prerelease] = match;
  return {
    major: Number(major),
    minor: Number(minor),
    ...(patch === undefined ? {} : { patch: Number(patch) }),
    ...(prerelease === undefined ? {} : { prerelease }),
  };
}

export function formatVersion(version: Version): string {
  const patch = version.patch === undefined ? "" : `.${version.patch}`;
  const prerelease = version.prerelease === undefined ? "" : `-${version.prerelease}`;
  return `v${version.major}.${version.minor}${patch}${prerelease}`;
}

/** Negative, zero or positive. A line counts as its first release; a pre-release comes before its release. */
export function compareVersions(a: Version, b: Version): number {
  return (
    a.major - b.major ||
    a.minor - b.minor ||
    (a.patch ?? 0) - (b.patch ?? 0) ||
    comparePrerelease(a.prerelease, b.prerelease)
  );
}

export function sameLine(a: Version, b: Version): boolean {
  return a.major === b.major && a.minor === b.minor;
}

function comparePrerelease(a: string | undefined, b: string | undefined): number {
  if (a === b) return 0;
  if (a === undefined) return 1;
  if (b === undefined) return -1;
  const [left, right] = [a.split("."), b.split(".")];
  for (let i = 0; i < Math.max(left.length, right.length); i++) {
    const order = comparePart(left[i], right[i]);
    if (order !== 0) return order;
  }
  return 0;
}

/** Numbers come before words; a shorter list comes first. */
function comparePart(a: string | undefined, b: string | undefined): number {
  if (a === undefined || b === undefined) return a === b ? 0 : a === undefined ? -1 : 1;
  const [x, y] = [/^\d+$/.test(a), /^\d+$/.test(b)];
  if (x && y) return Number(a) - Number(b);
  if (x !== y) return x ? -1 : 1;
  return a < b ? -1 : a > b ? 1 : 0;
}

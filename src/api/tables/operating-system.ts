/** What a node's `osImage` says: which distribution, which release, and whether its root file system is read-only. */
export interface OperatingSystem {
  family: "ubuntu" | "enterprise-linux" | "amazon-linux" | "bottlerocket" | "windows" | "other";
  release?: { major: number; minor: number };
  immutable: boolean;
}

const IMMUTABLE = /bottlerocket|flatcar|coreos|talos|container-optimized|kairos|microos/i;
const ENTERPRISE = /red hat enterprise linux|centos|rocky linux|almalinux|oracle linux/i;

export function parseOperatingSystem(osImage: string): OperatingSystem {
  const family = familyOf(osImage);
  const release = /coreos/i.test(osImage) ? undefined : releaseOf(osImage);
  return { family, ...(release ? { release } : {}), immutable: IMMUTABLE.test(osImage) };
}

function familyOf(osImage: string): OperatingSystem["family"] {
  if (/ubuntu/i.test(osImage)) return "ubuntu";
  if (ENTERPRISE.test(osImage)) return "enterprise-linux";
  if (/amazon linux/i.test(osImage)) return "amazon-linux";
  if (/bottlerocket/i.test(osImage)) return "bottlerocket";
  if (/windows/i.test(osImage)) return "windows";
  return "other";
}

function releaseOf(osImage: string): OperatingSystem["release"] | undefined {
  const match = /(\d+)(?:\.(\d+))?/.exec(osImage);
  return match ? { major: Number(match[1]), minor: Number(match[2] ?? 0) } : undefined;
}

export function releaseAtLeast(have: { major: number; minor: number }, major: number, minor: number): boolean {
  return have.major > major || (have.major === major && have.minor >= minor);
}

/** What an immutable system leaves writable. */
const WRITABLE = /^\/(run|var|tmp|mnt|opt|dev\/shm)(\/|$)/;

export function canWrite({ immutable }: OperatingSystem, path: string): boolean {
  return !immutable || WRITABLE.test(path);
}

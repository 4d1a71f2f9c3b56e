/** A kernel's own name for itself, as `uname -r` and node objects give it: `5.15.0-1019-aws`, `4.18.0-193.el8.x86_64`. */
export interface KernelRelease {
  text: string;
  version: readonly [number, number, number];
  /** The distribution's build numbers after the hyphen: `193` and `193.6.3` compare as people expect. */
  build: readonly number[];
  /** Major release of an enterprise Linux, where the name carries one: 8 for `.el8`. */
  enterpriseLinux?: number;
}

export function parseKernelRelease(text: string): KernelRelease | undefined {
  const match = /^(\d+)\.(\d+)(?:\.(\d+))?(?:-(\d+(?:\.\d+)*))?(?:[^\d].*)?$/.exec(text.trim());
  if (!match) return undefined;
  const [, major, minor, patch = "0", build = ""] = match;
  const enterprise = /\.el(\d+)/.exec(text);
  return {
    text: text.trim(),
    version: [Number(major), Number(minor), Number(patch)],
    build: build === "" ? [] : build.split(".").map(Number),
    ...(enterprise ? { enterpriseLinux: Number(enterprise[1]) } : {}),
  };
}

/** Build numbers mean something only within one distribution; give `withBuild` only when both are from the same. */
export function compareKernels(a: KernelRelease, b: KernelRelease, withBuild: boolean): number {
  const order = compareNumbers(a.version, b.version);
  return order !== 0 || !withBuild ? order : compareNumbers(a.build, b.build);
}

function compareNumbers(a: readonly number[], b: readonly number[]): number {
  for (let i = 0; i < Math.max(a.length, b.length); i++) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

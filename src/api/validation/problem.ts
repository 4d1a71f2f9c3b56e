/** One thing that is wrong with a resource, for people and programs: validation returns all of them at once. */
export interface Problem {
  /** Stable; `vendorctl explain CODE` says more. */
  code: string;
  /** The field, such as `spec.vendorNetwork.ipPools[0].cidr`. */
  path: string;
  /** One sentence. */
  message: string;
  fix: string;
}

/** What `explain` prints of a code. */
export interface Explanation {
  title: string;
  why: string;
  /** What to do; a problem may say it more exactly. */
  fix: string;
  /** The rule the code comes from, in the specification's words or our own. */
  rule: string;
}

type Report = (path: string, message: string, fix?: string) => Problem;

/** One reporting function per code of a closed set. */
export function reporters<const T extends Record<string, Explanation>>(table: T): { [Code in keyof T]: Report } {
  const made = Object.entries(table).map(([code, { fix: usual }]) => {
    const report: Report = (path, message, fix = usual) => ({ code, path, message, fix });
    return [code, report];
  });
  return Object.fromEntries(made) as { [Code in keyof T]: Report };
}

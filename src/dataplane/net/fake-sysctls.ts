import type { Sysctls } from "./sysctls.ts";

/** Settings in memory, every one there; `values` is for tests to look at. */
export function fakeSysctls(): Sysctls & { values: Map<string, string> } {
  const values = new Map<string, string>();
  return {
    values,
    read: (path) => values.get(path) ?? "0",
    write: (path, value) => {
      values.set(path, value);
      return true;
    },
  };
}

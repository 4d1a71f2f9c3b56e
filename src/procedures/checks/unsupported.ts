import type { Observation, SeenUnsupported } from "../observation.ts";
import { some } from "./check.ts";

/** Objects of the cluster that ask for what is not done, a line each. */
export function unsupportedIn(seen: Observation, ...what: SeenUnsupported["what"][]): string[] {
  const all = seen.unsupported.filter((one) => what.includes(one.what));
  return some(all.map(({ object, evidence }) => `${object}: ${evidence}`));
}

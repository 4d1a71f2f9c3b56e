import { isAlreadyExists, isConflict, isNotFound } from "../cluster/failures.ts";

/** Of a write: the object is not as we last saw it. */
export function isRace(error: unknown): boolean {
  return isConflict(error) || isAlreadyExists(error) || isNotFound(error);
}

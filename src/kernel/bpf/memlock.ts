import { errnoName, setrlimit } from "../sys.ts";

const RLIMIT_MEMLOCK = 8;
const UNLIMITED = 0xffff_ffff_ffff_ffffn;

/**
 * Kernels before 5.11 count maps and programs as locked memory, of which a process may have little unless it asks. Newer ones do not, so
 * that a refusal does no harm: a container without CAP_SYS_RESOURCE gets EPERM here and still loads everything.
 */
export function raiseMemlockLimit(set: typeof setrlimit = setrlimit): "raised" | "refused" {
  const result = set(RLIMIT_MEMLOCK, UNLIMITED, UNLIMITED);
  return result < 0 && errnoName(result) === "EPERM" ? "refused" : "raised";
}

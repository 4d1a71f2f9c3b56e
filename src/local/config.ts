import { homedir } from "node:os";
import { join } from "node:path";

/** Where clusters keep what belongs to this user and machine: one folder each. */
export function stateDirectory(environment: Record<string, string | undefined> = process.env): string {
  const own = environment["VENDORCTL_HOME"];
  if (own) return own;
  const base = environment["XDG_STATE_HOME"] || join(homedir(), ".local", "state");
  return join(base, "vendorctl");
}

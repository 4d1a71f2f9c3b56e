import { homedir } from "node:os";
import { join } from "node:path";

/** Where clusters keep what belongs to this user and machine: one folder each. */
export function stateDirectory(environment: Record<string, string | undefined> = process.env): string {
  const own = environment["VENDORCTL_HOME"];
  if (own) return own;
  const base = environment["XDG_STATE_HOME"] || join(homedir(), ".local", "state");
  return join(base, "vendorctl");
}

/** What a build of the image is given of this machine's environment: how to reach what it downloads, and a home for its tools. */
export function buildEnvironment(
  environment: Record<string, string | undefined> = process.env,
): Record<string, string> {
  const proxies = Object.entries(environment).filter(([name]) => /^(https?|no)_proxy$/i.test(name));
  const named = Object.fromEntries(proxies.map(([name, value]) => [name, value ?? ""]));
  return { HOME: homedir(), ...named };
}

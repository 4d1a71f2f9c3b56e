import { runningVersion } from "../api/tables/release.ts";
import { parseVersion } from "../api/tables/version.ts";
import { errors } from "./errors.ts";

/** Everything the v3 API takes from its pod, but for the key pair, which is read again when it changes. */
export interface V3ApiConfig {
  port: number;
  /** The running version: it decides which UIDs resources have. */
  version: string;
}

const PORT = 5443;

export function readV3ApiConfig(env: Readonly<Record<string, string | undefined>>): V3ApiConfig {
  const version = runningVersion(env);
  if (!parseVersion(version)) throw errors.V3API_BAD_SETTING("VENDOR_VERSION", version, "a version such as v3.31.3");
  const port = Number(env["PORT"] || PORT);
  if (!Number.isInteger(port) || port < 1 || port > 65_535) {
    throw errors.V3API_BAD_SETTING("PORT", env["PORT"] ?? "", "a port from 1 to 65535");
  }
  return { port, version };
}

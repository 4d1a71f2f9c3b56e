import { errors } from "./errors.ts";

type Env = Readonly<Record<string, string | undefined>>;

export interface SidecarConfig {
  /** The agent's, in this pod's own volume. */
  policySocket: string;
  /** Where the mesh's proxy asks. */
  listenSocket: string;
  release: string;
}

export function readSidecarConfig(env: Env): SidecarConfig {
  return {
    policySocket: required(env, "POLICY_SOCKET", "the socket of the node's agent"),
    listenSocket: required(env, "LISTEN_SOCKET", "the socket that the mesh's proxy asks"),
    release: env["VENDOR_VERSION"] || "",
  };
}

function required(env: Env, name: string, what: string): string {
  const text = env[name];
  if (!text) throw errors.SIDECAR_ENV_MISSING(name, what);
  return text;
}

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ClusterEnv } from "./config.ts";
import type { Connection } from "./connection.ts";

/** The pod's own service account; undefined outside a pod. */
export function inClusterConnection(env: ClusterEnv): Connection | undefined {
  const { serviceHost: host, servicePort: port = "443", serviceAccountDir: dir } = env;
  const token = join(dir, "token");
  if (!host || !existsSync(token)) return undefined;
  const read = (name: string) => {
    const file = join(dir, name);
    return existsSync(file) ? readFileSync(file, "utf8") : undefined;
  };
  return {
    server: `https://${host.includes(":") ? `[${host}]` : host}:${port}`,
    tls: { ca: read("ca.crt"), insecure: false },
    auth: { kind: "tokenFile", path: token },
    namespace: read("namespace")?.trim() || "default",
  };
}

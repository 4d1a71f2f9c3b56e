import { createSecureContext } from "node:tls";
import { credentialsOf } from "../../src/cluster/credentials.ts";
import { loadConnection } from "../../src/cluster/kubeconfig.ts";
import type { Endpoint } from "./connection.ts";

/** The cluster of `BENCH_KUBECONFIG`, to be measured with the same client; undefined when nobody gave one. */
export async function realCluster(): Promise<Endpoint | undefined> {
  const kubeconfig = process.env["BENCH_KUBECONFIG"];
  if (!kubeconfig) return undefined;
  const connection = loadConnection({ kubeconfig });
  const { certificate, key, authorization } = await credentialsOf(connection).current();
  const { hostname, port } = new URL(connection.server);
  const { ca, serverName, insecure } = connection.tls;
  return {
    host: hostname,
    port: Number(port || 443),
    serverName,
    secureContext: createSecureContext({ ca, cert: certificate, key }),
    authorization,
    insecure,
  };
}

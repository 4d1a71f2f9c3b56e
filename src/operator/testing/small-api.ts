import { createServer } from "node:https";
import { createSecureContext } from "node:tls";
import type { KubeObject } from "../../api/object.ts";
import type { Client } from "../../cluster/client.ts";
import { SECRETS } from "../../cluster/kinds.ts";
import { type ListenAddress, listenOn } from "../../cluster/program.ts";

/** Stands behind the aggregated APIs: each can be reached only with the key pair the operator has made for it. */
export interface SmallApi {
  address: ListenAddress;
  close(): void;
}

export async function startSmallApi(kubectl: () => Client): Promise<SmallApi> {
  const keyPair = async (service: string) => {
    const program = service.startsWith("vendor-flow-logs") ? "vendor-flow-logs" : "vendor-apiserver";
    const secret = await kubectl().get<KubeObject>(SECRETS, { namespace: "vendor-system", name: `${program}-tls` });
    const data = secret["data"] as Record<string, string>;
    const pem = (key: string) => Buffer.from(data[key] ?? "", "base64");
    return createSecureContext({ cert: pem("tls.crt"), key: pem("tls.key") });
  };
  const server = createServer(
    {
      SNICallback: (name, done) =>
        void keyPair(name).then(
          (context) => done(null, context),
          (error: Error) => done(error),
        ),
    },
    ({ url = "" }, response) => {
      const groupVersion = url.replace(/^\/apis\//, "");
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ kind: "APIResourceList", apiVersion: "v1", groupVersion, resources: [] }));
    },
  );
  const address = await listenOn(server, { host: "127.0.0.1", port: 0 });
  return {
    address,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

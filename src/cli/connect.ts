import { VERSION } from "../api/tables/release.ts";
import { type Client, createClient } from "../cluster/client.ts";
import { explain } from "../cluster/errors.ts";
import { httpsTransport } from "../cluster/https-transport.ts";
import { loadConnection } from "../cluster/kubeconfig.ts";
import { errors } from "./errors.ts";
import type { Session } from "./session.ts";
import { withinTimeout } from "./within-timeout.ts";

/** Does something with the cluster the flags name, and lets go of it afterwards. */
export async function withCluster<T>(
  session: Session,
  work: (client: Client, signal: AbortSignal, server: string, authority: string | undefined) => Promise<T>,
): Promise<T> {
  const { kubeconfig, context, namespace, as, asGroup } = session.flags;
  if (asGroup && !as) throw errors.USAGE("--as-group needs --as", "add --as USER");
  const connection = loadConnection({ kubeconfig, context, namespace, as, asGroups: asGroup });
  const client = createClient(httpsTransport(connection), { userAgent: `vendorctl/${VERSION}` });
  try {
    return await withinTimeout(session, (signal) => work(client, signal, connection.server, connection.tls.ca));
  } catch (error) {
    throw explain(error, connection.server);
  } finally {
    client.close();
  }
}

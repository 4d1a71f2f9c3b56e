import { spawn } from "node:child_process";
import { FLOW_LOGS_API } from "../../../api/names.ts";
import { VERSION } from "../../../api/tables/release.ts";
import { createClient } from "../../../cluster/client.ts";
import { statusError } from "../../../cluster/failures.ts";
import { httpsTransport } from "../../../cluster/https-transport.ts";
import { loadConnection } from "../../../cluster/kubeconfig.ts";
import { readPageFiles } from "../../../flows/page/page-files.ts";
import { serveOwnPage } from "../../../flows/page/serve-own-page.ts";
import { silentLog } from "../../../kit/log.ts";
import { pageRunsReader } from "../../../procedures/run/page-runs.ts";
import { withCluster } from "../../connect.ts";
import { print } from "../../printer.ts";
import type { Session } from "../../session.ts";
import { errors } from "./errors.ts";

interface UIFlags {
  port?: number;
  /** Of `--no-open`. */
  open: boolean;
}

export async function openUI(session: Session, { port = 0, open }: UIFlags): Promise<void> {
  const { kubeconfig, context, namespace, as, asGroup } = session.flags;
  const files = readPageFiles();
  // What is wrong with the cluster is said here, and not first by the page.
  await withCluster(session, async (client, signal) => {
    const path = `/apis/${FLOW_LOGS_API.group}/${FLOW_LOGS_API.version}`;
    const response = await client.raw({ method: "GET", path, signal });
    const text = await response.text();
    if (response.status === 404 || response.status >= 500)
      throw errors.FLOWS_NOT_SERVED(statusError(response.status, text).message);
  });
  const connection = loadConnection({ kubeconfig, context, namespace, as, asGroups: asGroup });
  const transport = httpsTransport(connection);
  const client = createClient(transport, { userAgent: `vendorctl/${VERSION}` });
  const page = await serveOwnPage({
    ...{ files, transport, log: silentLog, port },
    runs: pageRunsReader({ client, tool: VERSION }),
    about: {
      cluster: connection.context ?? connection.server,
      ...{ release: VERSION, namespace: connection.namespace || "default", notifications: true },
    },
  });
  try {
    await print(session, { url: page.url }, () => ({ columns: ["URL"], rows: [[page.url]] }));
    if (!session.flags.quiet) session.err("serving the flow UI until you press Ctrl-C\n");
    if (open && session.config.interactive) openBrowser(page.url);
    await interrupted(session.signal);
  } finally {
    await page.close();
    transport.close();
  }
}

function interrupted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

/** Where there is no browser, or none that this knows, the address is on the screen. */
function openBrowser(url: string): void {
  const command = process.platform === "darwin" ? "open" : "xdg-open";
  const child = spawn(command, [url], { stdio: "ignore", detached: true });
  child.on("error", () => {});
  child.unref();
}

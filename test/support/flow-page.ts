import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Incoming, Reply } from "../../src/apiserver/call.ts";
import { listen } from "../../src/apiserver/http.ts";
import { httpsTransport } from "../../src/cluster/https-transport.ts";
import { loadConnection } from "../../src/cluster/kubeconfig.ts";
import { readPageFiles } from "../../src/flows/page/page-files.ts";
import { NO_USER, PageFront, type PageFrontParts } from "../../src/flows/page/page-front.ts";
import { ownRights, readersRights } from "../../src/flows/page/page-rights.ts";
import { silentLog } from "../../src/kit/log.ts";

export interface FlowPageOptions {
  /** Of the built page. */
  folder: string;
  /** Of the Kubernetes API; with the rights of the reader, if the page does not sign in. */
  kubeconfig: string;
  signIn?: boolean;
  namespace?: string;
  notifications?: boolean;
  /** Runs of vendorctl (default: none can be asked for). */
  runs?: PageFrontParts["runs"];
  /** In place of the API, where it answers. */
  answers?: (incoming: Incoming) => Reply | undefined;
}

export interface FlowPage {
  url: string;
  close(): Promise<void>;
}

/** The built page, served as `vendorctl ui` and `vendor flow-ui` serve it. */
export async function serveFlowPage(options: FlowPageOptions): Promise<FlowPage> {
  const { signIn = false, namespace = "default", notifications = true, runs, answers } = options;
  const folder = mkdtempSync(join(tmpdir(), "flow-page-"));
  const kubeconfig = join(folder, "kubeconfig");
  writeFileSync(kubeconfig, options.kubeconfig);
  const transport = httpsTransport(loadConnection({ kubeconfig }));
  const front = new PageFront({
    ...{ files: readPageFiles(options.folder), rights: signIn ? readersRights() : ownRights(), transport },
    ...{ about: { cluster: "demo", release: "v3.31.3", namespace, notifications }, log: silentLog },
    ...(runs && { runs }),
  });
  const handle = async (incoming: Incoming) => answers?.(incoming) ?? (await front.handle(incoming));
  const { url, close } = await listen({ handle }, () => NO_USER, { host: "127.0.0.1", port: 0 });
  return {
    url: `${url}/`,
    async close() {
      await close();
      await transport.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

import type { Client } from "../../cluster/client.ts";
import { observe } from "../../procedures/observe.ts";
import { statusEvents } from "../../procedures/status-events.ts";
import { type StatusTree, statusTree } from "../../procedures/status-tree.ts";
import { withCluster } from "../connect.ts";
import { dialect } from "../dialect.ts";
import { formatStatus } from "../print-status.ts";
import type { Session } from "../session.ts";

/** The tree once, or again whenever it changes. */
export async function status(session: Session, flags: { watch?: true }): Promise<void> {
  await withCluster(session, async (client, signal, server) => {
    const look = () => lookOnce(client, session, server, signal);
    if (!flags.watch) return await show(session, await look());
    let shown = "";
    for await (const _change of statusEvents(client, dialect(session), signal)) {
      const tree = await look();
      const text = JSON.stringify(tree);
      // What changed may be nothing anybody sees here, such as a heartbeat.
      if (text !== shown) await show(session, tree, shown !== "");
      shown = text;
    }
  });
}

async function lookOnce(client: Client, session: Session, server: string, signal: AbortSignal): Promise<StatusTree> {
  return statusTree(await observe(client, dialect(session), { server, signal }));
}

async function show(session: Session, tree: StatusTree, again = false): Promise<void> {
  const { output } = session.flags;
  if (output === "json") return session.out(`${JSON.stringify(tree)}\n`);
  if (output === "yaml") return session.out(`${again ? "---\n" : ""}${(await import("../to-yaml.ts")).toYaml(tree)}`);
  session.out(`${again ? "\n" : ""}${await formatStatus(session, tree)}`);
}

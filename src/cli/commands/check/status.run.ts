import type { Client } from "../../../cluster/client.ts";
import { systemClock } from "../../../kit/clock.ts";
import { observe } from "../../../procedures/observe.ts";
import { lookAtOperator } from "../../../procedures/operator-life.ts";
import { statusEvents } from "../../../procedures/status-events.ts";
import { type StatusTree, statusTree } from "../../../procedures/status-tree.ts";
import { withCluster } from "../../connect.ts";
import { errors } from "../../errors.ts";
import { nameSet } from "../../name-set.ts";
import { Styled, styled } from "../../printable.ts";
import { print } from "../../printer.ts";
import type { Session } from "../../session.ts";
import { formatStatus } from "./status.print.ts";

/** The tree once, or again whenever it changes. */
export async function status(session: Session, flags: { watch?: true }): Promise<void> {
  await withCluster(session, async (client, signal, server) => {
    const look = () => observeOnce(client, session, server, signal);
    if (!flags.watch) {
      const tree = await look();
      await show(session, tree);
      if (tree.state === "degraded") throw errors.SERVICE_DEGRADED();
      if (tree.state === "unknown") throw errors.SERVICE_STATE_UNKNOWN();
      return;
    }
    const redraw = watching(session);
    let shown = "";
    for await (const _change of statusEvents(client, nameSet(session), signal)) {
      const tree = await look();
      // When it was checked is no change of what was found.
      const text = JSON.stringify(tree, (key, value) => (key === "checked" ? value.what : value));
      // A change may be invisible here, such as a heartbeat.
      if (text !== shown) await redraw(tree);
      shown = text;
    }
  });
}

async function observeOnce(client: Client, session: Session, server: string, signal: AbortSignal): Promise<StatusTree> {
  const { clock = systemClock } = session;
  const seen = await observe(client, nameSet(session), { server, signal });
  return statusTree(seen, clock.now(), await lookAtOperator(client, seen, { clock, signal }));
}

/** One report is indented for people; of many, each is a line. */
async function show(session: Session, tree: StatusTree, indent = 2): Promise<void> {
  const { output } = session.flags;
  const report = { apiVersion: "procedures.vendor.io/v1", kind: "StatusReport", ...tree };
  if (output === "table") return session.out(await formatStatus(session, tree));
  if (output === "json") return session.out(`${JSON.stringify(report, null, indent)}\n`);
  await print(session, report, () => ({ columns: [], rows: [] }));
}

const CLEAR = Styled.raw("\x1b[H\x1b[2J");

/** On a terminal the tree is drawn over the one before; in a pipe each follows the other, with its time. */
function watching(session: Session): (tree: StatusTree) => Promise<void> {
  const { flags, config } = session;
  const redraws = flags.output === "table" && config.interactive && Number.isFinite(config.outColumns);
  let first = true;
  return async (tree) => {
    const again = !first;
    first = false;
    if (flags.output === "yaml" && again) session.out("---\n");
    if (flags.output !== "table") return await show(session, tree, 0);
    const time = new Date().toISOString().replace(/\.\d+/, "");
    // The tree would suggest --watch, which is active already.
    const rest = tree.next === WATCH ? { ...tree, next: "Ctrl-C ends the watch" } : tree;
    session.out(styled`${redraws ? CLEAR : again ? "\n" : ""}${time}\n${await formatStatus(session, rest)}`);
  };
}

const WATCH = "vendorctl status --watch";

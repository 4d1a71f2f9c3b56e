import { requestAgent, shownTable } from "../../../agent/admin.ts";
import { shellDirectories } from "../../../agent/config.ts";
import { CodedError } from "../../../kit/errors.ts";
import { print } from "../../printer.ts";
import type { Session } from "../../session.ts";

/** Asks the node's agent; while it is down, what is in the kernel and on disk is read as it is. */
export async function nodeShow(session: Session, name: string): Promise<void> {
  const table = shownTable(name);
  const directories = shellDirectories();
  const { columns, rows } = await requestAgent(directories.run, { show: table }).then(
    (answer) => answer.table,
    async (error: unknown) => {
      if (!(error instanceof CodedError) || error.code !== "AGENT_NOT_RUNNING") throw error;
      const { showFromKernel } = await import("../../../agent/show-from-kernel.ts");
      const found = await showFromKernel(table, directories);
      if (!found) throw error;
      session.err("note: the agent does not answer; this is what is in the kernel and on disk\n");
      return found;
    },
  );
  const value = rows.map((row) => Object.fromEntries(columns.map((column, at) => [column, row[at] ?? ""])));
  await print(session, value, () => ({
    columns: columns.map((column) => column.toUpperCase()),
    rows,
    empty: `no ${table}`,
  }));
}

import { stringify } from "yaml";
import type { KubeObject } from "../../../api/object.ts";
import { tableFlow } from "../../../flows/api/flow-object.ts";
import { FLOW_COLUMNS } from "../../../flows/table.ts";
import { csvLine } from "../../csv.ts";
import type { Session } from "../../session.ts";

const GAP = "   ";

/** Prints rows one by one, as they come. A column becomes wider with the first cell that needs it, and stays so. */
export function rowPrinter(session: Session): (flow: KubeObject) => Promise<void> {
  const { output } = session.flags;
  if (output === "json") return async (flow) => session.out(`${JSON.stringify(flow)}\n`);
  if (output === "yaml") return async (flow) => session.out(`---\n${stringify(flow)}`);
  const columns = FLOW_COLUMNS.filter(({ priority }) => output !== "table" || priority === 0);
  const names = columns.map(({ name }) => name);
  const cellsOf = (flow: KubeObject) => columns.map(({ text }) => text(tableFlow(flow)));
  if (output === "csv") {
    session.out(csvLine(names));
    return async (flow) => session.out(csvLine(cellsOf(flow)));
  }
  const widths = names.map(({ length }) => length);
  const line = (cells: readonly string[]) => {
    for (const [column, cell] of cells.entries()) widths[column] = Math.max(widths[column] ?? 0, cell.length);
    session.out(
      `${cells
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join(GAP)
        .trimEnd()}\n`,
    );
  };
  line(names);
  return async (flow) => line(cellsOf(flow));
}

import { calicoNames, vendorNames } from "../../../api/names.ts";
import { NO_REPORTS, type Work } from "../../../procedures/action.ts";
import type { Plan } from "../../../procedures/plan.ts";
import { type PlannedChange, previewPlan } from "../../../procedures/preview-plan.ts";
import type { Engine } from "../../../procedures/run/engine.ts";
import { errors } from "../../errors.ts";
import { print } from "../../printer.ts";
import type { Session } from "../../session.ts";

const WIDEST = 60;

/** Which fields a plan would change, as the API server sees it, and which field manager owns them now. */
export async function printDiff(
  session: Session,
  engine: Engine,
  plan: Plan,
  detailedExitcode: boolean,
): Promise<void> {
  const changes = await changesOf(engine, plan);
  await print(session, { plan: plan.id, changes }, () => ({
    columns: ["STEP", "OBJECT", "FIELD", "CURRENT", "PLANNED", "MANAGER"],
    rows: changes.map(({ step, object, field, before, after, owner }) => {
      return [String(step), object, field, brief(before), brief(after), owner ?? ""];
    }),
    empty: "no field would change",
  }));
  if (detailedExitcode && changes.length > 0) throw errors.CHANGES_PENDING(changes.length);
}

/** For `--detailed-exitcode`: fields that would change count, steps that only wait or verify do not. */
export async function refusePending(engine: Engine, plan: Plan): Promise<void> {
  const { length } = await changesOf(engine, plan);
  if (length > 0) throw errors.CHANGES_PENDING(length);
}

async function changesOf({ client, clock, files, tools, signal }: Engine, plan: Plan): Promise<PlannedChange[]> {
  const names = plan.names === "calico" ? calicoNames : vendorNames;
  const work: Work = { client, clock, files, tools, names, signal, ...NO_REPORTS };
  return await previewPlan(plan, work);
}

function brief(value: unknown): string {
  if (value === undefined) return "-";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const line = text.replaceAll("\n", "\\n");
  return line.length > WIDEST ? `${line.slice(0, WIDEST - 1)}…` : line;
}

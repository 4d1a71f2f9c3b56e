import { calicoNames, vendorNames } from "../../../api/names.ts";
import { NO_REPORTS, type Work } from "../../../procedures/action.ts";
import type { Plan } from "../../../procedures/plan.ts";
import { type PlannedChange, previewPlan } from "../../../procedures/preview-plan.ts";
import type { Engine } from "../../../procedures/run/engine.ts";
import { errors } from "../../errors.ts";
import { formatTable, print, wrapped } from "../../printer.ts";
import type { Session } from "../../session.ts";

const WIDEST = 60;
/** As a preview names it. */
const WHOLE = "(whole object)";

/** Which fields a plan would change, as the API server sees it, and which field manager owns them now. */
export async function printDiff(
  session: Session,
  engine: Engine,
  plan: Plan,
  detailedExitcode: boolean,
): Promise<void> {
  const changes = await changesOf(engine, plan);
  if (session.flags.output === "table") session.out(await diffText(changes, session.config.outColumns));
  else await print(session, { plan: plan.id, changes }, () => ({ columns: [], rows: [] }));
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

/** A row for each field; where the terminal is too narrow for that, an object and its fields below it. */
async function diffText(changes: readonly PlannedChange[], width: number): Promise<string> {
  const table = await formatTable({
    columns: ["STEP", "OBJECT", "FIELD", "CURRENT", "PLANNED", "MANAGER"],
    rows: changes.map(({ step, object, field, before, after, owner }) => {
      return [String(step), object, fieldName(field), brief(before), planned(field, before, after), owner ?? ""];
    }),
    empty: "no field would change",
  });
  if (table.split("\n").every((line) => line.length <= width)) return table;
  const lines = await Promise.all(byObject(changes).map((group) => groupLines(group, width)));
  return `${lines.flat().join("\n")}\n`;
}

/** The changes of an object in one step, which follow each other. */
function byObject(changes: readonly PlannedChange[]): PlannedChange[][] {
  const groups = new Map<string, PlannedChange[]>();
  for (const change of changes) {
    const key = `${change.step} ${change.object}`;
    groups.set(key, [...(groups.get(key) ?? []), change]);
  }
  return [...groups.values()];
}

async function groupLines(changes: readonly PlannedChange[], width: number): Promise<string[]> {
  const [{ step, object, field, after } = { step: 0, object: "", field: "", after: "" }] = changes;
  const first = `step ${String(step).padEnd(2)}  `;
  // Of a whole object only what happens to it is known.
  if (field === WHOLE) return await wrapped(`${object}: ${brief(after)}`, { first, width });
  const managers = [...new Set(changes.flatMap(({ owner }) => owner ?? []))];
  const managed = managers.length === 0 ? "" : `, set by ${managers.join(", ")}`;
  const fields = changes.map(({ field: path, before, after: then }) => {
    const current = before === undefined ? "" : `${brief(before)} -> `;
    return wrapped(`${fieldName(path)}: ${current}${planned(path, before, then)}`, {
      first: " ".repeat(first.length + 2),
      width,
    });
  });
  return [...(await wrapped(`${object}${managed}`, { first, width })), ...(await Promise.all(fields)).flat()];
}

const SCHEMA = /^spec\.versions\[name=([^\]]+)\]\.schema\.openAPIV3Schema\.(.+)$/;

/** The schema of a field by the field: `v1 schema of spec.vendorNetwork.mtu`. */
function fieldName(path: string): string {
  const [, version, field] = SCHEMA.exec(path) ?? [];
  if (version === undefined || field === undefined) return path;
  return `${version} schema of ${field.replace(/\bproperties\./g, "").replace(/\.items\b/g, "[]")}`;
}

/** What a schema says is in the reference; here it matters that it is new. */
function planned(field: string, before: unknown, after: unknown): string {
  return before === undefined && SCHEMA.test(field) ? "added" : brief(after);
}

function brief(value: unknown): string {
  if (value === undefined) return "-";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const line = text.replaceAll("\n", "\\n");
  return line.length > WIDEST ? `${line.slice(0, WIDEST - 1)}…` : line;
}

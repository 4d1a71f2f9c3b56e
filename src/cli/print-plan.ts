import type { Plan } from "../procedures/plan.ts";
import { formatTable } from "./printer.ts";
import type { Session } from "./session.ts";

/** A plan for a person: its steps, what to know, and nothing else. */
export function planText(plan: Plan): string {
  if (plan.steps.length === 0) return `${plan.title}: nothing to do\n${notes(plan)}`;
  const rows = plan.steps.map(({ title, where, risk, reversible }, index) => {
    return [String(index + 1), title, where, risk, reversible === true ? "yes" : `no: ${reversible}`];
  });
  const table = formatTable({ columns: ["STEP", "WHAT", "WHERE", "RISK", "REVERSIBLE"], rows });
  return `${plan.title}\nplan ${plan.id}, ${plan.hash.slice(0, 12)}\n\n${table}${notes(plan)}`;
}

function notes({ notes: all }: Plan): string {
  return all.length === 0 ? "" : `\n${all.map((note) => `note: ${note}\n`).join("")}`;
}

/** Prints a plan as the result of a command: as it is saved, or as it is read, with the one command that runs it. */
export async function printPlan(session: Session, plan: Plan): Promise<void> {
  if (session.flags.output === "json") return session.out(`${JSON.stringify(plan, null, 2)}\n`);
  if (session.flags.output === "yaml") return session.out((await import("./to-yaml.ts")).toYaml(plan));
  const next = plan.steps.length === 0 ? "" : `\nrun it with: ${plan.command} -y\n`;
  session.out(`${planText(plan)}${next}`);
}

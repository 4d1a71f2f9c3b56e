import type { Plan } from "../../../procedures/plan.ts";
import { formatTable, wrapped } from "../../printer.ts";
import type { Session } from "../../session.ts";

/** A plan for a person: its steps, what to know, and nothing else. */
export async function planText(plan: Plan, width = Number.POSITIVE_INFINITY): Promise<string> {
  const title = await wrapped(plan.steps.length === 0 ? `${plan.title}: nothing to do` : plan.title, { width });
  const notes = await Promise.all(plan.notes.map((note) => noteLines(shortHashes(note), width)));
  if (plan.steps.length === 0) return `${[...title, ...notes.flat()].join("\n")}\n`;
  const rows = plan.steps.map(({ title: what, where, risk, reversible }, index) => {
    return [String(index + 1), what, shortHashes(where), risk, reversible === true ? "yes" : `no: ${reversible}`];
  });
  const table = await formatTable({ columns: ["STEP", "WHAT", "WHERE", "RISK", "REVERSIBLE"], rows }, width);
  const head = [...title, `plan ${plan.id}`, ""];
  const parts = [
    await componentText(plan, width),
    table,
    await impactText(plan, width),
    await inventoryText(plan, width),
    notes.length === 0 ? "" : `${notes.flat().join("\n")}\n`,
  ];
  return `${head.join("\n")}\n${parts.filter((part) => part !== "").join("\n")}`;
}

async function componentText({ components = [] }: Plan, width: number): Promise<string> {
  if (components.length === 0) return "";
  const rows = components.map(({ component, current, target }) => [component, current, target]);
  return await formatTable({ columns: ["COMPONENT", "CURRENT", "TARGET"], rows }, width);
}

async function impactText({ impact }: Plan, width: number): Promise<string> {
  if (!impact) return "";
  const { nodes, deployments, atOnce, secondsPerNode, seconds, connections } = impact;
  const restarts = [...new Set(nodes.flatMap((node) => node.restarts))].join(", ");
  const names = nodes.map(({ node }) => node);
  const shown = names.length > SHOWN ? [...names.slice(0, SHOWN), `and ${names.length - SHOWN} more`] : names;
  const lines = [
    `${restarts} restarts on ${names.length} ${names.length === 1 ? "node" : "nodes"}, ${atOnce} at a time, about ${duration(secondsPerNode)} each and ${duration(seconds)} in all (estimated): ${shown.join(", ")}`,
    ...(deployments.length > 0 ? [`Deployments that restart: ${deployments.join(", ")}`] : []),
    ...connections,
  ];
  const each = await Promise.all(lines.map((line) => wrapped(line, { first: "impact: ", width })));
  return `${each.flat().join("\n")}\n`;
}

const SHOWN = 10;
const MINUTE = 60;

function duration(seconds: number): string {
  return seconds < 2 * MINUTE ? `${seconds} s` : `${Math.ceil(seconds / MINUTE)} min`;
}

/** What the new release does not carry: a line each, and below the table what to do. */
export async function inventoryText({ inventory = [] }: Pick<Plan, "inventory">, width: number): Promise<string> {
  if (inventory.length === 0) return "";
  const rows = inventory.map(({ name, fate, accepted, found, why, todo }) => [
    fate === "lost" ? (accepted ? "lost (accepted)" : "lost") : fate,
    name,
    found.length > SHOWN ? `${found.slice(0, SHOWN).join(", ")} and ${found.length - SHOWN} more` : found.join(", "),
    todo === "Nothing." ? why : `${why} ${todo}`,
  ]);
  return await formatTable({ columns: ["NOT CARRIED", "NAME", "FOUND IN", "WHY, AND WHAT TO DO"], rows }, width);
}

/** An item of the note before it starts with spaces, and stands below it. */
function noteLines(note: string, width: number): Promise<string[]> {
  const item = note.trimStart();
  return wrapped(item, { first: item === note ? "note: " : " ".repeat("note: ".length + 2), width });
}

const SHORT = 12;

/** As git does it: the start of a hash names it well enough for a person. */
function shortHashes(text: string): string {
  return text.replace(/\b[0-9a-f]{40,64}\b/g, (hash) => hash.slice(0, SHORT));
}

/** Prints a plan as the result of a command: as it is saved, or as it is read, with the one command that runs it. */
export async function printPlan(session: Session, plan: Plan): Promise<void> {
  if (session.flags.output === "json") return session.out(`${JSON.stringify(plan, null, 2)}\n`);
  if (session.flags.output === "yaml") return session.out((await import("../../to-yaml.ts")).toYaml(plan));
  const width = session.config.outColumns;
  const next = await wrapped(`${plan.command} -y`, { first: "run it with: ", width });
  session.out(`${await planText(plan, width)}${plan.steps.length === 0 ? "" : `\n${next.join("\n")}\n`}`);
}

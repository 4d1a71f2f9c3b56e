import type { ExplainedEnd, FlowExplanation, RuleReference } from "../../../api/protocol/flow-explanation.ts";
import { wrap } from "../../layout.ts";
import { printableLine } from "../../printable.ts";
import { print } from "../../printer.ts";
import type { Session } from "../../session.ts";
import { errors } from "./errors.ts";
import { refuseIntent, withFlows } from "./flows.run.ts";

const ID = /^[0-9a-f]{24}$/;

export async function explainFlow(session: Session, _flags: object, id: string): Promise<void> {
  refuseIntent(session);
  if (!ID.test(id)) throw errors.FLOW_UNKNOWN(id.slice(0, 60));
  await withFlows(session, {}, async (flows, signal) => {
    const found = (await flows.find(`flows/${id}/explain`, signal)) as FlowExplanation | undefined;
    if (!found) throw errors.FLOW_UNKNOWN(id);
    if (session.flags.output === "table") {
      const width = session.config.outColumns;
      for (const line of linesOf(found)) session.out(`${wrapped(line, width).join("\n")}\n`);
    } else await print(session, found, () => ({ columns: [], rows: [] }));
    if (!session.flags.quiet) for (const note of found.notes) session.err(`note: ${printableLine(note)}\n`);
  });
}

/** Four spaces and more begin a line of YAML, which is left whole for who copies it. */
const YAML_INDENT = "    ";

/** A terminal's own wrapping would begin the rest of a sentence at its edge. */
function wrapped(line: string, width: number): string[] {
  const text = printableLine(line);
  const indent = text.slice(0, text.search(/\S|$/));
  if (text.trim() === "" || indent.startsWith(YAML_INDENT)) return [text.trimEnd()];
  const rest = `${indent}  `;
  return wrap(text.trimStart(), width - rest.length).map((part, index) => `${index === 0 ? indent : rest}${part}`);
}

function linesOf({ sentence, pending, ends, nearMisses, remedies }: FlowExplanation): string[] {
  const sections = [
    pending ? [pending.text] : [],
    ends.flatMap(endLines),
    headed(
      "Rules that nearly match",
      nearMisses.map(({ text, rule }) => [`${text}${lineOf(rule)}`]),
    ),
    headed(
      "What would allow it",
      remedies.map(({ text, yaml }) => [text, ...yamlLines(yaml)]),
    ),
  ];
  return [sentence, ...sections.filter((lines) => lines.length > 0).flatMap((lines) => ["", ...lines])];
}

function headed(title: string, items: readonly (readonly string[])[]): string[] {
  if (items.length === 0) return [];
  return [
    title,
    ...items.flatMap(([first = "", ...more]) => [`  ${first}`, ...more.map((line) => `${YAML_INDENT}${line}`)]),
  ];
}

function endLines({ direction, pod, node, verdict, unknown, steps, decider }: ExplainedEnd): string[] {
  const where = pod === undefined ? "" : ` ${pod}${node === undefined ? "" : ` on ${node}`}`;
  const found = verdict === undefined ? (unknown ?? "unknown") : verdict === "Allow" ? "allowed" : "denied";
  return [
    `${direction}${where}: ${found}`,
    ...steps.map(({ text }) => `  ${text}`),
    ...(decider?.yaml === undefined ? [] : yamlLines(decider.yaml).map((line) => `${YAML_INDENT}${line}`)),
  ];
}

function lineOf({ line }: RuleReference): string {
  return line === undefined ? "" : ` (line ${line})`;
}

function yamlLines(yaml: string | undefined): string[] {
  return yaml === undefined ? [] : yaml.trimEnd().split("\n");
}

import { CHECK_GROUPS } from "../../../procedures/checks/check.ts";
import type { CheckResult, Verdict } from "../../../procedures/checks/run-checks.ts";
import type { InventoryItem } from "../../../procedures/plans/upgrade/inventory.ts";
import { Styled, styled } from "../../printable.ts";
import { hanging, print, wrapped } from "../../printer.ts";
import type { Session } from "../../session.ts";
import { inventoryText } from "../runs/plan.print.ts";
import { junitReport } from "./junit.ts";

export interface CheckReport {
  apiVersion: "procedures.vendor.io/v1";
  kind: "CheckReport";
  purpose: string;
  cluster: { kind: string; evidence: string; nodes: number; version: string | null; apiServer: string };
  verdict: Verdict;
  counts: Record<"ok" | "warn" | "fail" | "skip" | "suppressed", number>;
  results: readonly CheckResult[];
  /** Before an upgrade: what is stored or set and the new release does not carry. */
  inventory?: readonly InventoryItem[];
}

type Mark = (status: CheckResult["status"]) => Styled;

/** Short when all is well, long where it is not. */
export async function printChecks(session: Session, report: CheckReport): Promise<void> {
  switch (session.flags.output) {
    case "junit":
      return session.out(junitReport(report));
    case "short":
      return session.out(await shortReport(session, report));
    case "table":
      return session.out(await longReport(session, report));
    default:
      return await print(session, report, () => ({ columns: [], rows: [] }));
  }
}

const RESULT_TEXT = { ok: "ok", warn: "warn", fail: "fail", skip: "skip", suppressed: "skip" } as const;
const WIDTH = 4;
const STATUSES = ["ok", "warn", "fail", "skip", "suppressed"] as const;

async function painter(session: Session): Promise<Mark> {
  const { createColors } = (await import("picocolors")).default;
  const { green, yellow, red, dim } = createColors(session.flags.color);
  const paint = { ok: green, warn: yellow, fail: red, skip: dim, suppressed: dim };
  return (status) => Styled.raw(paint[status](RESULT_TEXT[status]));
}

/** One line for a healthy group; every finding with the evidence, why it matters and what to do. */
async function longReport(session: Session, report: CheckReport): Promise<Styled> {
  const mark = await painter(session);
  const width = session.config.outColumns;
  const groups = CHECK_GROUPS.map(async (group) => {
    const results = report.results.filter((result) => result.group === group);
    if (results.length === 0) return [];
    // With -v 1, what passed is listed too.
    const shown = results.filter(({ status }) => session.flags.v > 0 || status === "warn" || status === "fail");
    const findings = await Promise.all(alike(shown).map((same) => findingLines(same, mark, width)));
    return [groupLine(group, results, mark), ...findings.flat()];
  });
  const inventory = await inventoryText(report, width);
  const lines = [...(await Promise.all(groups)).flat(), ...(inventory === "" ? [] : ["", inventory])];
  return Styled.raw([...lines, ...(await verdictLines(report, mark, width)), ""].join("\n"));
}

function groupLine(group: string, results: readonly CheckResult[], mark: Mark): string {
  const count = (status: CheckResult["status"]) => results.filter((result) => result.status === status).length;
  const worst = count("fail") > 0 ? "fail" : count("warn") > 0 ? "warn" : count("ok") > 0 ? "ok" : "skip";
  const parts = STATUSES.filter((status) => count(status) > 0).map((status) => `${count(status)} ${status}`);
  return `${column(worst, mark)}${group}  (${parts.join(", ")})`;
}

/** The word as a column of its own. */
function column(status: CheckResult["status"], mark: Mark, indent = ""): Styled {
  return styled`${indent}${mark(status)}${" ".repeat(WIDTH - RESULT_TEXT[status].length)}  `;
}

const INDENT = " ".repeat(WIDTH + 4);

/** Neighbours that are skipped for the same reason are listed together: the reason is what a reader needs once. */
function alike(results: readonly CheckResult[]): CheckResult[][] {
  const groups: CheckResult[][] = [];
  for (const result of results) {
    const last = groups.at(-1);
    const same = last?.[0]?.status === "skip" && result.status === "skip" && reasonOf(last[0]) === reasonOf(result);
    if (last && same) last.push(result);
    else groups.push([result]);
  }
  return groups;
}

const reasonOf = ({ evidence }: CheckResult) => evidence.join("; ");

async function findingLines(same: readonly CheckResult[], mark: Mark, width: number): Promise<string[]> {
  const [result, ...others] = same;
  if (!result) return [];
  if (others.length > 0) {
    const codes = same.map(({ code }) => code).join(", ");
    return await hanging(column("skip", mark, "  "), `${same.length} checks, ${reasonOf(result)}: ${codes}`, { width });
  }
  const { status, title, code, evidence, reason, fix, rule } = result;
  if (status === "ok" || status === "skip") {
    const read = evidence.length === 0 ? "" : `: ${evidence.join("; ")}`;
    return await hanging(column(status, mark, "  "), `${title} [${code}]${read}`, { width });
  }
  const labelled = (label: string, text: string | undefined) =>
    text ? wrapped(text, { first: `${INDENT}${label}: `, width }) : [];
  const lines = await Promise.all([
    hanging(column(status, mark, "  "), `${title} [${code}]`, { width }),
    ...evidence.map((line) => wrapped(line, { first: INDENT, width })),
    labelled("why", reason),
    labelled("fix", fix),
    labelled("rule", rule),
  ]);
  return lines.flat();
}

/** Findings only, a line each, to be pasted into a ticket. */
async function shortReport(session: Session, report: CheckReport): Promise<Styled> {
  const mark = await painter(session);
  const width = session.config.outColumns;
  const bad = report.results.filter(({ status }) => status === "warn" || status === "fail");
  const lines = await Promise.all(
    bad.map(({ status, code, title, evidence }) =>
      hanging(column(status, mark), `${code}  ${evidence[0] ?? title}${more(evidence)}`, { width }),
    ),
  );
  return Styled.raw([...lines.flat(), ...(await verdictLines(report, mark, width)), ""].join("\n"));
}

function more(evidence: readonly string[]): string {
  return evidence.length > 1 ? ` (and ${evidence.length - 1} more)` : "";
}

async function verdictLines(report: CheckReport, mark: Mark, width: number): Promise<string[]> {
  const { verdict, counts, purpose, cluster } = report;
  const about = purpose === "running" ? "installed service" : `before ${purpose}`;
  const parts = Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([status, count]) => `${count} ${status}`);
  const nodes = `${cluster.nodes} ${cluster.nodes === 1 ? "node" : "nodes"}`;
  const text = `${about}, ${cluster.kind} cluster of ${nodes}: ${parts.join(", ")}`;
  const next = verdict === "fail" || purpose === "running" ? [] : [`next: ${nextCommand(purpose)}`];
  return [...(await hanging(styled`${mark(verdict)}: `, text, { width })), ...next];
}

function nextCommand(purpose: string): string {
  return `vendorctl ${purpose === "switch" ? "switch --to bpf" : purpose}`;
}

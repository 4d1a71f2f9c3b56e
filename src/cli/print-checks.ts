import { CHECK_GROUPS } from "../procedures/checks/check.ts";
import type { CheckResult, Verdict } from "../procedures/checks/run-checks.ts";
import { junitReport } from "./junit.ts";
import { print } from "./printer.ts";
import type { Session } from "./session.ts";

export interface CheckReport {
  apiVersion: "procedures.vendor.io/v1";
  kind: "CheckReport";
  purpose: string;
  cluster: { kind: string; evidence: string; nodes: number; version: string | null; apiServer: string };
  verdict: Verdict;
  counts: Record<"ok" | "warn" | "fail" | "skip" | "suppressed", number>;
  results: readonly CheckResult[];
}

type Paint = Record<CheckResult["status"], (text: string) => string>;

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

const WORD = { ok: "ok", warn: "warn", fail: "fail", skip: "skip", suppressed: "skip" } as const;
const WIDTH = 4;

async function painter(session: Session): Promise<Paint> {
  const { createColors } = (await import("picocolors")).default;
  const { green, yellow, red, dim } = createColors(session.flags.color);
  return { ok: green, warn: yellow, fail: red, skip: dim, suppressed: dim };
}

/** One line a group that is well; every finding with what was seen, why it matters and what to do. */
async function longReport(session: Session, report: CheckReport): Promise<string> {
  const paint = await painter(session);
  const lines = CHECK_GROUPS.flatMap((group) => {
    const results = report.results.filter((result) => result.group === group);
    if (results.length === 0) return [];
    const bad = results.filter(({ status }) => status === "warn" || status === "fail");
    const head = groupLine(group, results, paint);
    return [head, ...bad.flatMap((result) => findingLines(result, paint))];
  });
  return `${lines.join("\n")}\n${verdictLine(report, paint)}\n`;
}

function groupLine(group: string, results: readonly CheckResult[], paint: Paint): string {
  const count = (status: CheckResult["status"]) => results.filter((result) => result.status === status).length;
  const worst = count("fail") > 0 ? "fail" : count("warn") > 0 ? "warn" : count("ok") > 0 ? "ok" : "skip";
  const parts = (["ok", "warn", "fail", "skip", "suppressed"] as const)
    .filter((status) => count(status) > 0)
    .map((status) => `${count(status)} ${status}`);
  return `${symbol(worst, paint)}  ${group}  (${parts.join(", ")})`;
}

function symbol(status: CheckResult["status"], paint: Paint): string {
  return paint[status](WORD[status].padEnd(WIDTH));
}

function findingLines(result: CheckResult, paint: Paint): string[] {
  const { status, title, code, evidence, reason, fix, rule } = result;
  return [
    `  ${symbol(status, paint)}  ${title} [${code}]`,
    ...evidence.map((line) => `        ${line}`),
    `        why: ${reason}`,
    `        fix: ${fix}`,
    `        rule: ${rule}`,
  ];
}

/** Findings only, a line each, to be pasted into a ticket. */
async function shortReport(session: Session, report: CheckReport): Promise<string> {
  const paint = await painter(session);
  const bad = report.results.filter(({ status }) => status === "warn" || status === "fail");
  const lines = bad.map(
    ({ status, code, title, evidence }) =>
      `${symbol(status, paint)}  ${code}  ${evidence[0] ?? title}${more(evidence)}`,
  );
  return [...lines, verdictLine(report, paint), ""].join("\n");
}

function more(evidence: readonly string[]): string {
  return evidence.length > 1 ? ` (and ${evidence.length - 1} more)` : "";
}

function verdictLine({ verdict, counts, purpose, cluster }: CheckReport, paint: Paint): string {
  const about = purpose === "running" ? "what runs here" : `before ${purpose}`;
  const parts = Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([status, count]) => `${count} ${status}`);
  const next =
    verdict === "fail" || purpose === "running"
      ? ""
      : `; next: vendorctl ${purpose === "switch" ? "switch --to BPF" : purpose}`;
  return `${paint[verdict](verdict)}: ${about}, ${cluster.kind} cluster of ${cluster.nodes} nodes: ${parts.join(", ")}${next}`;
}

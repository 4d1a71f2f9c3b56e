import type { CheckResult } from "../../../procedures/checks/run-checks.ts";
import type { CheckReport } from "./check.print.ts";

/** The report as test results, which every CI system can show: a suite per group, a case per check. */
export function junitReport({ results, counts, purpose }: CheckReport): string {
  const groups = [...new Set(results.map(({ group }) => group))];
  const suites = groups.map((group) =>
    suite(
      group,
      results.filter((result) => result.group === group),
    ),
  );
  const all = `tests="${results.length}" failures="${counts.fail}" skipped="${counts.skip + counts.suppressed}"`;
  const name = escaped(`vendorctl check ${purpose}`);
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="${name}" ${all}>\n${suites.join("")}</testsuites>\n`;
}

function suite(group: string, results: readonly CheckResult[]): string {
  const failures = results.filter(({ status }) => status === "fail").length;
  const skipped = results.filter(({ status }) => status === "skip" || status === "suppressed").length;
  const head = `  <testsuite name="${escaped(group)}" tests="${results.length}" failures="${failures}" skipped="${skipped}">\n`;
  return `${head}${results.map(testCase).join("")}  </testsuite>\n`;
}

function testCase({ code, title, status, evidence, reason, fix, group }: CheckResult): string {
  const open = `    <testcase classname="${escaped(group)}" name="${escaped(`${code}: ${title}`)}"`;
  const said = escaped(evidence.join("\n"));
  switch (status) {
    case "ok":
      return `${open}/>\n`;
    case "skip":
    case "suppressed":
      return `${open}><skipped message="${escaped(status === "skip" ? (evidence[0] ?? "") : "suppressed")}"/></testcase>\n`;
    case "fail":
      return `${open}><failure type="${code}" message="${escaped(evidence[0] ?? title)}">${said}\nwhy: ${escaped(reason ?? "")}\nfix: ${escaped(fix ?? "")}</failure></testcase>\n`;
    case "warn":
      // There is no word for a warning; what was seen is kept with a case that passed.
      return `${open}><system-out>warning: ${said}\nfix: ${escaped(fix ?? "")}</system-out></testcase>\n`;
  }
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&apos;",
};

/** Also without the control characters XML cannot hold at all. */
function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => ENTITIES[sign] ?? sign).replace(CONTROL, "?");
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not get into the file.
const CONTROL = /[\x00-\x08\x0b\x0c\x0e-\x1f]/g;

import { CHECKS } from "../../procedures/checks/all.ts";
import { CHECK_GROUPS, type Check } from "../../procedures/checks/check.ts";
import { anchor, code, GENERATED, plain, sentence, table } from "./markdown.ts";

export function checkReference(): string {
  const groups = CHECK_GROUPS.filter((group) => CHECKS.some((check) => check.group === group));
  return [
    GENERATED("src/procedures/checks"),
    "# Check reference\n",
    "Every check of `vendorctl check` and of the procedures. The sentence says what is wrong when the check does not pass. " +
      "`vendorctl explain CODE` prints the same, without a cluster; `--suppress CODE` accepts a finding.\n",
    ...groups.map((group) => groupTable(group)),
    ...groups.flatMap((group) => CHECKS.filter((check) => check.group === group).map(checkSection)),
  ].join("\n");
}

function groupTable(group: string): string {
  const rows = CHECKS.filter((check) => check.group === group).map((check) => [
    `[${code(check.code)}](#${anchor(check.code)})`,
    sentence(plain(check.title)),
    purposesOf(check),
  ]);
  return `**${group}**\n\n${table(["Code", "Fails or warns when", "Runs for"], rows)}`;
}

function checkSection(check: Check): string {
  const planned = check.planned ?? [];
  return [
    `## ${check.code}\n`,
    `${sentence(plain(check.title))}\n`,
    `- Why: ${sentence(plain(check.why))}`,
    `- Fix: ${sentence(plain(check.fix))}`,
    `- Rule: ${sentence(plain(check.rule))}`,
    `- Runs for: ${purposesOf(check)}`,
    ...(planned.length > 0 ? [`- Resolved by the plan of: ${planned.map(code).join(", ")}`] : []),
    "",
  ].join("\n");
}

function purposesOf({ for: purposes, ebpfOnly }: Check): string {
  const names = purposes.map((purpose) => (purpose === "running" ? "`check`" : code(purpose)));
  return `${names.join(", ")}${ebpfOnly ? " (eBPF only)" : ""}`;
}

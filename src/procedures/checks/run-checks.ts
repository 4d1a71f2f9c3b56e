import type { Observation } from "../observation.ts";
import type { Procedure } from "../plan.ts";
import { isEbpfOn, requestedDataplane } from "../plans/cluster-view.ts";
import { checksFor } from "./all.ts";
import type { Check, CheckGroup, Finding, Purpose, Situation } from "./check.ts";
import { SUBJECTS } from "./subjects.ts";

/** One check and what came of it, as it is printed and given to programs. */
export interface CheckResult {
  code: string;
  group: CheckGroup;
  /** The finding, or what was looked at where nothing is wrong. */
  title: string;
  status: Finding["status"] | "suppressed";
  evidence: readonly string[];
  /** Why it matters; only where something is wrong. */
  reason?: string;
  fix?: string;
  rule: string;
}

export interface RunOptions extends Partial<Omit<Situation, "purpose">> {
  /** Codes whose findings are accepted. */
  suppress?: readonly string[];
}

export type Verdict = "ok" | "warn" | "fail";

/** Runs every check made for a purpose over what was observed. Nothing is asked of the cluster again. */
export function runChecks(observation: Observation, purpose: Purpose, options: RunOptions = {}): CheckResult[] {
  const { proofs = [], now = Date.now(), suppress = [] } = options;
  const dataplane = options.dataplane ?? dataplaneFor(observation, purpose);
  const situation: Situation = { purpose, dataplane, proofs, now };
  return checksFor(purpose).map((check) => resultOf(check, observation, situation, suppress));
}

/** What a procedure must not start with: every failure, but for those its own plan puts right. */
export function blockingResults(
  observation: Observation,
  procedure: Procedure,
  options: RunOptions = {},
): CheckResult[] {
  const left = checksFor(procedure).filter((check) => check.planned?.includes(procedure));
  const planned = new Set(left.map(({ code }) => code));
  return runChecks(observation, procedure, options).filter(
    ({ status, code }) => status === "fail" && !planned.has(code),
  );
}

export function verdictOf(results: readonly CheckResult[]): Verdict {
  if (results.some(({ status }) => status === "fail")) return "fail";
  return results.some(({ status }) => status === "warn") ? "warn" : "ok";
}

/** The data plane the checks are about: eBPF before a change towards it, otherwise the one that is there or asked for. */
function dataplaneFor(observation: Observation, purpose: Purpose): Situation["dataplane"] {
  if (purpose === "install" || purpose === "switch") return "BPF";
  return isEbpfOn(observation) || requestedDataplane(observation) === "BPF" ? "BPF" : "Nftables";
}

function resultOf(
  check: Check,
  observation: Observation,
  situation: Situation,
  suppress: readonly string[],
): CheckResult {
  const { code, group, title, why, rule } = check;
  const finding: Finding =
    check.ebpfOnly && situation.dataplane !== "BPF"
      ? { status: "skip", evidence: "applies to the eBPF data plane only" }
      : check.run(observation, situation);
  if (finding.status === "ok" || finding.status === "skip") {
    const evidence = finding.evidence ? [finding.evidence] : [];
    return { code, group, title: SUBJECTS[code] ?? title, status: finding.status, evidence, rule };
  }
  const status = suppress.includes(code) ? "suppressed" : finding.status;
  return { code, group, title, status, evidence: finding.evidence, reason: why, fix: finding.fix ?? check.fix, rule };
}

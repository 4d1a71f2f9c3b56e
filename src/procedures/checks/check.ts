import type { Dataplane } from "../../api/dataplane.ts";
import type { Explanation } from "../../api/validation/problem.ts";
import type { Observation } from "../observation.ts";
import type { Procedure } from "../plan.ts";
import type { Proof } from "../probe/prove-address.ts";

/** What a check is asked for: before a procedure, or about what runs. */
export type Purpose = Procedure | "running";

export const CHECK_GROUPS = [
  "platform",
  "network",
  "api address",
  "kube-proxy",
  "installation",
  "versions",
  "rollout",
  "health",
  "leftovers",
] as const;
export type CheckGroup = (typeof CHECK_GROUPS)[number];

export interface Situation {
  purpose: Purpose;
  /** The data plane that runs, or that is wanted. */
  dataplane: Dataplane;
  /** What probing from this machine said of candidate addresses; empty without a probe. */
  proofs: readonly Proof[];
  /** Milliseconds since the epoch, for what may be stale. */
  now: number;
}

/** What one check found. Evidence is what was read, a line each; a fix here is more exact than the check's own. */
export type Finding =
  | { status: "ok"; evidence?: string }
  | { status: "skip"; evidence: string }
  | { status: "warn" | "fail"; evidence: readonly string[]; fix?: string };

export interface Check extends Explanation {
  /** Stable: people suppress it, scripts look for it, `explain` knows it. */
  code: string;
  group: CheckGroup;
  for: readonly Purpose[];
  /** Procedures whose own plan puts it right or refuses by the same rule, so that it does not keep them from starting. */
  planned?: readonly Procedure[];
  /** Matters to the eBPF data plane only. */
  ebpfOnly?: true;
  run(observation: Observation, situation: Situation): Finding;
}

export const OK: Finding = { status: "ok" };
export const ok = (evidence: string): Finding => ({ status: "ok", evidence });
export const skip = (evidence: string): Finding => ({ status: "skip", evidence });
export const warn = (evidence: readonly string[], fix?: string): Finding => found("warn", evidence, fix);
export const fail = (evidence: readonly string[], fix?: string): Finding => found("fail", evidence, fix);

function found(status: "warn" | "fail", evidence: readonly string[], fix: string | undefined): Finding {
  if (evidence.length === 0) return OK;
  return { status, evidence, ...(fix === undefined ? {} : { fix }) };
}

/** One check per code of a table that validation already has. */
export function fromTable(
  table: Readonly<Record<string, Explanation>>,
  make: (code: string) => Pick<Check, "group" | "for" | "run" | "planned" | "ebpfOnly">,
): Check[] {
  return Object.entries(table).map(([code, explanation]) => ({ code, ...explanation, ...make(code) }));
}

export const BEFORE_EBPF = ["running", "install", "switch"] as const;
export const ALWAYS = ["running", "install", "switch", "upgrade"] as const;
export const CHANGES = ["install", "switch", "proxy", "upgrade", "migrate", "flows", "uninstall"] as const;

const SHOWN = 10;

/** Enough to act on; a thousand equal lines are of no help. */
export function some(lines: readonly string[]): string[] {
  return lines.length <= SHOWN ? [...lines] : [...lines.slice(0, SHOWN), `and ${lines.length - SHOWN} more`];
}

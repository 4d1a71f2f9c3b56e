import { parseVersion } from "../tables/version.ts";
import { hasGate, VERSION_GATES } from "../tables/version-gates.ts";
import type { ClusterFacts } from "./facts.ts";
import { type Problem, reporters } from "./problem.ts";
import { singletonProblems } from "./values.ts";

export const FLOW_PROBLEMS = {
  FLOW_RESOURCES_TOO_EARLY: {
    title: "Flow logs or flow UI on a version that has none",
    why: "Older operators do not know these resources, so nothing would happen.",
    fix: "Upgrade to v3.30 or later first.",
    rule: VERSION_GATES.flowLogs.because,
  },
  FLOW_UI_NEEDS_LOGS: {
    title: "The flow UI without flow logs",
    why: "The UI shows what the flow logs API collects; without it there is nothing to show.",
    fix: "Create the FlowLogs resource named default too.",
    rule: "Two custom resources, one enabling the flow logs API and one enabling the flow visualization UI.",
  },
} as const;

export const flowProblem = reporters(FLOW_PROBLEMS);

/** FlowLogs and FlowUI alike. */
export function flowResourceProblems(name: string, facts: ClusterFacts): Problem[] {
  const version = parseVersion(facts.version ?? "");
  const early = version && !hasGate(version, "flowLogs");
  const since = VERSION_GATES.flowLogs.version;
  const message = `Flow resources exist from ${since} on, and this cluster has ${facts.version}.`;
  return [...singletonProblems(name), ...(early ? [flowProblem.FLOW_RESOURCES_TOO_EARLY("kind", message)] : [])];
}

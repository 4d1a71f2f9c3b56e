import { vendorNames } from "../../api/names.ts";
import { flowProblem, flowResourceProblems } from "../../api/validation/flow-resources.ts";
import { isLeaving, theOne } from "../observed.ts";
import { ready } from "../outcome.ts";
import { reconcileOptional } from "./optional-part.ts";

const WORKLOAD = `Deployment ${vendorNames.workloads.flowUI}: its pod is ready`;

/** The page that shows flows, from v3.30 on; it has nothing to show without flow logs. */
export const reconcileFlowUI = reconcileOptional({
  noun: "flowUI",
  component: "flow-ui",
  notInstalled: "There is no FlowUI named default.",
  assess: () => ready("The page is served: vendorctl ui, or kubectl port-forward.", [WORKLOAD]),
  requests: ({ flowUIs }) => flowUIs,
  problems: ({ self, flowLogs }) => {
    const logs = theOne(flowLogs);
    const early = flowResourceProblems(vendorNames.singleton, { version: self.version });
    if (early.length > 0 || (logs && !isLeaving(logs))) return early;
    return [
      flowProblem.FLOW_UI_NEEDS_LOGS("kind", "The flow UI needs flow logs, and there is no FlowLogs named default."),
    ];
  },
});

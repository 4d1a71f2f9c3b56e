import { vendorNames } from "../../api/names.ts";
import { flowResourceProblems } from "../../api/validation/flow-resources.ts";
import { storedKind } from "../managed-kinds.ts";
import { reconcileOptional } from "./optional-part.ts";

/** The flow logs API, from v3.30 on. */
export const reconcileFlowLogs = reconcileOptional({
  component: "flow-logs",
  kind: storedKind("flowLogs"),
  finalizer: vendorNames.finalizers.flowLogs,
  workload: vendorNames.workloads.flowLogs,
  message: {
    ready: "Deployed; the program of this release answers 501: flows are not collected.",
    notInstalled: "There is no FlowLogs named default.",
  },
  requests: ({ flowLogs }) => flowLogs,
  problems: ({ self }) => flowResourceProblems(vendorNames.singleton, { version: self.version }),
});

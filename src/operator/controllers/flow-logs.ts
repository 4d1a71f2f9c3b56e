import { vendorNames } from "../../api/names.ts";
import { flowResourceProblems } from "../../api/validation/flow-resources.ts";
import { notInThisRelease, reconcileOptional } from "./optional-part.ts";

/** The flow logs API, from v3.30 on. */
export const reconcileFlowLogs = reconcileOptional({
  noun: "flowLogs",
  component: "flow-logs",
  notInstalled: "There is no FlowLogs named default.",
  assess: () => notInThisRelease("flows are not collected"),
  requests: ({ flowLogs }) => flowLogs,
  problems: ({ self }) => flowResourceProblems(vendorNames.singleton, { version: self.version }),
});

import { vendorNames } from "../names.ts";
import { conditionColumn, conditions, messageColumn, sinceColumn } from "./conditions.ts";
import { object } from "./describe.ts";
import { defineResource } from "./resource.ts";
import { oneCopyOverrides } from "./workload-overrides.ts";

export const flowLogs = defineResource({
  noun: "flowLogs",
  api: "operator",
  namespaced: false,
  description: "Asks for the flow logs API, from v3.30 on; there is one, named default.",
  spec: object("How flow logs are kept. That the resource is there asks for them.", {
    flowLogsDeployment: oneCopyOverrides(vendorNames.workloads.flowLogs),
  }),
  status: object("How the flow logs API is doing.", { conditions }),
  columns: [
    conditionColumn("Ready", "Whether flows are collected"),
    conditionColumn("Degraded", "Whether something is wrong"),
    sinceColumn("Ready"),
    messageColumn("Ready"),
  ],
});

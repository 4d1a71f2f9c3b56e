import { vendorNames } from "../names.ts";
import { conditionColumn, conditions, messageColumn, sinceColumn } from "./conditions.ts";
import { choice, object } from "./describe.ts";
import { defineResource } from "./resource.ts";
import { oneCopyOverrides } from "./workload-overrides.ts";

export const flowUI = defineResource({
  noun: "flowUI",
  api: "operator",
  namespaced: false,
  description: "Asks for the web page that shows flows, from v3.30 on; there is one, named default. It needs FlowLogs.",
  spec: object("How the page behaves.", {
    notifications: choice(
      "Whether the page announces new denials while it is open. It never asks anything outside of the cluster.",
      ["Enabled", "Disabled"],
    ),
    flowUIDeployment: oneCopyOverrides(vendorNames.workloads.flowUI),
  }),
  status: object("How the page is doing.", { conditions }),
  columns: [
    conditionColumn("Ready", "Whether the page is served"),
    conditionColumn("Degraded", "Whether something is wrong"),
    sinceColumn("Ready"),
    messageColumn("Ready"),
  ],
});

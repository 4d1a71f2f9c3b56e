import { vendorNames } from "../names.ts";
import { conditionColumn, conditions, messageColumn, sinceColumn } from "./conditions.ts";
import { object } from "./describe.ts";
import { defineResource } from "./resource.ts";
import { deploymentOverrides } from "./workload-overrides.ts";

export const apiServer = defineResource({
  noun: "apiServer",
  api: "operator",
  namespaced: false,
  description: "Asks for the aggregated v3 API; there is one, named default.",
  spec: object("How the API is served. That the resource is there asks for the API.", {
    apiServerDeployment: deploymentOverrides(vendorNames.workloads.apiServer),
  }),
  status: object("How the API is doing.", { conditions }),
  columns: [
    conditionColumn("Ready", "Whether the API answers"),
    conditionColumn("Degraded", "Whether something is wrong"),
    sinceColumn("Ready"),
    messageColumn("Ready"),
  ],
});

import { conditionColumn, conditions, messageColumn, sinceColumn } from "./conditions.ts";
import { object } from "./describe.ts";
import { defineResource } from "./resource.ts";

export const flowLogs = defineResource({
  noun: "flowLogs",
  api: "operator",
  namespaced: false,
  description: "Asks for the flow logs API, from v3.30 on; there is one, named default.",
  spec: object("Nothing to set: its being there is what asks for flow logs.", {}),
  status: object("How the flow logs API is doing.", { conditions }),
  columns: [
    conditionColumn("Ready", "Whether flows are collected"),
    conditionColumn("Degraded", "Whether something is wrong"),
    sinceColumn("Ready"),
    messageColumn("Ready"),
  ],
});

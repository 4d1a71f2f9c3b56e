import { vendorNames } from "../names.ts";
import { conditionColumn, conditions, messageColumn, sinceColumn } from "./conditions.ts";
import { integer, list, object, text } from "./describe.ts";
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
  status: object("How the flow logs API is doing.", {
    conditions,
    collection: object("What vendor-flow-logs says of itself, twice a minute.", {
      time: text("When it said so.", { format: "date-time" }),
      nodes: integer("Nodes that send flows."),
      silentNodes: list("Nodes that sent flows and are silent now, by name; the first few.", text("A node.")),
      lateNodes: list("Nodes whose flows come late, by name; the first few.", text("A node.")),
      skewedNodes: list("Nodes whose clock differs by more than two seconds, by name; the first few.", text("A node.")),
      rowsPerSecond: integer("Rows that came in a second, over the last half minute."),
      flows: integer("Different flows that are kept."),
      memoryBytes: integer("What they take."),
      since: text("When the oldest of them was counted.", { format: "date-time" }),
      merged: integer("Sums that were merged under coarser keys since the start, because there were too many."),
      unattributed: integer("Packets since the start that are in no flow."),
      shed: list(
        "What some flows have lost because they would take too much memory; sums are exact. Ports go first, then addresses, then names.",
        text("ports, addresses or names."),
      ),
    }),
  }),
  columns: [
    conditionColumn("Ready", "Whether flows are collected"),
    conditionColumn("Degraded", "Whether something is wrong"),
    sinceColumn("Ready"),
    messageColumn("Ready"),
  ],
});

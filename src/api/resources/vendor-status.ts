import { conditionColumn, conditions, messageColumn, sinceColumn } from "./conditions.ts";
import { list, object, text } from "./describe.ts";
import { defineResource } from "./resource.ts";

export const vendorStatus = defineResource({
  noun: "status",
  api: "operator",
  namespaced: false,
  description: "How one component is doing; written by the operator, read by people and procedures.",
  spec: object("Nothing to set: the operator writes only the status.", {}),
  status: object("How the component is doing.", {
    checked: list(
      "What was checked of a component that is available, and on which nodes. The operator looks at every change, and at all of it while it renews its Lease.",
      text("One check that passed."),
    ),
    conditions,
  }),
  columns: [
    conditionColumn("Available", "Whether the component works"),
    conditionColumn("Progressing", "Whether a change is being rolled out"),
    conditionColumn("Degraded", "Whether something is wrong"),
    sinceColumn("Available"),
    messageColumn("Available"),
  ],
});

import { conditionColumn, conditions, messageColumn, sinceColumn } from "./conditions.ts";
import { object } from "./describe.ts";
import { defineResource } from "./resource.ts";

export const apiServer = defineResource({
  noun: "apiServer",
  api: "operator",
  namespaced: false,
  description: "Asks for the aggregated v3 API; there is one, named default.",
  spec: object("Nothing to set: its being there is what asks for the API.", {}),
  status: object("How the API is doing.", { conditions }),
  columns: [
    conditionColumn("Ready", "Whether the API answers"),
    conditionColumn("Degraded", "Whether something is wrong"),
    sinceColumn("Ready"),
    messageColumn("Ready"),
  ],
});

import { choice, flag, object, text } from "./describe.ts";
import { AGE, defineResource } from "./resource.ts";

export const clusterInformation = defineResource({
  noun: "clusterInformation",
  api: "v3",
  namespaced: false,
  description: "What this cluster is and runs; written by the service, there is one, named default.",
  spec: object("The cluster.", {
    clusterGUID: text("Identifies the cluster for its whole life."),
    clusterType: text("How it was installed, as words joined by commas."),
    vendorVersion: text("Version the nodes run."),
    variant: choice("Edition the nodes run.", ["OpenSource"]),
    datastoreReady: flag("False while the datastore is locked, as during its migration."),
  }),
  columns: [
    { name: "Version", type: "string", jsonPath: ".spec.vendorVersion", description: "Version the nodes run" },
    { name: "Ready", type: "boolean", jsonPath: ".spec.datastoreReady", description: "Whether the datastore is open" },
    AGE,
    { name: "Type", type: "string", jsonPath: ".spec.clusterType", description: "How it was installed", priority: 1 },
    {
      name: "GUID",
      type: "string",
      jsonPath: ".spec.clusterGUID",
      description: "Identity of the cluster",
      priority: 1,
    },
  ],
});

import { DATAPLANE_SETTINGS } from "./dataplane-settings.ts";
import { object } from "./describe.ts";
import { AGE, defineResource, type ObjectOf } from "./resource.ts";

type Settings = typeof DATAPLANE_SETTINGS;
type Schemas = { readonly [Field in keyof Settings]: Settings[Field]["schema"] };

const schemas = Object.fromEntries(Object.entries(DATAPLANE_SETTINGS).map(([field, { schema }]) => [field, schema]));

const spec = object("How the node agent works.", schemas as Schemas);

export const dataplaneConfiguration = defineResource({
  noun: "dataplaneConfiguration",
  api: "v3",
  namespaced: false,
  description: "How node agents work: default is for all nodes, node.NAME for one.",
  spec,
  columns: [
    { name: "eBPF", type: "boolean", jsonPath: ".spec.bpfEnabled", description: "Whether eBPF is enabled" },
    {
      name: "ProxyCleanup",
      type: "boolean",
      jsonPath: ".spec.bpfServiceProxyIptablesCleanupEnabled",
      description: "Whether the rules of kube-proxy are removed",
    },
    AGE,
    {
      name: "VXLANPort",
      type: "integer",
      jsonPath: ".spec.vxlanPort",
      description: "Port of the overlay",
      priority: 1,
    },
  ],
});

export type DataplaneConfiguration = ObjectOf<typeof dataplaneConfiguration>;

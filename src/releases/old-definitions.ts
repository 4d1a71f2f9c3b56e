import { type Noun, vendorNames } from "../api/names.ts";
import { RESOURCES } from "../api/resources/all.ts";
import { DATAPLANE_SETTINGS, type Setting } from "../api/resources/dataplane-settings.ts";
import { type CustomResourceDefinition, customResourceDefinitions } from "../api/schema/crd.ts";
import type { Schema } from "../api/schema/schema.ts";
import { REFUSED_FIELDS } from "../api/tables/refused-fields.ts";
import type { Since } from "../api/tables/version.ts";
import { REMOVED_KINDS, type RemovedKind } from "./not-carried/kinds.ts";
import { UNCARRIED_VALUES } from "./not-carried/values.ts";
import type { OldRelease } from "./old-release.ts";

/** Kinds that came later than the oldest release we know. */
const KINDS_SINCE: Partial<Record<Noun, Since>> = {
  bgpFilter: "v3.26",
  nodeStatus: "v3.21",
  ipReservation: "v3.22",
  tier: "v3.29",
  stagedNetworkPolicy: "v3.30",
  stagedGlobalNetworkPolicy: "v3.30",
  stagedKubernetesNetworkPolicy: "v3.30",
  flowLogs: "v3.30",
  flowUI: "v3.30",
};

/** Fields that came later, by their path; lists are walked into. A path that is not here was there from the start. */
const FIELDS_SINCE: Partial<Record<Noun, Readonly<Record<string, Since>>>> = {
  installation: {
    "spec.vendorNetwork.linuxDataplane": "v3.19",
    "spec.vendorNetwork.linuxPolicySetupTimeoutSeconds": "v3.28",
    "spec.vendorNetwork.ipPools.allowedUses": "v3.21",
    "spec.vendorNetwork.ipPools.assignmentMode": "v3.30",
    "spec.vendorNetwork.serviceProxyManagement": "v3.31",
    "spec.nodeDaemonSet": "v3.24",
    "spec.kubeControllersDeployment": "v3.24",
  },
  apiServer: { "spec.apiServerDeployment": "v3.25" },
  flowLogs: { "spec.flowLogsDeployment": "v3.31" },
  flowUI: { "spec.flowUIDeployment": "v3.31" },
  dataplaneConfiguration: Object.fromEntries(
    Object.entries(DATAPLANE_SETTINGS as Record<string, Setting>).flatMap(([field, { since }]) =>
      since ? [[`spec.${field}`, since]] : [],
    ),
  ),
  kubeControllersConfiguration: {
    "spec.controllers.loadBalancer": "v3.30",
    "status.runningConfig.controllers.loadBalancer": "v3.30",
    "spec.controllers.node.hostEndpoint.createDefaultHostEndpoint": "v3.30",
    "spec.controllers.node.hostEndpoint.templates": "v3.30",
    "status.runningConfig.controllers.node.hostEndpoint.createDefaultHostEndpoint": "v3.30",
    "status.runningConfig.controllers.node.hostEndpoint.templates": "v3.30",
  },
  networkPolicy: { "spec.tier": "v3.29" },
  globalNetworkPolicy: { "spec.tier": "v3.29" },
  ipPool: {
    "spec.allowedUses": "v3.21",
    "spec.disableBGPExport": "v3.22",
    "spec.assignmentMode": "v3.30",
    "spec.namespaceSelector": "v3.31",
  },
  ipamConfiguration: { "spec.maxBlocksPerHost": "v3.20" },
};

/** Our resources as that release defined them: without the kinds and fields that came later, with those that went since. */
export function oldDefinitions(release: OldRelease): CustomResourceDefinition[] {
  const present = customResourceDefinitions();
  const kept = RESOURCES.flatMap(({ noun }, index) => {
    const since = KINDS_SINCE[noun];
    if (since && !release.hasSince(since)) return [];
    const later = Object.entries(FIELDS_SINCE[noun] ?? {}).filter(([, line]) => !release.hasSince(line));
    const gone = Object.entries(REFUSED_FIELDS[noun] ?? {}).filter(([, field]) => isIn(release, field));
    const without = withoutFields(
      present[index]!,
      later.map(([path]) => path),
    );
    const values = UNCARRIED_VALUES.filter((row) => row.noun === noun);
    const change = (schema: Schema) =>
      values.reduce(
        (changed, row) => withValues(changed, row.path.split("."), row.values ?? []),
        gone.reduce((changed, [path, field]) => withField(changed, path.split("."), field.schema), schema),
      );
    return [withSchema(without, change)];
  });
  return [...kept, ...REMOVED_KINDS.filter((kind) => isIn(release, kind)).map(definitionOf)];
}

const isIn = (release: OldRelease, { since }: { since?: Since }) => since === undefined || release.hasSince(since);

/** Of a kind that went, what it held is not described: nothing of ours writes it. */
function definitionOf({ kind, plural, group: of, namespaced }: RemovedKind): CustomResourceDefinition {
  const { group, version } = typeof of === "string" ? vendorNames.groups[of] : { group: of.name, version: of.version };
  const open: Schema = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
  // The API server asks who approved a group of its own project.
  const annotations = { "api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/network-policy-api/pull/30" };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}`, ...(group.endsWith(".k8s.io") ? { annotations } : {}) },
    spec: {
      group,
      names: { kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase(), categories: [vendorNames.dialect] },
      scope: namespaced ? "Namespaced" : "Cluster",
      versions: [
        {
          ...{ name: version, served: true, storage: true, additionalPrinterColumns: [] },
          schema: { openAPIV3Schema: { type: "object", properties: { spec: open, status: open } } },
        },
      ],
    },
  };
}

function withSchema(
  definition: CustomResourceDefinition,
  change: (schema: Schema) => Schema,
): CustomResourceDefinition {
  const versions = definition.spec.versions.map((version) => ({
    ...version,
    schema: { openAPIV3Schema: change(version.schema.openAPIV3Schema) },
  }));
  return { ...definition, spec: { ...definition.spec, versions } };
}

function withField(schema: Schema, [field = "", ...rest]: readonly string[], added: Schema): Schema {
  const inner = schema.properties?.[field];
  const next = rest.length === 0 ? added : withField(inner ?? { type: "object" }, rest, added);
  return { ...schema, properties: { ...schema.properties, [field]: next } };
}

/** Where the field has a list of values, it had these too. */
function withValues(schema: Schema, [field, ...rest]: readonly string[], values: readonly unknown[]): Schema {
  if (schema.items)
    return { ...schema, items: withValues(schema.items, [field as string, ...rest].filter(Boolean), values) };
  if (field === undefined) return schema.enum ? { ...schema, enum: [...new Set([...schema.enum, ...values])] } : schema;
  const inner = schema.properties?.[field];
  return inner ? { ...schema, properties: { ...schema.properties, [field]: withValues(inner, rest, values) } } : schema;
}

function withoutFields(definition: CustomResourceDefinition, paths: readonly string[]): CustomResourceDefinition {
  const without = withSchema(definition, (whole) =>
    paths.reduce((schema, path) => withoutField(schema, path.split(".")), whole),
  );
  const versions = without.spec.versions.map((version) => ({
    ...version,
    additionalPrinterColumns: version.additionalPrinterColumns.filter(
      ({ jsonPath }) => !paths.some((path) => jsonPath === `.${path}`),
    ),
  }));
  return { ...without, spec: { ...without.spec, versions } };
}

function withoutField(schema: Schema, [field = "", ...rest]: readonly string[]): Schema {
  if (schema.items) return { ...schema, items: withoutField(schema.items, [field, ...rest]) };
  const inner = schema.properties?.[field];
  if (!inner) return schema;
  const { [field]: _, ...others } = schema.properties ?? {};
  return { ...schema, properties: rest.length === 0 ? others : { ...others, [field]: withoutField(inner, rest) } };
}

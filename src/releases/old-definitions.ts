import type { Noun } from "../api/names.ts";
import { RESOURCES } from "../api/resources/all.ts";
import { type CustomResourceDefinition, customResourceDefinitions } from "../api/schema/crd.ts";
import type { Schema } from "../api/schema/schema.ts";
import type { OldRelease } from "./old-release.ts";

type Since = Parameters<OldRelease["hasSince"]>[0];

/** Kinds that came later than the oldest release we know. */
const KINDS_SINCE: Partial<Record<Noun, Since>> = {
  ipReservation: "v3.22",
  tier: "v3.29",
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
  },
  dataplaneConfiguration: {
    "spec.bpfPSNATPorts": "v3.20",
    "spec.bpfMapSizeConntrack": "v3.22",
    "spec.bpfMapSizeNATFrontend": "v3.22",
    "spec.bpfMapSizeNATBackend": "v3.22",
    "spec.bpfMapSizeNATAffinity": "v3.22",
    "spec.bpfMapSizeRoute": "v3.22",
    "spec.bpfMapSizeIPSets": "v3.22",
    "spec.bpfMapSizeIfState": "v3.25",
    "spec.bpfEnforceRPF": "v3.23",
    "spec.floatingIPs": "v3.24",
    "spec.bpfPolicyDebugEnabled": "v3.24",
    "spec.bpfHostConntrackBypass": "v3.24",
    "spec.bpfL3IfacePattern": "v3.25",
    "spec.healthTimeoutOverrides": "v3.25",
    "spec.bpfDSROptoutCIDRs": "v3.26",
    "spec.bpfConnectTimeLoadBalancing": "v3.27",
    "spec.bpfHostNetworkedNATWithoutCTLB": "v3.27",
    "spec.bpfExcludeCIDRsFromNAT": "v3.28",
    "spec.bpfForceTrackPacketsFromIfaces": "v3.28",
    "spec.bpfRedirectToPeer": "v3.29",
    "spec.bpfConntrackTimeouts": "v3.30",
    "spec.bpfExportBufferSizeMB": "v3.30",
    "spec.bpfJITHardening": "v3.30",
    "spec.bpfProfiling": "v3.30",
    "spec.flowLogsFlushInterval": "v3.30",
    "spec.bpfAttachType": "v3.31",
    "spec.cgroupV2Path": "v3.31",
    "spec.CgroupV2Path": "v3.31",
  },
  kubeControllersConfiguration: {
    "spec.controllers.loadBalancer": "v3.30",
    "spec.controllers.node.hostEndpoint.createDefaultHostEndpoint": "v3.30",
    "spec.controllers.node.hostEndpoint.templates": "v3.30",
    "status.runningConfig.controllers.loadBalancer": "v3.30",
    "status.runningConfig.controllers.node.hostEndpoint.createDefaultHostEndpoint": "v3.30",
    "status.runningConfig.controllers.node.hostEndpoint.templates": "v3.30",
  },
  networkPolicy: { "spec.tier": "v3.29", "spec.performanceHints": "v3.27" },
  globalNetworkPolicy: { "spec.tier": "v3.29", "spec.performanceHints": "v3.27" },
  ipPool: {
    "spec.allowedUses": "v3.21",
    "spec.disableBGPExport": "v3.22",
    "spec.assignmentMode": "v3.30",
    "spec.namespaceSelector": "v3.31",
  },
  ipamConfiguration: { "spec.maxBlocksPerHost": "v3.20" },
};

/** Our resources as that release defined them: without the kinds and fields that came later. */
export function oldDefinitions(release: OldRelease): CustomResourceDefinition[] {
  const present = customResourceDefinitions();
  return RESOURCES.flatMap(({ noun }, index) => {
    const since = KINDS_SINCE[noun];
    if (since && !release.hasSince(since)) return [];
    const later = Object.entries(FIELDS_SINCE[noun] ?? {}).filter(([, line]) => !release.hasSince(line));
    return [
      withoutFields(
        present[index]!,
        later.map(([path]) => path),
      ),
    ];
  });
}

function withoutFields(definition: CustomResourceDefinition, paths: readonly string[]): CustomResourceDefinition {
  const versions = definition.spec.versions.map((version) => ({
    ...version,
    schema: {
      openAPIV3Schema: paths.reduce(
        (schema, path) => withoutField(schema, path.split(".")),
        version.schema.openAPIV3Schema,
      ),
    },
    additionalPrinterColumns: version.additionalPrinterColumns.filter(
      ({ jsonPath }) => !paths.some((path) => jsonPath === `.${path}`),
    ),
  }));
  return { ...definition, spec: { ...definition.spec, versions } };
}

function withoutField(schema: Schema, [field = "", ...rest]: readonly string[]): Schema {
  if (schema.items) return { ...schema, items: withoutField(schema.items, [field, ...rest]) };
  const inner = schema.properties?.[field];
  if (!inner) return schema;
  const { [field]: _, ...others } = schema.properties ?? {};
  return { ...schema, properties: rest.length === 0 ? others : { ...others, [field]: withoutField(inner, rest) } };
}

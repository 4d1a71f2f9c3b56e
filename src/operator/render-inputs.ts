import { vendorNames } from "../api/names.ts";
import { groupVersion, type KubeObject, type OwnerReference } from "../api/object.ts";
import type { FlowLogsSpec } from "../api/resources/flow-logs.ts";
import type { InstallationSpec } from "../api/resources/installation.ts";
import { OVERRIDES_FIELD } from "../api/resources/workload-overrides.ts";
import type { ClusterKind } from "../api/tables/cluster-kinds.ts";
import { planCertificates } from "./certificates.ts";
import { apiEndpoint } from "./effective.ts";
import { errors } from "./errors.ts";
import { type Observed, theOne } from "./observed.ts";
import { isEbpfInUse, linuxNodes } from "./plan-dataplane.ts";
import type { Component, RenderInputs } from "./render/inputs.ts";
import { ownLabels } from "./render/metadata.ts";

/** Everything rendering one component depends on, and the Secrets that go with it. */
export interface Prepared {
  inputs: RenderInputs;
  secrets: KubeObject[];
}

export function prepareRendering(
  observed: Observed,
  effective: { kind: ClusterKind; spec: InstallationSpec },
  component: Component,
): Prepared {
  const { spec, kind } = effective;
  const owner = ownerOf(observed);
  const bpf = spec.vendorNetwork?.linuxDataplane === "BPF" || isEbpfInUse(observed);
  const certificates = planCertificates(
    { secrets: observed.secrets, namespace: observed.self.namespace, now: observed.now, owner },
    component,
  );
  const dataplane = theOne(observed.dataplaneConfigurations)?.spec;
  const cgroupV2Path = dataplane?.cgroupV2Path ?? dataplane?.CgroupV2Path;
  const notifications = theOne(observed.flowUIs)?.spec?.["notifications"];
  const { disk, export: { otlp } = {} } = (theOne(observed.flowLogs)?.spec as FlowLogsSpec | undefined) ?? {};
  const overrides = overridesIn(observed);
  const pullSecrets = (spec.imagePullSecrets ?? []).map(({ name }) => name);
  return {
    secrets: [...certificates.secrets, ...(component === "network" ? copies(observed, pullSecrets, owner) : [])],
    inputs: {
      version: observed.self.version,
      kind,
      installation: spec,
      names: vendorNames,
      apiEndpoint: apiEndpoint(observed, kind, bpf),
      dns: dnsOf(observed),
      pullSecrets,
      certificates: certificates.refs,
      caBundle: certificates.bundle,
      caHash: certificates.bundleHash,
      owner,
      bpf,
      nodes: { linux: linuxNodes(observed).length },
      ...(cgroupV2Path ? { cgroupV2Path } : {}),
      ...(dataplane?.healthPort ? { healthPort: dataplane.healthPort } : {}),
      ...(dataplane?.policySyncPathPrefix ? { policySyncPathPrefix: dataplane.policySyncPathPrefix } : {}),
      ...(Object.keys(overrides).length > 0 ? { overrides } : {}),
      ...(otlp ? { flowExport: otlp } : {}),
      ...(disk ? { flowDisk: disk } : {}),
      ...(notifications === "Enabled" || notifications === "Disabled" ? { uiNotifications: notifications } : {}),
    },
  };
}

function overridesIn({ apiServers, flowLogs, flowUIs }: Observed): NonNullable<RenderInputs["overrides"]> {
  const given = {
    apiServer: theOne(apiServers)?.spec?.[OVERRIDES_FIELD.apiServer],
    flowLogs: theOne(flowLogs)?.spec?.[OVERRIDES_FIELD.flowLogs],
    flowUI: theOne(flowUIs)?.spec?.[OVERRIDES_FIELD.flowUI],
  };
  return Object.fromEntries(Object.entries(given).filter(([, overrides]) => overrides));
}

/** The resource that asked for a component. */
export function ownerOf(observed: Observed): (component: Component) => OwnerReference | undefined {
  const asked: Record<Component, readonly KubeObject[]> = {
    network: observed.installations,
    ippools: observed.installations,
    apiserver: observed.apiServers,
    "flow-logs": observed.flowLogs,
    "flow-ui": observed.flowUIs,
  };
  return (component) => {
    const object = theOne(asked[component]);
    if (!object?.metadata.uid) return undefined;
    const { name, uid } = object.metadata;
    return { apiVersion: groupVersion(vendorNames.groups.operator), kind: object.kind, name, uid };
  };
}

/** As the operator itself finds names, so must the agents: on some clouds nothing else finds the API server. */
function dnsOf({ self }: Observed): RenderInputs["dns"] {
  const { dnsPolicy, dnsConfig } = self.deployment?.spec?.template?.spec ?? {};
  if (dnsPolicy === undefined && dnsConfig === undefined) return undefined;
  return { ...(dnsPolicy ? { policy: dnsPolicy } : {}), ...(dnsConfig ? { config: dnsConfig } : {}) };
}

function copies(observed: Observed, names: readonly string[], owner: RenderInputs["owner"]): KubeObject[] {
  return names.map((name) => {
    const { namespace } = observed.self;
    const secret = observed.secrets.find(({ metadata }) => metadata.namespace === namespace && metadata.name === name);
    if (!secret) throw errors.PULL_SECRET_MISSING(namespace, name);
    const reference = owner("network");
    return {
      apiVersion: "v1",
      kind: "Secret",
      metadata: {
        name,
        namespace: vendorNames.namespaces.system,
        labels: ownLabels("network"),
        ...(reference ? { ownerReferences: [{ ...reference, blockOwnerDeletion: false }] } : {}),
      },
      type: secret["type"],
      data: secret["data"],
    };
  });
}

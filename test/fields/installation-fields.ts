import type { FlowLogsSpec } from "../../src/api/resources/flow-logs.ts";
import type { InstallationSpec } from "../../src/api/resources/installation.ts";
import { type DeploymentOverrides, OVERRIDES_FIELD } from "../../src/api/resources/workload-overrides.ts";
import type { Component } from "../../src/operator/render/inputs.ts";
import { renderComponent } from "../../src/operator/render/render-component.ts";
import { inputsFor } from "../../src/operator/render/testing-inputs.fixture.ts";
import type { KindTable, Shown } from "./field-table.ts";

/** Installation and the kinds beside it: the objects that the operator applies. */
const COMPONENTS: readonly Component[] = ["network", "ippools", "apiserver", "flow-logs", "flow-ui"];

const rendered = (spec: InstallationSpec) => {
  const inputs = inputsFor({ spec, ...(spec.clusterKind ? { kind: spec.clusterKind } : {}) });
  return COMPONENTS.map((component) => renderComponent(component, inputs));
};
const network = (set: object, base: object = {}): Shown => ({
  ...{ base: { variant: "OpenSource", vendorNetwork: base }, set: { vendorNetwork: set } },
});
const POOL = { cidr: "10.1.0.0/16" };
const pool = (set: object): Shown => network({ ipPools: [{ ...POOL, ...set }] }, { ipPools: [POOL] });

const METHODS = {
  orchestrator: "NodeInternalIP",
  interface: "eth1",
  skipInterface: "docker.*",
  canReach: "192.0.2.9",
  cidrs: ["192.0.2.0/24"],
};
const autodetection = (field: string) =>
  Object.fromEntries(
    Object.entries(METHODS).map(([method, value]) => [
      `vendorNetwork.${field}.${method}`,
      network({ [field]: { [method]: value } }, { [field]: {} }),
    ]),
  );
const resources = (componentName: string, more: object) => [{ componentName, resourceRequirements: more }];
const ONE_CPU = { requests: { cpu: "1" } };

interface FlowUISpec {
  notifications?: "Enabled" | "Disabled";
  flowUIDeployment?: DeploymentOverrides;
}

/** Fields below `field` that change a workload; `lists` are those of its containers. */
function overrides(field: string, base: object, lists: Readonly<Record<string, readonly string[]>>, more: object = {}) {
  const set = (spec: object): Shown => ({ base: { ...base, [field]: {} }, set: { [field]: spec } });
  const pods = (spec: object) => ({ spec: { template: { spec } } });
  const container = (list: string, [name, other]: readonly string[]) => {
    const between = (from: object, to: object): Shown => ({
      base: { ...base, [field]: pods({ [list]: [from] }) },
      set: { [field]: pods({ [list]: [to] }) },
    });
    const path = `spec.template.spec.${list}`;
    return {
      [`${path}.name`]: other
        ? between({ name, resources: ONE_CPU }, { name: other, resources: ONE_CPU })
        : { only: "the Deployment has one container" },
      [`${path}.resources.requests`]: between({ name, resources: {} }, { name, resources: ONE_CPU }),
      [`${path}.resources.limits`]: between({ name, resources: {} }, { name, resources: { limits: { cpu: "1" } } }),
    };
  };
  const fields: Record<string, Shown> = {
    "metadata.labels": set({ metadata: { labels: { team: "network" } } }),
    "metadata.annotations": set({ metadata: { annotations: { team: "network" } } }),
    "spec.minReadySeconds": set({ spec: { minReadySeconds: 5 } }),
    "spec.template.metadata.labels": set({ spec: { template: { metadata: { labels: { team: "network" } } } } }),
    "spec.template.metadata.annotations": set({ spec: { template: { metadata: { annotations: { scrape: "yes" } } } } }),
    "spec.template.spec.nodeSelector": set(pods({ nodeSelector: { disk: "ssd" } })),
    "spec.template.spec.tolerations": set(pods({ tolerations: [{ key: "dedicated", operator: "Exists" }] })),
    "spec.template.spec.priorityClassName": set(pods({ priorityClassName: "ours" })),
    "spec.template.spec.affinity": set(pods({ affinity: { podAffinity: {} } })),
    ...Object.assign({}, ...Object.entries(lists).map(([list, names]) => container(list, names))),
    ...Object.fromEntries(Object.entries(more).map(([path, spec]) => [path, set(spec)])),
  };
  return Object.fromEntries(Object.entries(fields).map(([path, shown]) => [`${field}.${path}`, shown]));
}

const CONSTRAINT = { maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "ScheduleAnyway" };
const SPREAD = {
  "spec.template.spec.topologySpreadConstraints": {
    spec: { template: { spec: { topologySpreadConstraints: [CONSTRAINT] } } },
  },
};
const ROLL_OUT = {
  "spec.strategy.rollingUpdate.maxSurge": { spec: { strategy: { rollingUpdate: { maxSurge: 2 } } } },
  "spec.strategy.rollingUpdate.maxUnavailable": { spec: { strategy: { rollingUpdate: { maxUnavailable: 0 } } } },
};

const OTLP = { endpoint: "https://collector:4318", headersSecret: { name: "collector" } };
const otlp = (set: object) => ({ base: { export: { otlp: OTLP } }, set: { export: { otlp: set } } });

const disk = (set: object) => ({ base: { disk: DISK }, set: { disk: { ...DISK, ...set } } });
const DISK = { persistentVolumeClaim: "flows" };

/** A part with a resource of its own, by the field of that resource. */
const part = (component: Component, noun: "apiServer" | "flowLogs" | "flowUI") => (spec: Record<string, unknown>) =>
  renderComponent(component, inputsFor({ more: { overrides: { [noun]: spec[OVERRIDES_FIELD[noun]] ?? {} } } }));

export const INSTALLATION_TABLES: readonly KindTable[] = [
  {
    ...{ noun: "installation", base: { variant: "OpenSource" }, seenIn: rendered },
    fields: {
      variant: { only: "the only edition there is" },
      registry: { set: { registry: "registry.example.test" } },
      imagePath: { set: { imagePath: "mirror" } },
      imagePrefix: { set: { imagePrefix: "own-" } },
      "imagePullSecrets.name": { scenario: "test/operator/status-faults.test.ts" },
      clusterKind: { set: { clusterKind: "openshift" } },
      "cni.type": { set: { cni: { type: "PointToPoint" } } },
      "cni.ipam.type": { set: { cni: { ipam: { type: "HostLocal" } } } },
      "cni.binDir": { set: { cni: { binDir: "/var/cni/bin" } } },
      "cni.confDir": { set: { cni: { confDir: "/var/cni/net.d" } } },
      "vendorNetwork.linuxDataplane": { scenario: "src/operator/switch.test.ts" },
      "vendorNetwork.hostPorts.portMapping": network({ hostPorts: { portMapping: "Disabled" } }),
      "vendorNetwork.flexVolumePath": {
        base: { variant: "OpenSource", clusterKind: "eks" },
        set: { vendorNetwork: { flexVolumePath: "/var/lib/kubelet/plugins" } },
      },
      "vendorNetwork.ipPools.name": pool({ name: "pods" }),
      "vendorNetwork.ipPools.cidr": network({ ipPools: [{ cidr: "10.2.0.0/16" }] }, { ipPools: [POOL] }),
      "vendorNetwork.ipPools.encapsulation": pool({ encapsulation: "None" }),
      "vendorNetwork.ipPools.blockSize": pool({ blockSize: 28 }),
      "vendorNetwork.ipPools.natOutgoing": pool({ natOutgoing: "Disabled" }),
      "vendorNetwork.ipPools.nodeSelector": pool({ nodeSelector: "has(pods)" }),
      "vendorNetwork.ipPools.allowedUses": pool({ allowedUses: ["Workload"] }),
      "vendorNetwork.ipPools.assignmentMode": pool({ assignmentMode: "Manual" }),
      "vendorNetwork.ipPools.disableNewAllocations": pool({ disableNewAllocations: true }),
      "vendorNetwork.mtu": network({ mtu: 1400 }),
      ...autodetection("nodeAddressAutodetectionV4"),
      ...autodetection("nodeAddressAutodetectionV6"),
      "vendorNetwork.bgp": network({ bgp: "Enabled" }),
      "vendorNetwork.containerIPForwarding": network({ containerIPForwarding: "Enabled" }),
      "vendorNetwork.serviceProxyManagement": { scenario: "src/operator/switch.test.ts" },
      "vendorNetwork.linuxPolicySetupTimeoutSeconds": network({ linuxPolicySetupTimeoutSeconds: 7 }),
      "nodeUpdateStrategy.type": { set: { nodeUpdateStrategy: { type: "OnDelete" } } },
      "nodeUpdateStrategy.rollingUpdate.maxUnavailable": {
        set: { nodeUpdateStrategy: { rollingUpdate: { maxUnavailable: "10%" } } },
      },
      controlPlaneReplicas: { set: { controlPlaneReplicas: 3 } },
      controlPlaneNodeSelector: { set: { controlPlaneNodeSelector: { role: "control" } } },
      controlPlaneTolerations: { set: { controlPlaneTolerations: [{ key: "dedicated", operator: "Exists" }] } },
      nodeMetricsPort: { set: { nodeMetricsPort: 9091 } },
      "componentResources.componentName": {
        base: { variant: "OpenSource", componentResources: resources("Node", ONE_CPU) },
        set: { componentResources: resources("KubeControllers", ONE_CPU) },
      },
      "componentResources.resourceRequirements.requests": {
        base: { variant: "OpenSource", componentResources: resources("Node", {}) },
        set: { componentResources: resources("Node", ONE_CPU) },
      },
      "componentResources.resourceRequirements.limits": {
        base: { variant: "OpenSource", componentResources: resources("Node", {}) },
        set: { componentResources: resources("Node", { limits: { cpu: "1" } }) },
      },
      ...overrides(
        "nodeDaemonSet",
        // With BGP, and so with its container.
        { variant: "OpenSource", vendorNetwork: { linuxDataplane: "BPF", bgp: "Enabled" } },
        { containers: ["vendor-node", "bgp"], initContainers: ["cni-install", "node-init"] },
      ),
      ...overrides(
        "kubeControllersDeployment",
        { variant: "OpenSource" },
        { containers: ["vendor-kube-controllers"] },
        { ...SPREAD, ...ROLL_OUT },
      ),
    },
  },
  {
    ...{ noun: "apiServer", seenIn: part("apiserver", "apiServer") },
    fields: overrides("apiServerDeployment", {}, { containers: ["vendor-apiserver"] }, { ...SPREAD, ...ROLL_OUT }),
  },
  {
    noun: "flowLogs",
    seenIn: ({ disk: flowDisk, export: { otlp } = {}, flowLogsDeployment = {} }: FlowLogsSpec) => {
      const exporting = { ...(otlp?.endpoint && { flowExport: otlp }), ...(flowDisk && { flowDisk }) };
      return renderComponent(
        "flow-logs",
        inputsFor({ more: { overrides: { flowLogs: flowLogsDeployment }, ...exporting } }),
      );
    },
    fields: {
      "export.otlp.endpoint": otlp({ endpoint: "http://collector:4318" }),
      "export.otlp.headersSecret.name": otlp({ headersSecret: { name: "other" } }),
      "export.otlp.headersSecret.key": otlp({ headersSecret: { key: "other" } }),
      "export.otlp.certificateAuthority": otlp({ certificateAuthority: "-----BEGIN CERTIFICATE-----" }),
      "disk.persistentVolumeClaim": disk({ persistentVolumeClaim: "other" }),
      "disk.days": disk({ days: 30 }),
      "disk.gibibytes": disk({ gibibytes: 100 }),
      ...overrides("flowLogsDeployment", {}, { containers: ["vendor-flow-logs"] }, SPREAD),
    },
  },
  {
    noun: "flowUI",
    seenIn: ({ notifications, flowUIDeployment = {} }: FlowUISpec) =>
      renderComponent(
        "flow-ui",
        inputsFor({
          more: {
            overrides: { flowUI: flowUIDeployment },
            ...(notifications ? { uiNotifications: notifications } : {}),
          },
        }),
      ),
    fields: {
      notifications: { set: { notifications: "Disabled" } },
      ...overrides("flowUIDeployment", {}, { containers: ["vendor-flow-ui"] }, SPREAD),
    },
  },
];

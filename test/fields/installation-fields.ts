import type { InstallationSpec } from "../../src/api/resources/installation.ts";
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
    },
  },
  {
    noun: "flowUI",
    seenIn: ({ notifications }: { notifications?: "Enabled" | "Disabled" }) =>
      renderComponent("flow-ui", inputsFor({ more: notifications ? { uiNotifications: notifications } : {} })),
    fields: { notifications: { set: { notifications: "Disabled" } } },
  },
];

import { describe, expect, it } from "vitest";
import { calicoNames, vendorNames } from "./names.ts";

describe("our own names", () => {
  it("are the specification's words letter for letter", () => {
    expect(vendorNames).toMatchObject({
      namespaces: { operator: "vendor-operator" },
      endpointMap: {
        name: "orchestrator-services-endpoint",
        hostKey: "ORCHESTRATOR_SERVICE_HOST",
        portKey: "ORCHESTRATOR_SERVICE_PORT",
      },
      fields: {
        linuxDataplane: "spec.vendorNetwork.linuxDataplane",
        hostPorts: "spec.vendorNetwork.hostPorts",
        flexVolumePath: "spec.vendorNetwork.flexVolumePath",
        iptablesCleanup: "spec.bpfServiceProxyIptablesCleanupEnabled",
        autoCreateHostEndpoints: "spec.controllers.node.hostEndpoint.autoCreate",
      },
      labels: {
        createdBy: { key: "vendor.io/created-by", value: "vendor-kube-controllers" },
        parkServiceProxy: { key: "non-vendor", value: "true" },
      },
      hostEndpoints: { suffix: "-auto-hep", temporaryUpgradePolicy: "allow-all-upgrade" },
      manifests: { operatorCrds: "operator-crds.yaml", customResources: "custom-resources.yaml" },
      ready: { apiDatastore: "2/2", etcdDatastore: "1/2" },
    });
  });

  it("carry nobody's brand", () => {
    expect(JSON.stringify(vendorNames)).not.toMatch(/calico|tigera|felix|goldmane|whisker|canal/i);
  });
});

describe("the public system's names", () => {
  it("say the same things in its words", () => {
    expect(calicoNames).toMatchObject({
      groups: { operator: { group: "operator.tigera.io" }, served: { group: "projectcalico.org", version: "v3" } },
      namespaces: { operator: "tigera-operator", system: "calico-system" },
      endpointMap: { name: "kubernetes-services-endpoint", hostKey: "KUBERNETES_SERVICE_HOST" },
      kinds: { dataplaneConfiguration: { kind: "FelixConfiguration" }, status: { kind: "TigeraStatus" } },
      labels: { parkServiceProxy: { key: "non-calico" }, createdBy: { value: "calico-kube-controllers" } },
      fields: {
        linuxDataplane: "spec.calicoNetwork.linuxDataplane",
        iptablesCleanup: "spec.bpfKubeProxyIptablesCleanupEnabled",
      },
      statuses: { network: "calico", flowLogs: "goldmane", flowUI: "whisker" },
      tool: "calicoctl",
    });
    expect(calicoNames.manifests.sidecarInjector("1.15")).toBe("alp/istio-inject-configmap-1.15.yaml");
  });
});

import { vendorNames } from "../../api/names.ts";
import type { InstallationSpec } from "../../api/resources/installation.ts";
import { CLUSTER_KINDS, type ClusterKind } from "../../api/tables/cluster-kinds.ts";
import { effectiveInstallation } from "../../api/tables/defaults.ts";
import type { Component, RenderInputs } from "./inputs.ts";

export const KINDS = Object.keys(CLUSTER_KINDS) as ClusterKind[];
export const COMPONENTS: readonly Component[] = ["network", "ippools", "apiserver", "flow-logs", "flow-ui"];

/** The address each kind's endpoint map has, as the specification's rules say. */
const ENDPOINTS: Record<ClusterKind, { host: string; port: string } | undefined> = {
  generic: { host: "api.example.test", port: "6443" },
  iac: { host: "api.internal.example.test", port: "443" },
  openshift: undefined,
  aks: { host: "example.aks.test", port: "443" },
  eks: { host: "example.eks.test", port: "443" },
  mke: { host: "proxy.local", port: "6444" },
};

/** Whose CNI plugin connects pods on a kind of cluster people have. */
const FOREIGN: Partial<Record<ClusterKind, "AmazonVPC" | "AzureVNET">> = { eks: "AmazonVPC", aks: "AzureVNET" };

interface Asked {
  kind?: ClusterKind;
  bpf?: boolean;
  spec?: Partial<InstallationSpec>;
  more?: Partial<RenderInputs>;
}

/** Inputs as the operator gathers them on an ordinary cluster of a kind. */
export function inputsFor({ kind = "generic", bpf = false, spec = {}, more = {} }: Asked = {}): RenderInputs {
  const type = FOREIGN[kind];
  const written: InstallationSpec = {
    variant: "OpenSource",
    ...(type ? { cni: { type } } : {}),
    ...spec,
    vendorNetwork: { linuxDataplane: bpf ? "BPF" : "Nftables", ...spec.vendorNetwork },
  };
  const certificate = (name: string) => ({ secretName: name, hash: `hash-of-${name}` });
  return {
    version: "v3.31.3",
    kind,
    installation: effectiveInstallation(written, { kind }),
    names: vendorNames,
    apiEndpoint: ENDPOINTS[kind],
    dns: { policy: "Default" },
    pullSecrets: [],
    certificates: {
      node: certificate("vendor-node-certs"),
      apiServer: certificate("vendor-apiserver-certs"),
      kubeControllers: certificate("vendor-kube-controllers-certs"),
      flowLogs: certificate("vendor-flow-logs-certs"),
    },
    caBundle: "-----BEGIN CERTIFICATE-----\nthe authority\n-----END CERTIFICATE-----\n",
    caHash: "hash-of-the-authority",
    owner: (component) => ({
      apiVersion: "operator.vendor.io/v1",
      kind:
        { apiserver: "APIServer", "flow-logs": "FlowLogs", "flow-ui": "FlowUI" }[component as string] ?? "Installation",
      name: "default",
      uid: "00000000-0000-4000-8000-000000000001",
      controller: true,
    }),
    bpf,
    nodes: { linux: 3 },
    ...more,
  };
}

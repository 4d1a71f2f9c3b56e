import { stringify } from "yaml";
import type { KubeObject } from "../../api/object.ts";
import type { PlatformProfile, PlatformProfileOptions } from "../platform-profile.ts";
import { addOnManager, addOnManifests, RECONCILED } from "./add-on-manager.ts";
import { dnsObjects } from "./dns-add-on.ts";
import { AKS_IMAGES } from "./node-images.ts";
import { type PlannedNode, planNodes } from "./node-plan.ts";
import { serverNamesFor } from "./server-names.ts";
import { proxyOf, serviceProxyObjects } from "./service-proxy-add-on.ts";
import { systemNamespaces } from "./system-namespaces.ts";

const SERVICE_CIDRS = ["10.0.0.0/16", "fd12:3456:789a:1::/108"];
const POD_CIDRS = ["10.244.0.0/16", "fd12:3456:789a::/56"];
const REGION = "westeurope";

/** The service with an add-on manager: what is done to the service proxy by hand does not last. */
export const aks: PlatformProfile = {
  kind: "aks",
  serviceCidrs: SERVICE_CIDRS,
  podCidrs: POD_CIDRS,
  // No "none": the add-on manager would bring the proxy back.
  proxies: ["iptables", "ipvs", "nftables"],
  endpoint,
  serverNames: (options) => serverNamesFor(options, SERVICE_CIDRS, [endpoint(options).host]),
  nodes: (options) =>
    planNodes(options, {
      podCidrs: POD_CIDRS,
      nodeCidrs: ["10.224.0.0/16", "fd12:224::/64"],
      images: AKS_IMAGES,
      zones: ["1", "2", "3"].map((number) => `${REGION}-${number}`),
      controlPlane: "hidden",
      describe: (node) => {
        const name = nodeName(node);
        return { name, providerID: providerId(options, node, name), labels: nodeLabels(options, node) };
      },
    }),
  objects(options) {
    const { host, port } = endpoint(options);
    const mode = proxyOf(aks, options);
    const addOn = { server: `https://${host}:${port}`, clusterCidr: POD_CIDRS[0] as string };
    const proxy =
      mode === "none" ? [] : serviceProxyObjects({ ...addOn, mode, settings: { in: "flags" }, labels: RECONCILED });
    return [
      ...systemNamespaces(),
      clusterInfo(options),
      addOnManifests(proxy),
      ...proxy,
      ...dnsObjects({ serviceCidr: SERVICE_CIDRS[0] as string, options, labels: RECONCILED }),
    ];
  },
  behaviours: [addOnManager],
};

function endpoint({ name }: PlatformProfileOptions): { host: string; port: number } {
  return { host: `${name}-dns-7c1d2f3a.hcp.${REGION}.azmk8s.internal`, port: 443 };
}

/** The address the cluster-info command prints, readable by any user. */
function clusterInfo(options: PlatformProfileOptions): KubeObject {
  const { host, port } = endpoint(options);
  const kubeconfig = stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "", cluster: { server: `https://${host}:${port}` } }],
  });
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "cluster-info", namespace: "kube-public" },
    data: { kubeconfig },
  };
}

function nodeName({ index, image }: PlannedNode): string {
  return image.operatingSystem === "windows"
    ? `akswin${index}`
    : `aks-nodepool1-31718369-vmss${index.toString(36).padStart(6, "0")}`;
}

function providerId({ name }: PlatformProfileOptions, { index }: PlannedNode, node: string): string {
  const group = `mc_${name}_${name}_${REGION}`;
  const set = node.replace(/vmss.*$/, "vmss");
  return `azure:///subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/${group}/providers/Microsoft.Compute/virtualMachineScaleSets/${set}/virtualMachines/${index}`;
}

function nodeLabels({ name }: PlatformProfileOptions, { image }: PlannedNode): Record<string, string> {
  return {
    agentpool: "nodepool1",
    "kubernetes.azure.com/agentpool": "nodepool1",
    "kubernetes.azure.com/cluster": `MC_${name}_${name}_${REGION}`,
    "kubernetes.azure.com/mode": "system",
    "node.kubernetes.io/instance-type": image.architecture === "arm64" ? "Standard_D4ps_v5" : "Standard_D4s_v5",
  };
}

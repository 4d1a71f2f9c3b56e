import { stringify } from "yaml";
import type { KubeObject } from "../../api/object.ts";
import type { PlatformProfile, PlatformProfileOptions } from "../platform-profile.ts";
import { dnsObjects } from "./dns-add-on.ts";
import { SELF_MANAGED_IMAGES } from "./node-images.ts";
import { controlPlaneTaints, planNodes, roleLabels } from "./node-plan.ts";
import { serverNamesFor } from "./server-names.ts";
import { KUBERNETES_VERSION, proxyOf, serviceProxyObjects } from "./service-proxy-add-on.ts";
import { KUBE_SYSTEM, systemNamespaces } from "./system-namespaces.ts";

const SERVICE_CIDRS = ["10.96.0.0/12", "fd00:10:96::/112"];
const POD_CIDRS = ["10.244.0.0/16", "fd00:10:244::/56"];

/** Self-managed, as the bootstrap tool leaves it: the proxy is a daemon set that stays as it is patched. */
export const generic: PlatformProfile = {
  kind: "generic",
  serviceCidrs: SERVICE_CIDRS,
  podCidrs: POD_CIDRS,
  proxies: ["iptables", "nftables", "ipvs", "none"],
  endpoint,
  serverNames: (options) => serverNamesFor(options, SERVICE_CIDRS, [endpoint(options).host, controlPlaneName(options)]),
  nodes: (options) =>
    planNodes(options, {
      podCidrs: POD_CIDRS,
      nodeCidrs: ["172.18.0.0/16", "fd00:172:18::/64"],
      images: SELF_MANAGED_IMAGES,
      zones: ["rack-1", "rack-2"],
      controlPlane: "shown",
      describe: (node) => ({
        name: node.role === "control-plane" ? controlPlaneName(options) : `${options.name}-worker-${node.index}`,
        labels: roleLabels(node),
        taints: controlPlaneTaints(node, options),
      }),
    }),
  objects(options) {
    const { host, port } = endpoint(options);
    const mode = proxyOf(generic, options);
    const settings = { in: "configMap", name: "kube-proxy", key: "config.conf" } as const;
    const server = `https://${host}:${port}`;
    return [
      ...systemNamespaces(),
      bootstrapToolConfiguration(options),
      ...(mode === "none" ? [] : serviceProxyObjects({ mode, server, clusterCidr: clusterCidr(options), settings })),
      ...dnsObjects({ serviceCidr: SERVICE_CIDRS[0] as string, options }),
    ];
  },
  behaviours: [],
};

/** A name in front of however many API servers there are, so that the address stays when they change. */
function endpoint({ name, apiAddress }: PlatformProfileOptions): { host: string; port: number } {
  return { host: `api.${name}.internal`, port: apiAddress.port };
}

function controlPlaneName({ name }: PlatformProfileOptions): string {
  return `${name}-control-plane`;
}

function clusterCidr({ dualStack }: PlatformProfileOptions): string {
  return POD_CIDRS.slice(0, dualStack ? 2 : 1).join(",");
}

function bootstrapToolConfiguration(options: PlatformProfileOptions): KubeObject {
  const { host, port } = endpoint(options);
  const configuration = stringify({
    apiVersion: "kubeadm.k8s.io/v1beta4",
    kind: "ClusterConfiguration",
    clusterName: options.name,
    controlPlaneEndpoint: `${host}:${port}`,
    kubernetesVersion: KUBERNETES_VERSION,
    networking: {
      dnsDomain: "cluster.local",
      podSubnet: clusterCidr(options),
      serviceSubnet: SERVICE_CIDRS.slice(0, options.dualStack ? 2 : 1).join(","),
    },
  });
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "kubeadm-config", namespace: KUBE_SYSTEM },
    data: { ClusterConfiguration: configuration },
  };
}

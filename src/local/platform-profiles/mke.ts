import type { KubeObject } from "../../api/object.ts";
import type { PlatformProfile, PlatformProfileOptions } from "../platform-profile.ts";
import { dnsObjects } from "./dns-add-on.ts";
import { CONTAINER_PLATFORM_IMAGES } from "./node-images.ts";
import { controlPlaneTaints, planNodes, roleLabels } from "./node-plan.ts";
import { serverNamesFor } from "./server-names.ts";
import { proxyOf, serviceProxyObjects } from "./service-proxy-add-on.ts";
import { KUBE_SYSTEM, systemNamespaces } from "./system-namespaces.ts";

const SERVICE_CIDRS = ["10.96.0.0/16", "fd00:10:96::/112"];
const POD_CIDRS = ["192.168.0.0/16", "fd00:192:168::/56"];
const ENDPOINT = { host: "proxy.local", port: 6444 };
/** The platform's other orchestrator holds this port on every node, so the overlay of pods must take another. */
const SWARM_VXLAN_PORT = 4789;

/** The container platform: a reverse proxy to the API server on each node, and a service proxy chosen when it is installed. */
export const mke: PlatformProfile = {
  kind: "mke",
  serviceCidrs: SERVICE_CIDRS,
  podCidrs: POD_CIDRS,
  proxies: ["iptables", "ipvs", "nftables", "none"],
  endpoint: () => ENDPOINT,
  serverNames: (options) => serverNamesFor(options, SERVICE_CIDRS, [ENDPOINT.host]),
  nodes: (options) =>
    planNodes(options, {
      podCidrs: POD_CIDRS,
      nodeCidrs: ["172.31.0.0/16", "fd00:172:31::/64"],
      images: CONTAINER_PLATFORM_IMAGES,
      zones: ["rack-1", "rack-2"],
      controlPlane: "shown",
      describe: (node) => {
        const manager = node.role === "control-plane";
        return {
          name: `${options.name}-${manager ? "manager" : "worker"}-${node.index}`,
          labels: {
            ...roleLabels(node),
            ...(manager ? { "node-role.kubernetes.io/master": "" } : {}),
            "com.docker.ucp.collection": "shared",
            "com.docker.ucp.collection.root": "true",
            "com.docker.ucp.orchestrator.kubernetes": "true",
            "com.docker.ucp.orchestrator.swarm": "true",
          },
          annotations: { "local.vendor.io/ports-in-use": `${SWARM_VXLAN_PORT}/UDP` },
          taints: controlPlaneTaints(node, options),
        };
      },
    }),
  objects(options) {
    const mode = proxyOf(mke, options);
    const settings = { in: "configMap", name: "kube-proxy", key: "config.conf" } as const;
    const server = `https://${ENDPOINT.host}:${ENDPOINT.port}`;
    const clusterCidr = POD_CIDRS[0] as string;
    return [
      ...systemNamespaces(),
      platformConfiguration(mode, options),
      ...(mode === "none" ? [] : serviceProxyObjects({ mode, server, clusterCidr, settings })),
      ...dnsObjects({ serviceCidr: SERVICE_CIDRS[0] as string, options }),
    ];
  },
  behaviours: [],
};

/** What the platform was installed with. Nothing reads it again: the proxy cannot be turned off later. */
function platformConfiguration(mode: string, { name }: PlatformProfileOptions): KubeObject {
  const disabled = mode === "none";
  const toml = [
    "[cluster_config]",
    `  cluster_name = "${name}"`,
    `  kube_proxy_mode = "${disabled ? "disabled" : mode}"`,
    `  kube_default_drop_masq_bits = ${disabled}`,
    `  pod_cidr = "${POD_CIDRS[0]}"`,
    `  service_cluster_ip_range = "${SERVICE_CIDRS[0]}"`,
    `  swarm_data_path_port = ${SWARM_VXLAN_PORT}`,
    `  kubernetes_api_proxy = "${ENDPOINT.host}:${ENDPOINT.port}"`,
    "",
  ].join("\n");
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "com.docker.ucp.config", namespace: KUBE_SYSTEM },
    data: { "ucp-config.toml": toml },
  };
}

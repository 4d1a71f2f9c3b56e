import { LINK_LOCAL_DNS } from "../../api/tables/cluster-kinds.ts";
import type { PlatformProfile, PlatformProfileOptions } from "../platform-profile.ts";
import { type ClusterConfiguration, printClusterConfiguration } from "./cluster-configuration.ts";
import { CONFIGURATION, CONFIGURATION_KEY, clusterRollout, proxyObjects } from "./cluster-rollout.ts";
import { dnsObjects } from "./dns-add-on.ts";
import { CLUSTER_TOOL_IMAGES } from "./node-images.ts";
import { controlPlaneTaints, type PlannedNode, planNodes, roleLabels } from "./node-plan.ts";
import { serverNamesFor } from "./server-names.ts";
import { KUBERNETES_VERSION, proxyOf } from "./service-proxy-add-on.ts";
import { systemNamespaces } from "./system-namespaces.ts";

const SERVICE_CIDRS = ["100.64.0.0/13", "fd40:64::/108"];
const POD_CIDRS = ["100.96.0.0/11", "fd40:96::/56"];
const REGION = "eu-central-1";

/** Made by an infrastructure-as-code tool in an AWS-like cloud: the tool's configuration decides, when it is rolled out. */
export const iac: PlatformProfile = {
  kind: "iac",
  serviceCidrs: SERVICE_CIDRS,
  podCidrs: POD_CIDRS,
  proxies: ["iptables", "ipvs", "nftables", "none"],
  endpoint,
  serverNames: (options) => serverNamesFor(options, SERVICE_CIDRS, [endpoint(options).host, `api.${options.name}`]),
  nodes: (options) =>
    planNodes(options, {
      podCidrs: POD_CIDRS,
      nodeCidrs: ["172.20.0.0/16", "fd40:20::/64"],
      images: CLUSTER_TOOL_IMAGES,
      zones: ["a", "b", "c"].map((letter) => `${REGION}${letter}`),
      controlPlane: "shown",
      describe: (node) => {
        const instance = `i-0${(0xc1a0_5e_000 + node.index).toString(16).padStart(16, "0")}`;
        return {
          name: instance,
          providerID: `aws:///${node.zone}/${instance}`,
          labels: { ...roleLabels(node), "kops.k8s.io/instancegroup": instanceGroup(node) },
          annotations: { "local.vendor.io/nameserver": LINK_LOCAL_DNS },
          taints: controlPlaneTaints(node, options),
        };
      },
    }),
  objects(options) {
    const { host, port } = endpoint(options);
    const configuration: ClusterConfiguration = {
      server: `https://${host}:${port}`,
      podCidr: POD_CIDRS[0] as string,
      proxy: proxyOf(iac, options),
    };
    return [
      ...systemNamespaces(),
      {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { ...CONFIGURATION, labels: { "app.kubernetes.io/managed-by": "cluster-tool" } },
        data: { [CONFIGURATION_KEY]: printClusterConfiguration(options.name, KUBERNETES_VERSION, configuration) },
      },
      ...proxyObjects(configuration),
      ...dnsObjects({ serviceCidr: SERVICE_CIDRS[0] as string, options, upstream: LINK_LOCAL_DNS }),
    ];
  },
  behaviours: [clusterRollout],
};

/** The load balancer in front of the API servers. */
function endpoint({ name, apiAddress }: PlatformProfileOptions): { host: string; port: number } {
  return { host: `api.internal.${name}`, port: apiAddress.port };
}

function instanceGroup({ role, zone }: PlannedNode): string {
  return `${role === "control-plane" ? "control-plane" : "nodes"}-${zone}`;
}

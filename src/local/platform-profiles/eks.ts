import type { KubeObject } from "../../api/object.ts";
import { LINK_LOCAL_DNS } from "../../api/tables/cluster-kinds.ts";
import type { PlatformProfile, PlatformProfileOptions } from "../platform-profile.ts";
import { dnsObjects } from "./dns-add-on.ts";
import { EKS_IMAGES } from "./node-images.ts";
import { type PlannedNode, planNodes } from "./node-plan.ts";
import { serverNamesFor } from "./server-names.ts";
import { proxyOf, serviceProxyObjects } from "./service-proxy-add-on.ts";
import { KUBE_SYSTEM, systemNamespaces } from "./system-namespaces.ts";

const SERVICE_CIDRS = ["10.100.0.0/16", "fd30:100::/108"];
const POD_CIDRS = ["192.168.0.0/16", "fd30:168::/56"];
const REGION = "eu-west-1";

/** The AWS-like service: the cloud's own CNI plugin, its name server at a link-local address, and perhaps IPVS. */
export const eks: PlatformProfile = {
  kind: "eks",
  serviceCidrs: SERVICE_CIDRS,
  podCidrs: POD_CIDRS,
  proxies: ["iptables", "ipvs", "nftables", "none"],
  endpoint,
  serverNames: (options) => serverNamesFor(options, SERVICE_CIDRS, [endpoint(options).host]),
  nodes: (options) =>
    planNodes(options, {
      podCidrs: POD_CIDRS,
      nodeCidrs: ["10.20.0.0/16", "fd30:20::/64"],
      images: EKS_IMAGES,
      zones: ["a", "b", "c"].map((letter) => `${REGION}${letter}`),
      controlPlane: "hidden",
      describe: (node) => ({
        name: `ip-${(node.internalIPs[0] as string).replaceAll(".", "-")}.${REGION}.compute.internal`,
        providerID: `aws:///${node.zone}/${instanceId(node.index)}`,
        labels: nodeLabels(options, node),
        annotations: { "local.vendor.io/nameserver": LINK_LOCAL_DNS },
      }),
    }),
  objects(options) {
    const { host, port } = endpoint(options);
    const mode = proxyOf(eks, options);
    const settings = { in: "configMap", name: "kube-proxy-config", key: "config" } as const;
    const addOn = { server: `https://${host}:${port}`, clusterCidr: POD_CIDRS[0] as string, settings };
    const labels = { "eks.amazonaws.com/component": "kube-proxy" };
    return [
      ...systemNamespaces(),
      awsAuth(),
      ...cniPlugin(),
      ...(mode === "none" ? [] : serviceProxyObjects({ ...addOn, mode, labels })),
      ...dnsObjects({
        serviceCidr: SERVICE_CIDRS[0] as string,
        options,
        upstream: LINK_LOCAL_DNS,
        labels: { "eks.amazonaws.com/component": "kube-dns" },
      }),
    ];
  },
  behaviours: [],
};

function endpoint({ name }: PlatformProfileOptions): { host: string; port: number } {
  return { host: `${name}.gr7.${REGION}.eks.internal`, port: 443 };
}

/** The same for the same node every time. */
function instanceId(index: number): string {
  return `i-0${(0xe4a3c5d7000 + index).toString(16).padStart(16, "0")}`;
}

function nodeLabels({ name }: PlatformProfileOptions, { image }: PlannedNode): Record<string, string> {
  const group = /bottlerocket/i.test(image.osImage) ? "bottlerocket" : "general";
  return {
    "eks.amazonaws.com/nodegroup": `${name}-${group}`,
    "node.kubernetes.io/instance-type": image.architecture === "arm64" ? "m7g.large" : "m7i.large",
  };
}

function awsAuth(): KubeObject {
  const role = [
    "- rolearn: arn:aws:iam::000000000000:role/node",
    "  username: system:node:{{EC2PrivateDNSName}}",
    "  groups: [system:bootstrappers, system:nodes]",
    "",
  ].join("\n");
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "aws-auth", namespace: KUBE_SYSTEM },
    data: { mapRoles: role },
  };
}

/** Its daemon set is how the operator knows whose CNI plugin gives the pods their addresses. */
function cniPlugin(): KubeObject[] {
  const metadata = { name: "aws-node", namespace: KUBE_SYSTEM, labels: { "k8s-app": "aws-node" } };
  return [
    { apiVersion: "v1", kind: "ServiceAccount", metadata },
    {
      apiVersion: "apps/v1",
      kind: "DaemonSet",
      metadata,
      spec: {
        selector: { matchLabels: { "k8s-app": "aws-node" } },
        template: {
          metadata: { labels: { "k8s-app": "aws-node" } },
          spec: {
            hostNetwork: true,
            priorityClassName: "system-node-critical",
            serviceAccountName: "aws-node",
            nodeSelector: { "kubernetes.io/os": "linux" },
            tolerations: [{ operator: "Exists" }],
            containers: [
              {
                name: "aws-node",
                image: "registry.local/vpc-cni:v1.20.1",
                volumeMounts: [{ name: "cni-net-dir", mountPath: "/host/etc/cni/net.d" }],
              },
            ],
            volumes: [{ name: "cni-net-dir", hostPath: { path: "/etc/cni/net.d" } }],
          },
        },
      },
    },
  ];
}

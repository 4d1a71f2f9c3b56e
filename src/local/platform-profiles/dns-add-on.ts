import type { KubeObject } from "../../api/object.ts";
import type { PlatformProfileOptions } from "../platform-profile.ts";
import { clusterRole, clusterRoleBinding } from "./rbac-objects.ts";
import { addressIn } from "./server-names.ts";
import { KUBE_SYSTEM } from "./system-namespaces.ts";

interface DnsAddOn {
  serviceCidr: string;
  options: PlatformProfileOptions;
  /** Who answers for names outside the cluster. */
  upstream?: string;
  labels?: Record<string, string>;
}

const SELECTOR = { "k8s-app": "kube-dns" };

/** The cluster's name server. */
export function dnsObjects({ serviceCidr, options, upstream = "/etc/resolv.conf", labels }: DnsAddOn): KubeObject[] {
  const allLabels = { ...SELECTOR, "kubernetes.io/name": "CoreDNS", ...labels };
  const metadata = { name: "coredns", namespace: KUBE_SYSTEM, labels: allLabels };
  return [
    { apiVersion: "v1", kind: "ServiceAccount", metadata },
    clusterRole("system:coredns", [
      { apiGroups: [""], resources: ["endpoints", "services", "pods", "namespaces"], verbs: ["list", "watch"] },
      { apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs: ["list", "watch"] },
    ]),
    clusterRoleBinding("system:coredns", { name: "coredns", namespace: KUBE_SYSTEM }),
    { apiVersion: "v1", kind: "ConfigMap", metadata, data: { Corefile: corefile(upstream) } },
    dnsService(addressIn(serviceCidr, 10), allLabels),
    { apiVersion: "apps/v1", kind: "Deployment", metadata, spec: deployment(options.nodes) },
  ];
}

function corefile(upstream: string): string {
  return [
    ".:53 {",
    "    errors",
    "    health",
    "    ready",
    "    kubernetes cluster.local in-addr.arpa ip6.arpa {",
    "        pods insecure",
    "        fallthrough in-addr.arpa ip6.arpa",
    "    }",
    `    forward . ${upstream}`,
    "    cache 30",
    "    loop",
    "    reload",
    "}",
    "",
  ].join("\n");
}

function dnsService(clusterIP: string, labels: Record<string, string>): KubeObject {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: {
      name: "kube-dns",
      namespace: KUBE_SYSTEM,
      labels: { ...labels, "kubernetes.io/cluster-service": "true" },
    },
    spec: {
      clusterIP,
      selector: SELECTOR,
      ports: [
        { name: "dns", port: 53, protocol: "UDP", targetPort: 53 },
        { name: "dns-tcp", port: 53, protocol: "TCP", targetPort: 53 },
      ],
    },
  };
}

function deployment(nodes: number): object {
  return {
    // Two, so that one node may go; on a single node the second has no use.
    replicas: Math.min(2, nodes),
    selector: { matchLabels: SELECTOR },
    template: {
      metadata: { labels: SELECTOR },
      spec: {
        serviceAccountName: "coredns",
        priorityClassName: "system-cluster-critical",
        nodeSelector: { "kubernetes.io/os": "linux" },
        tolerations: [
          { key: "CriticalAddonsOnly", operator: "Exists" },
          { key: "node-role.kubernetes.io/control-plane", effect: "NoSchedule" },
          { key: "node-role.kubernetes.io/master", effect: "NoSchedule" },
        ],
        containers: [
          {
            name: "coredns",
            image: "registry.local/coredns:v1.12.4",
            args: ["-conf", "/etc/coredns/Corefile"],
            ports: [
              { name: "dns", containerPort: 53, protocol: "UDP" },
              { name: "dns-tcp", containerPort: 53, protocol: "TCP" },
            ],
            readinessProbe: { httpGet: { path: "/ready", port: 8181 } },
            volumeMounts: [{ name: "config", mountPath: "/etc/coredns", readOnly: true }],
          },
        ],
        volumes: [{ name: "config", configMap: { name: "coredns", items: [{ key: "Corefile", path: "Corefile" }] } }],
      },
    },
  };
}

import type { ClusterKind } from "./cluster-kinds.ts";

/** Where the API server's real address comes from on one kind of cluster. */
export interface EndpointRule {
  /** False: the map is not needed, though it may be there. */
  needed: boolean;
  /** What to write, in words. */
  address: string;
  /** The host must look like this; any stable host where it is left out. */
  host?: { pattern: RegExp; say: string };
  port?: string;
  /** Where this kind alone keeps its address; the rule itself where host and port are fixed. */
  writtenIn?: "kindRule" | "infrastructure" | "clusterToolConfiguration";
  /** What the operator reads the address from by itself, so that the map may be left out where eBPF is the default. */
  operatorReads?: "kubeadmConfig" | "infrastructure";
  because: string;
}

/** Rules 1 to 3 of the endpoint configuration map. */
export const ENDPOINT_RULES = {
  generic: {
    needed: true,
    address: "the load balancer's address; with one API server a DNS record of its own or a static IP",
    operatorReads: "kubeadmConfig",
    because:
      "With several API servers, use the address of the load balancer in front of them. A single control-plane node must be reached by a dedicated DNS record or a static IP.",
  },
  iac: {
    needed: true,
    address: "the name and port of the API load balancer, api.internal.CLUSTERNAME",
    host: { pattern: /^api\.internal\.[a-z0-9.-]+$/i, say: "api.internal.CLUSTERNAME" },
    writtenIn: "clusterToolConfiguration",
    because: "On this kind of cluster the API load balancer is named api.internal.<clustername>.",
  },
  openshift: {
    needed: false,
    address: "none is needed",
    writtenIn: "infrastructure",
    operatorReads: "infrastructure",
    because: "On an OpenShift-like platform the operator knows the address.",
  },
  aks: {
    needed: true,
    address: "the name that the cluster-info command prints, and port 443",
    host: { pattern: /[a-z]/i, say: "a domain name" },
    port: "443",
    because: "On an AKS-like service it is the FQDN that kubectl cluster-info prints, and port 443.",
  },
  eks: {
    needed: true,
    address: "the domain name of the provider's load balancer, and port 443",
    host: { pattern: /[a-z]/i, say: "a domain name" },
    port: "443",
    because: "On an EKS-like service it is the domain name of the provider's load balancer, and port 443.",
  },
  mke: {
    needed: true,
    address: "proxy.local and port 6444, a reverse proxy on each node",
    host: { pattern: /^proxy\.local$/, say: "proxy.local" },
    port: "6444",
    writtenIn: "kindRule",
    because: "On an MKE-like platform it is proxy.local and port 6444, a reverse proxy on each node.",
  },
} as const satisfies Record<ClusterKind, EndpointRule>;

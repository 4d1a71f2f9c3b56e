import { formatAddress, parseCidr, V4 } from "../../kit/ip.ts";
import type { Dataplane } from "../dataplane.ts";
import type { InstallationSpec } from "../resources/installation.ts";
import { CLUSTER_KINDS, type ClusterKind } from "./cluster-kinds.ts";
import { cniPlugin } from "./cni-plugins.ts";

type Network = NonNullable<InstallationSpec["vendorNetwork"]>;
type Pool = NonNullable<Network["ipPools"]>[number];
type UpdateStrategy = NonNullable<InstallationSpec["nodeUpdateStrategy"]>;

/** What the defaults of an installation depend on besides its own specification. */
export interface DefaultsContext {
  kind: ClusterKind;
  /** What runs now, from `status.computed`: a default never changes the data plane or the pools of a running cluster. */
  previous?: InstallationSpec;
  /** The pod prefixes the cluster was created with, if it reports them. */
  podCidrs?: readonly string[];
}

/**
 * Effective defaults, for the printed reference of fields; the function below is what applies them.
 * @public
 */
export const EFFECTIVE_DEFAULTS = [
  { path: "spec.clusterKind", value: "what the operator finds" },
  { path: "spec.cni.type", value: "Vendor" },
  { path: "spec.cni.ipam.type", value: "that of the CNI plugin" },
  { path: "spec.cni.binDir", value: "/opt/cni/bin; on openshift /var/lib/cni/bin" },
  { path: "spec.cni.confDir", value: "/etc/cni/net.d; on openshift /var/run/multus/cni/net.d" },
  {
    path: "spec.vendorNetwork.linuxDataplane",
    value: "what runs; for a new one BPF on generic and openshift, else Nftables",
  },
  { path: "spec.vendorNetwork.hostPorts", value: "null with BPF; else port mapping Enabled with the Vendor plugin" },
  {
    path: "spec.vendorNetwork.ipPools",
    value: "what runs; for a new one the cluster's pod prefixes, else 192.168.0.0/16 (eks 172.16.0.0/16)",
  },
  { path: "spec.vendorNetwork.ipPools[].encapsulation", value: "VXLANCrossSubnet with the Vendor plugin; else None" },
  { path: "spec.vendorNetwork.ipPools[].blockSize", value: "26 for IPv4, 122 for IPv6" },
  { path: "spec.vendorNetwork.ipPools[].natOutgoing", value: "Enabled for IPv4, Disabled for IPv6" },
  { path: "spec.vendorNetwork.ipPools[].nodeSelector", value: "all()" },
  { path: "spec.vendorNetwork.ipPools[].allowedUses", value: "Workload, Tunnel" },
  { path: "spec.vendorNetwork.ipPools[].assignmentMode", value: "Automatic" },
  {
    path: "spec.vendorNetwork.nodeAddressAutodetectionV4",
    value: "firstFound; on eks canReach 8.8.8.8; on mke skipInterface ^br-.*",
  },
  { path: "spec.vendorNetwork.nodeAddressAutodetectionV6", value: "firstFound where there is an IPv6 pool" },
  { path: "spec.vendorNetwork.bgp", value: "Disabled" },
  { path: "spec.vendorNetwork.containerIPForwarding", value: "Disabled" },
  { path: "spec.vendorNetwork.serviceProxyManagement", value: "Disabled" },
  { path: "spec.vendorNetwork.linuxPolicySetupTimeoutSeconds", value: "0" },
  { path: "spec.nodeUpdateStrategy", value: "RollingUpdate, one node at a time" },
  { path: "spec.controlPlaneReplicas", value: "2" },
] as const;

/** The specification with every default filled in. Pure: the operator keeps it in `status.computed`, never in `spec`. */
export function effectiveInstallation(spec: InstallationSpec, context: DefaultsContext): InstallationSpec {
  const kind = spec.clusterKind ?? context.kind;
  const cni = effectiveCni(spec.cni, kind);
  return {
    ...spec,
    clusterKind: kind,
    cni,
    vendorNetwork: effectiveNetwork(spec.vendorNetwork ?? {}, { ...context, kind }, cni.type === "Vendor"),
    nodeUpdateStrategy: effectiveUpdateStrategy(spec.nodeUpdateStrategy),
    controlPlaneReplicas: spec.controlPlaneReplicas ?? 2,
  };
}

function effectiveUpdateStrategy({ type = "RollingUpdate", rollingUpdate }: UpdateStrategy = {}): UpdateStrategy {
  return type === "OnDelete" ? { type } : { type, rollingUpdate: { maxUnavailable: 1, ...rollingUpdate } };
}

function effectiveCni(cni: InstallationSpec["cni"], kind: ClusterKind) {
  const type = cni?.type ?? "Vendor";
  const ipam = cni?.ipam?.type ?? cniPlugin(type).ipam[0];
  return { ...CLUSTER_KINDS[kind].cniDirectories, ...cni, type, ipam: { ...cni?.ipam, type: ipam } };
}

function effectiveNetwork(network: Network, context: DefaultsContext, ownCni: boolean): Network {
  const running = context.previous?.vendorNetwork;
  const linuxDataplane = network.linuxDataplane ?? running?.linuxDataplane ?? newDataplane(context.kind);
  const pools = network.ipPools ?? running?.ipPools ?? newPools(context, ownCni);
  const ipPools = pools.map((pool) => effectivePool(pool, pools, ownCni));
  const hasV6 = ipPools.some((pool) => !isV4(pool.cidr));
  const hostPorts = ownCni && linuxDataplane !== "BPF" ? ({ portMapping: "Enabled" } as const) : null;
  return {
    containerIPForwarding: "Disabled",
    serviceProxyManagement: "Disabled",
    linuxPolicySetupTimeoutSeconds: 0,
    nodeAddressAutodetectionV4: CLUSTER_KINDS[context.kind].addressAutodetection,
    ...(hasV6 ? { nodeAddressAutodetectionV6: { firstFound: true } } : {}),
    ...network,
    linuxDataplane,
    hostPorts: network.hostPorts === undefined ? hostPorts : network.hostPorts,
    ipPools,
  };
}

function newDataplane(kind: ClusterKind): Dataplane {
  return CLUSTER_KINDS[kind].ebpfByDefault ? "BPF" : "Nftables";
}

function newPools(context: DefaultsContext, ownCni: boolean): Pool[] {
  if (context.podCidrs && context.podCidrs.length > 0) return context.podCidrs.map((cidr) => ({ cidr }));
  if (!ownCni) return [];
  return [{ cidr: CLUSTER_KINDS[context.kind].podCidr }];
}

function effectivePool(pool: Pool, all: readonly Pool[], ownCni: boolean): Pool {
  const v4 = isV4(pool.cidr);
  return {
    // The public system's default is IPIP, which eBPF cannot carry; ours works on both data planes.
    encapsulation: ownCni ? "VXLANCrossSubnet" : "None",
    blockSize: v4 ? 26 : 122,
    natOutgoing: v4 ? "Enabled" : "Disabled",
    nodeSelector: "all()",
    allowedUses: ["Workload", "Tunnel"],
    assignmentMode: "Automatic",
    disableNewAllocations: false,
    ...pool,
    name: pool.name ?? poolName(pool, all),
  };
}

/** The only pool of its family has a name people know; others are named after their prefix. */
function poolName(pool: Pool, all: readonly Pool[]): string {
  const family = all.filter((other) => isV4(other.cidr) === isV4(pool.cidr));
  if (family.length === 1) return isV4(pool.cidr) ? "default-ipv4-ippool" : "default-ipv6-ippool";
  const cidr = parseCidr(pool.cidr);
  if (!cidr) return pool.cidr;
  // Written out in full, so that two prefixes never share a name.
  const groups = cidr.family === V4 ? formatAddress({ family: V4, value: cidr.base }).split(".") : hexGroups(cidr.base);
  return [...groups, cidr.length].join("-");
}

function hexGroups(value: bigint): string[] {
  return value.toString(16).padStart(32, "0").match(/.{4}/g) ?? [];
}

function isV4(cidr: string): boolean {
  return parseCidr(cidr)?.family === V4;
}

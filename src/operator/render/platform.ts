import type { DataplaneConfiguration } from "../../api/resources/dataplane-configuration.ts";
import type { ClusterKind } from "../../api/tables/cluster-kinds.ts";
import { type CniPlugin, cniPlugin } from "../../api/tables/cni-plugins.ts";

interface PlatformRow {
  /** Where agents answer health questions; the OpenShift-like platform holds 9099 itself. */
  healthPort: number;
  vxlan: { port: number; vni: number };
  namespace: { labels: Record<string, string>; annotations: Record<string, string> };
  /** Security context constraints a pod asks for, where the platform has them. */
  constraints?: { privileged: string; restricted: string };
  /** The endpoint map's address is a proxy on each node's loopback: it means nothing inside a pod's own network. */
  addressOnlyOnNodes?: string;
  /** The API server of the platform is outside the pod network, so an aggregated API must be on the node's. */
  apiServerOutsidePodNetwork?: true;
  /** The platform's own rules need the kernel's connection tracking for what they forward. */
  needsHostConntrack?: true;
}

const VXLAN = { port: 4789, vni: 4096 };
const PLAIN = { healthPort: 9099, vxlan: VXLAN, namespace: { labels: {}, annotations: {} } };

/** How the kinds of cluster differ for what runs on them. */
const PLATFORMS: Readonly<Record<ClusterKind, PlatformRow>> = {
  generic: PLAIN,
  iac: PLAIN,
  openshift: {
    ...PLAIN,
    healthPort: 9199,
    namespace: {
      labels: { "openshift.io/run-level": "0", "security.openshift.io/scc.podSecurityLabelSync": "false" },
      annotations: { "openshift.io/node-selector": "" },
    },
    constraints: { privileged: "privileged", restricted: "nonroot-v2" },
  },
  aks: {
    ...PLAIN,
    // The platform's own admission keeps its hands off namespaces that say this.
    namespace: { labels: { "control-plane": "true" }, annotations: {} },
  },
  eks: { ...PLAIN, apiServerOutsidePodNetwork: true },
  // Its other orchestrator holds 4789 on every node; one port for both data planes, so that a switch keeps the device.
  mke: { ...PLAIN, vxlan: { port: 8472, vni: 10000 }, addressOnlyOnNodes: "proxy.local", needsHostConntrack: true },
};

export function platformOf(kind: ClusterKind): PlatformRow {
  return PLATFORMS[kind];
}

/** What the operator sets in the data plane configuration on this kind of cluster; all else in it is the user's. */
export function platformDataplaneSettings(
  kind: ClusterKind,
  { bpf, cni }: { bpf: boolean; cni: CniPlugin },
): DataplaneConfiguration["spec"] {
  const { healthPort, vxlan, needsHostConntrack } = PLATFORMS[kind];
  const { interfacePrefix } = cniPlugin(cni);
  return {
    ...{ healthPort, vxlanPort: vxlan.port, vxlanVNI: vxlan.vni },
    ...(needsHostConntrack && bpf ? { bpfHostConntrackBypass: false } : {}),
    ...(interfacePrefix ? { interfacePrefix } : {}),
  };
}

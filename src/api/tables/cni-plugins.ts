import type { ClusterKind } from "./cluster-kinds.ts";

interface CniPluginRow {
  /** Who may give pods their addresses; the first where the installation does not say. */
  ipam: readonly ["Vendor" | "HostLocal" | "AmazonVPC" | "AzureVNET", ...("HostLocal" | "Vendor")[]];
  /** The vendor's platform it works on; undefined: it is part of none that this service knows. */
  home?: ClusterKind;
  /** What its names of pods' interfaces begin with; ours are known by themselves. */
  interfacePrefix?: string;
}

/** The plugins of `spec.cni.type`: ours, those of clouds, and CNI's own `ptp`. */
export const CNI_PLUGINS = {
  Vendor: { ipam: ["Vendor", "HostLocal"] },
  AmazonVPC: { ipam: ["AmazonVPC"], home: "eks", interfacePrefix: "eni" },
  AzureVNET: { ipam: ["AzureVNET"], home: "aks", interfacePrefix: "azv" },
  GKE: { ipam: ["HostLocal"], interfacePrefix: "gke" },
  PointToPoint: { ipam: ["HostLocal"], interfacePrefix: "veth" },
} as const satisfies Record<string, CniPluginRow>;

export type CniPlugin = keyof typeof CNI_PLUGINS;

export function cniPlugin(type: CniPlugin): CniPluginRow {
  return CNI_PLUGINS[type];
}

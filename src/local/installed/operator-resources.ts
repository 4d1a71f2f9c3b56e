import { vendorNames } from "../../api/names.ts";
import type { Condition, KubeObject } from "../../api/object.ts";
import type { InstallationSpec } from "../../api/resources/installation.ts";
import { CLUSTER_KINDS, type ClusterKind } from "../../api/tables/cluster-kinds.ts";
import type { OldRelease } from "../../releases/old-release.ts";
import type { Pool } from "./address-objects.ts";
import { operatorObject } from "./v3-object.ts";

const { singleton, statuses, variant } = vendorNames;

/** Platforms whose own CNI plugin gives pods their addresses. */
const FOREIGN_CNI: Partial<Record<ClusterKind, "AmazonVPC" | "AzureVNET">> = { eks: "AmazonVPC", aks: "AzureVNET" };

export function hasForeignCni(kind: ClusterKind): boolean {
  return FOREIGN_CNI[kind] !== undefined;
}

/** What the custom-resources file of that version held. */
export function customResources(release: OldRelease, kind: ClusterKind, pool: Pool | undefined): KubeObject[] {
  return [
    operatorObject("installation", singleton, installationSpec(release, kind, pool)),
    ...(release.hasSince("v3.20") ? [operatorObject("apiServer", singleton, {})] : []),
    ...(release.hasSince("v3.30")
      ? [operatorObject("flowLogs", singleton, {}), operatorObject("flowUI", singleton, {})]
      : []),
  ];
}

/** The nftables data plane: no version before v3.31 ran eBPF unless it was asked to. */
function installationSpec(release: OldRelease, kind: ClusterKind, pool: Pool | undefined): InstallationSpec {
  const foreign = FOREIGN_CNI[kind];
  const cni = foreign ?? "Vendor";
  return {
    variant: variant as "OpenSource",
    ...(CLUSTER_KINDS[kind].isVendorPlatform ? { clusterKind: kind } : {}),
    cni: { type: cni, ipam: { type: cni } },
    vendorNetwork: {
      ...(release.hasSince("v3.19") ? { linuxDataplane: "Nftables" as const } : {}),
      ...(foreign ? {} : { hostPorts: { portMapping: "Enabled" as const } }),
      ...(pool
        ? {
            ipPools: [
              {
                name: "default-ipv4-ippool",
                cidr: pool.cidr,
                blockSize: 26,
                encapsulation: "VXLANCrossSubnet" as const,
                natOutgoing: "Enabled" as const,
                nodeSelector: "all()",
              },
            ],
          }
        : {}),
    },
  };
}

/** The status resources of what that version ran, one per component. */
export function statusResources(release: OldRelease): KubeObject[] {
  const names = [
    statuses.network,
    ...(release.hasSince("v3.20") ? [statuses.apiServer] : []),
    ...(release.hasSince("v3.28") ? [statuses.ipPools] : []),
    ...(release.hasSince("v3.30") ? [statuses.flowLogs, statuses.flowUI] : []),
  ];
  return names.map((name) => operatorObject("status", name, {}));
}

/** What the operator last reported of a resource of its own. */
export function reportedStatus({ kind, spec }: KubeObject, release: OldRelease, at: string): object {
  const well = kind === vendorNames.kinds.status.kind ? "Available" : "Ready";
  const condition = (type: string, status: Condition["status"]): Condition => ({
    type,
    status,
    reason: "AllObjectsAvailable",
    message: status === "True" ? "All objects available" : "",
    lastTransitionTime: at,
  });
  const conditions = [condition(well, "True"), condition("Progressing", "False"), condition("Degraded", "False")];
  if (kind !== vendorNames.kinds.installation.kind) return { conditions };
  return { variant, version: release.tag, mtu: 1450, computed: spec, conditions };
}

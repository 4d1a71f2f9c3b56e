import { vendorNames } from "../api/names.ts";
import { groupVersion, type KubeObject } from "../api/object.ts";
import type { ClusterKind } from "../api/tables/cluster-kinds.ts";
import type { CniPlugin } from "../api/tables/cni-plugins.ts";
import { MANAGER } from "./apply.ts";
import { platformDataplaneSettings } from "./render/platform.ts";

export interface DataplaneChoice {
  kind: ClusterKind;
  bpfEnabled: boolean;
  /** Who connects pods. */
  cni: CniPlugin;
  /** The service proxy stays and its rules must be left alone. */
  leaveProxyRules: boolean;
}

/**
 * What the operator says in the data plane configuration `default`. Whether eBPF acts is for the operator to say; the rest are
 * suggestions: a value that another manager has set stays.
 */
export function dataplaneSettings(live: KubeObject | undefined, choice: DataplaneChoice): KubeObject {
  const { kind, bpfEnabled, cni, leaveProxyRules } = choice;
  const theirs = fieldsOfOthers(live);
  const suggested = {
    ...platformDataplaneSettings(kind, { bpf: bpfEnabled, cni }),
    ...(leaveProxyRules ? { bpfServiceProxyIptablesCleanupEnabled: false } : {}),
  };
  const kept = Object.entries(suggested).filter(([field]) => !theirs.has(field));
  return {
    apiVersion: groupVersion(vendorNames.groups.stored),
    kind: vendorNames.kinds.dataplaneConfiguration.kind,
    metadata: { name: vendorNames.singleton },
    spec: { ...Object.fromEntries(kept), bpfEnabled },
  };
}

function fieldsOfOthers(live: KubeObject | undefined): Set<string> {
  const entries = (live?.metadata.managedFields ?? []).filter(({ manager }) => manager !== MANAGER);
  const specs = entries.map(({ fieldsV1 }) => (fieldsV1?.["f:spec"] ?? {}) as Record<string, unknown>);
  return new Set(specs.flatMap((spec) => Object.keys(spec).map((step) => step.slice(2))));
}

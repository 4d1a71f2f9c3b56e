import type { Names } from "../../../../api/names.ts";
import type { KubeObject } from "../../../../api/object.ts";
import type { Container, ManifestWorkload, PodTemplateSpec } from "../operator/manifest-view.ts";

/** A plain manifest of the public system as it is in the cluster: what the public operator reads when it converts it. */
export interface LiveManifest {
  agents: ManifestWorkload;
  controllers: ManifestWorkload | undefined;
  typha: ManifestWorkload | undefined;
  /** ConfigMaps of the orchestrator's namespace, by name. */
  maps: ReadonlyMap<string, Readonly<Record<string, string>>>;
}

/** A variable as the conversion reads it. */
export interface LiveVariable {
  container: string;
  name: string;
  /** Undefined where it comes from neither text nor a ConfigMap. */
  value: string | undefined;
  /** The path of a `fieldRef`. */
  from?: string;
}

export const AGENT = "calico-node";
export const CNI_INSTALLER = "install-cni";

/** Every variable of the agents' pods, of init containers too. */
export function liveVariables({ agents, maps }: LiveManifest): LiveVariable[] {
  const { containers, initContainers = [] } = agents.spec.template.spec;
  return [...containers, ...initContainers].flatMap((container) => variablesOf(container, maps));
}

export function variablesOf(container: Container | undefined, maps: LiveManifest["maps"]): LiveVariable[] {
  return (container?.env ?? []).map((variable) => {
    const { name, value = "", valueFrom } = variable as LiveEnv;
    const of = container!.name;
    if (!valueFrom) return { container: of, name, value };
    const { configMapKeyRef: ref, fieldRef } = valueFrom;
    if (fieldRef) return { container: of, name, value: undefined, from: fieldRef.fieldPath };
    return { container: of, name, value: ref && (maps.get(ref.name ?? "")?.[ref.key] ?? "") };
  });
}

interface LiveEnv {
  name: string;
  value?: string;
  valueFrom?: { configMapKeyRef?: { name?: string; key: string }; fieldRef?: { fieldPath: string } };
}

export function containerIn({ initContainers = [], containers }: PodTemplateSpec, name: string): Container | undefined {
  return [...containers, ...initContainers].find((one) => one.name === name);
}

/** ConfigMaps that variables of the agents refer to. */
export function mapsReferredTo(agents: KubeObject, names: Names): string[] {
  const { containers, initContainers = [] } = (agents as ManifestWorkload).spec.template.spec;
  const referred = [...containers, ...initContainers].flatMap(({ env = [] }) =>
    env.flatMap(({ valueFrom }) => valueFrom?.configMapKeyRef?.name ?? []),
  );
  return [...new Set([names.manifests.configMap, ...referred])];
}

/** The CNI configuration of the public plugin, with its placeholders as the conversion reads them. */
export interface CniConfiguration {
  name: string;
  plugins: readonly CniPlugin[];
}

interface CniPlugin {
  type: string;
  /** -1: the variable `CNI_MTU` of the installer. */
  mtu?: number;
  ipam?: { type?: string; subnet?: string; assign_ipv4?: string; assign_ipv6?: string; [field: string]: unknown };
  container_settings?: { allow_ip_forwarding?: boolean };
  feature_control?: { floating_ips?: boolean; ip_addrs_no_ipam?: boolean };
  sysctl?: Record<string, string>;
}

/** Undefined: it is no JSON. */
export function parseCniConfiguration(text: string): CniConfiguration | undefined {
  try {
    const parsed = JSON.parse(text.replaceAll("__CNI_MTU__", "-1")) as Partial<CniConfiguration> & Partial<CniPlugin>;
    if (parsed.plugins?.length) return { name: parsed.name ?? "", plugins: parsed.plugins };
    return parsed.type ? { name: parsed.name ?? "", plugins: [parsed as CniPlugin] } : undefined;
  } catch {
    return undefined;
  }
}

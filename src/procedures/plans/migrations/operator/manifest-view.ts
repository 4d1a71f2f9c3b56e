import type { Names } from "../../../../api/names.ts";
import type { KubeObject } from "../../../../api/object.ts";

interface KeyRef {
  name?: string;
  key: string;
}

/** A container of a manifest, as far as it is converted. */
export interface Container {
  name: string;
  image?: string;
  env?: { name: string; value?: string; valueFrom?: { configMapKeyRef?: KeyRef; secretKeyRef?: KeyRef } }[];
  resources?: { requests?: Record<string, string | number>; limits?: Record<string, string | number> };
}

export interface PodTemplateSpec {
  nodeSelector?: Record<string, string>;
  tolerations?: object[];
  imagePullSecrets?: { name: string }[];
  initContainers?: Container[];
  containers: Container[];
  volumes?: { name: string; hostPath?: { path: string } }[];
}

export interface ManifestWorkload extends KubeObject {
  spec: {
    replicas?: number;
    updateStrategy?: { type?: "RollingUpdate" | "OnDelete"; rollingUpdate?: { maxUnavailable?: number | string } };
    template: { metadata?: KubeObject["metadata"]; spec: PodTemplateSpec };
  };
}

/** The parts of a plain manifest that are converted, found by kind. */
export function manifestView(objects: readonly KubeObject[], names: Names) {
  const the = (kind: string) => objects.find((object) => object.kind === kind) as ManifestWorkload | undefined;
  const agents = the("DaemonSet");
  const settings = objects.find(
    ({ kind, metadata }) => kind === "ConfigMap" && metadata.name === names.manifests.configMap,
  );
  return {
    agents,
    controllers: the("Deployment"),
    agent: agents?.spec.template.spec.containers.find(({ name }) => name === names.workloads.node),
    settings: (settings?.["data"] ?? {}) as Readonly<Record<string, string>>,
  };
}

/** By name: the value, as text or from the ConfigMap of settings; undefined where it comes from elsewhere. */
export function variablesOf(
  container: Container | undefined,
  settings: Readonly<Record<string, string>>,
  names: Names,
): Map<string, string | undefined> {
  return new Map(
    (container?.env ?? []).map(({ name, value, valueFrom }) => {
      if (!valueFrom) return [name, value ?? ""];
      const { configMapKeyRef: ref } = valueFrom;
      return [name, ref?.name === names.manifests.configMap ? settings[ref.key] : undefined];
    }),
  );
}

interface CniPlugin {
  mtu?: number;
  container_settings?: { allow_ip_forwarding?: boolean };
  policy_setup_timeout_seconds?: number;
}

/** The plugin of a CNI configuration; undefined where it is not one of ours alone. */
export function pluginIn(text: string | undefined): CniPlugin | undefined {
  try {
    const { plugins = [] } = JSON.parse(text ?? "") as { plugins?: CniPlugin[] };
    return plugins.length === 1 ? plugins[0] : undefined;
  } catch {
    return undefined;
  }
}

import type { Dataplane } from "../../api/dataplane.ts";
import type { Names, Noun } from "../../api/names.ts";
import { groupVersion, type KubeObject } from "../../api/object.ts";
import type { Target } from "../actions/objects/target.ts";
import { fieldAt } from "../field-at.ts";
import type { Observation } from "../observation.ts";

/** A patch that has one value at a dotted path. */
export function atPath(path: string, value: unknown): Record<string, unknown> {
  return path.split(".").reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as Record<string, unknown>;
}

/** The data plane the installation asks for, or has by default; undefined where there is no installation. */
export function requestedDataplane({ service, names }: Observation): Dataplane | undefined {
  const { installation } = service;
  if (!installation) return undefined;
  const { linuxDataplane } = names.fields;
  const computed = linuxDataplane.replace(/^spec\./, "status.computed.");
  const asked = fieldAt(installation, linuxDataplane) ?? fieldAt(installation, computed);
  return asked === names.dataplanes.ebpf ? "BPF" : "Nftables";
}

/** Whether eBPF acts now, which may still be so when it is no longer asked for. */
export function isEbpfOn({ service, names }: Observation): boolean {
  return fieldAt(service.dataplaneConfiguration, names.fields.ebpfEnabled) === true;
}

/** Whether the operator was asked to park and restore the service proxy on its own. */
export function isProxyManaged({ service, names }: Observation): boolean {
  return fieldAt(service.installation, names.fields.serviceProxyManagement) === "Enabled";
}

/** Whether they are configured to be removed: an operator that manages kube-proxy does not override that. */
export function removesProxyRulesByOrder({ service, names }: Observation): boolean {
  return fieldAt(service.dataplaneConfiguration, names.fields.iptablesCleanup) === true;
}

/** Whether the service leaves the proxy's rules alone. */
export function leavesProxyRules({ service, names }: Observation): boolean {
  return fieldAt(service.dataplaneConfiguration, names.fields.iptablesCleanup) === false;
}

/** The operator's word for a data plane. */
export function dataplaneName(names: Names, mode: Dataplane): string {
  return mode === "BPF" ? names.dataplanes.ebpf : names.dataplanes.standard[0];
}

/** As people read it. */
export const dataplaneTitle = (mode: Dataplane) => (mode === "BPF" ? "eBPF" : "the nftables data plane");

/** The one object of a kind of ours, as steps name it. */
export function singleton(names: Names, noun: Noun, group: keyof Names["groups"] = "operator"): Target {
  return { apiVersion: groupVersion(names.groups[group]), kind: names.kinds[noun].kind, name: names.singleton };
}

export function serviceProxyTarget({ namespaces, serviceProxy }: Names): Target {
  return {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    namespace: namespaces.orchestratorSystem,
    name: serviceProxy.daemonSet,
  };
}

export function operatorTarget({ namespaces, workloads }: Names): Target {
  return { apiVersion: "apps/v1", kind: "Deployment", namespace: namespaces.operator, name: workloads.operator };
}

/** How many nodes may be without an agent during a rolling update, as the daemon set says it. */
export function unavailableAllowed(agents: KubeObject | undefined, nodes: number): number {
  const set = fieldAt(agents, "spec.updateStrategy.rollingUpdate.maxUnavailable") ?? 1;
  if (typeof set === "number") return Math.max(1, set);
  const percent = /^(\d+)%$/.exec(String(set))?.[1];
  return percent ? Math.max(1, Math.ceil((Number(percent) / 100) * nodes)) : 1;
}

/** The Deployment between agents and the API server; known only where stored objects were read. */
export function typhaOf({ names, stored }: Observation): KubeObject | undefined {
  return stored?.deployments.find(({ metadata }) => metadata.name === names.workloads.typha);
}

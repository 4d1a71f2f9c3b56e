import { type Names, vendorNames } from "../names.ts";
import type { KubeObject } from "../object.ts";
import type { DataplaneConfiguration } from "../resources/dataplane-configuration.ts";
import type { IPPool } from "../resources/ip-pool.ts";
import { ebpfObjectProblems, serviceProxyProblems } from "./ebpf.ts";
import { missingEndpointMap } from "./endpoint-map.ts";
import type { ClusterFacts } from "./facts.ts";
import { flowProblem } from "./flow-resources.ts";
import { ipPoolSetProblems } from "./ip-pool.ts";
import type { Problem } from "./problem.ts";
import { validateObject } from "./validate.ts";

/** A problem of one object among several: `IPPool a`, `Service kube-system/dns`. */
export type ObjectProblem = Problem & { object: string };

const names: Names = vendorNames;

/**
 * Everything wrong with objects that go together, as the files of one installation or what a cluster holds: each by
 * itself, then between them. Objects that are not ours are only looked at for what eBPF could not carry on.
 */
export function validateSet(objects: readonly KubeObject[], facts: ClusterFacts = {}): ObjectProblem[] {
  const ofKind = (kind: string) => objects.filter((object) => object.kind === kind);
  const installation = ofKind(names.kinds.installation.kind)[0];
  const ebpf = usesEbpf(installation);
  const alone = objects.flatMap((object) => [
    ...(isOurs(object) ? on(object, validateObject(object, facts)) : []),
    ...(ebpf ? on(object, ebpfObjectProblems([object])) : []),
  ]);
  const pools = ofKind(names.kinds.ipPool.kind).filter(hasCidr);
  const flowUI = ofKind(names.kinds.flowUI.kind)[0];
  const lonely = flowUI && ofKind(names.kinds.flowLogs.kind).length === 0;
  return unique([
    ...alone,
    ...pools.flatMap((pool, index) =>
      pools.slice(0, index).flatMap((other) => on(pool, ipPoolSetProblems([other, pool]))),
    ),
    ...(lonely ? on(flowUI, [flowProblem.FLOW_UI_NEEDS_LOGS("kind", "The flow UI needs flow logs.")]) : []),
    ...(installation && ebpf ? on(installation, ebpfSetProblems(objects, facts)) : []),
  ]);
}

/** What eBPF needs in addition to the installation: the API server's address, and no conflict with a kube-proxy that stays. */
function ebpfSetProblems(objects: readonly KubeObject[], facts: ClusterFacts): Problem[] {
  const map = objects.some(isEndpointMap);
  const config = objects.find(
    (object) => object.kind === names.kinds.dataplaneConfiguration.kind && object.metadata.name === names.singleton,
  ) as DataplaneConfiguration | undefined;
  const cleanup = config?.spec?.bpfServiceProxyIptablesCleanupEnabled;
  return [...(map ? [] : missingEndpointMap(facts)), ...serviceProxyProblems(facts, cleanup)];
}

function usesEbpf(installation: KubeObject | undefined): boolean {
  const spec = installation?.["spec"] as { vendorNetwork?: { linuxDataplane?: unknown } } | undefined;
  return spec?.vendorNetwork?.linuxDataplane === names.dataplanes.ebpf;
}

function isEndpointMap(object: KubeObject): boolean {
  return object.kind === "ConfigMap" && object.metadata.name === names.endpointMap.name;
}

function isOurs(object: KubeObject): boolean {
  const groups = Object.values(names.groups).map(({ group }) => group);
  return isEndpointMap(object) || groups.includes(object.apiVersion.split("/")[0] ?? "");
}

function hasCidr(object: KubeObject): object is KubeObject & IPPool {
  return typeof (object["spec"] as { cidr?: unknown } | undefined)?.cidr === "string";
}

function on(object: KubeObject, problems: readonly Problem[]): ObjectProblem[] {
  const where = [object.metadata.namespace, object.metadata.name].filter(Boolean).join("/");
  return problems.map((problem) => ({ object: `${object.kind} ${where}`, ...problem }));
}

/** Two rules may see the same thing from two sides; people read it once. */
function unique(problems: readonly ObjectProblem[]): ObjectProblem[] {
  const seen = new Set<string>();
  return problems.filter(({ object, code, path, message }) => {
    const key = JSON.stringify([object, code, path, message]);
    return !seen.has(key) && seen.add(key);
  });
}

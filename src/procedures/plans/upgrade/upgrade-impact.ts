import type { KubeObject } from "../../../api/object.ts";
import { nameOf, targetOf } from "../../actions/objects/target.ts";
import { fieldAt } from "../../field-at.ts";
import type { Observation } from "../../observation.ts";
import type { Component, Impact } from "../../plan.ts";
import { isEbpfOn, unavailableAllowed } from "../cluster-view.ts";
import type { InventoryItem } from "./inventory.ts";
import type { UpgradeFacts } from "./upgrade.ts";
import type { UpgradePath } from "./upgrade-path.ts";

/** Each part of the service with the version that runs and the one that will. */
export function upgradeComponents(observation: Observation, path: UpgradePath, facts: UpgradeFacts): Component[] {
  const { service, stored, names } = observation;
  const { operator, nodeAgents, apiServer, flowLogs, flowUI } = service;
  const workloads = [
    ...(operator ? [operator] : []),
    ...(nodeAgents ? [nodeAgents] : []),
    ...(stored?.deployments ?? []),
  ];
  const later = facts.merged?.objects ?? [];
  const rendered = (has: KubeObject | undefined, name: string): Component[] =>
    has ? [{ component: name, current: path.from, target: path.to }] : [];
  return [
    ...(service.datastore === "etcd" ? [] : [{ component: "CRDs", current: path.from, target: path.to }]),
    ...workloads.map((workload) => ({
      component: nameOf(targetOf(workload)),
      current: versionIn(workload) ?? path.from,
      target: targetOfWorkload(workload, later, path),
    })),
    ...rendered(apiServer, names.workloads.apiServer),
    ...rendered(flowLogs, names.workloads.flowLogs),
    ...rendered(flowUI, names.workloads.flowUI),
  ];

  function targetOfWorkload(workload: KubeObject, objects: readonly KubeObject[], { method, to }: UpgradePath): string {
    const next = objects.find((one) => nameOf(targetOf(one)) === nameOf(targetOf(workload)));
    if (next) return versionIn(next) ?? to;
    // What the new file does not have stays; what an operator renders, it renders in its own version.
    return method === "manifest" ? "stays as it is" : to;
  }
}

/** The tag of the first container's image. */
function versionIn(workload: KubeObject): string | undefined {
  const { containers = [] } = (fieldAt(workload, "spec.template.spec") ?? {}) as { containers?: { image?: string }[] };
  return /:([^:/@]+)(?:@|$)/.exec(containers[0]?.image ?? "")?.[1];
}

/** Until a pod is replaced and ready: the image is pulled, the agent starts, and its probe passes. An estimate, not a promise. */
const SECONDS_PER_NODE = 40;

/** Which nodes restart what, what is at risk meanwhile, and for how long. */
export function upgradeImpact(observation: Observation, inventory: readonly InventoryItem[]): Impact {
  const { names, nodes, service } = observation;
  const agents = service.nodeAgents?.metadata.name ?? names.workloads.node;
  const linux = nodes.filter(({ operatingSystem }) => operatingSystem === "linux").map(({ name }) => name);
  const atOnce = unavailableAllowed(service.nodeAgents, linux.length);
  const deployments = (observation.stored?.deployments ?? []).map(({ metadata }) => metadata.name);
  return {
    nodes: linux.map((node) => ({ node, restarts: [agents] })),
    deployments: [...(service.operator ? [names.workloads.operator] : []), ...deployments],
    atOnce,
    secondsPerNode: SECONDS_PER_NODE,
    seconds: Math.ceil(linux.length / atOnce) * SECONDS_PER_NODE,
    connections: connectionsAtRisk(observation, inventory),
  };
}

function connectionsAtRisk(observation: Observation, inventory: readonly InventoryItem[]): string[] {
  const kernel = isEbpfOn(observation) ? "eBPF programs stay attached" : "rules and conntrack stay in the kernel";
  const lost = inventory.filter(({ fate }) => fate === "lost");
  return [
    `Connections of pods are kept while an agent restarts: ${kernel}.`,
    "On a node whose agent restarts, new pods wait for their network, and changes of policies, Services and routes wait.",
    ...(observation.service.apiServer
      ? ["The v3 API may not answer for some seconds while its pods are replaced."]
      : []),
    ...lost.map(({ name, why, found }) => `${name} (${found.length}): ${why}`),
  ];
}

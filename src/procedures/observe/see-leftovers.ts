import type { Names } from "../../api/names.ts";
import type { Condition, KubeObject } from "../../api/object.ts";
import { parseVersion } from "../../api/tables/version.ts";
import { hasGate } from "../../api/tables/version-gates.ts";
import type { SeenLeftover, SeenService } from "../observation.ts";
import type { ClusterObjects } from "./cluster-objects.ts";

/** Objects that are not needed any more, and objects that block. */
export function seeLeftovers(seen: ClusterObjects, service: SeenService, names: Names): SeenLeftover[] {
  return [
    ...oldNamespaces(seen, service, names),
    ...stuck(seen, names),
    ...staleApi(seen, service),
    ...halfMigrated(seen, names),
  ];
}

function oldNamespaces(seen: ClusterObjects, service: SeenService, names: Names): SeenLeftover[] {
  const { apiServerBeforeV331, system, operator } = names.namespaces;
  const version = service.version ? parseVersion(service.version) : undefined;
  const moved = version !== undefined && hasGate(version, "target");
  return seen.namespaces.flatMap(({ metadata }) => {
    const { name, deletionTimestamp } = metadata;
    if (![apiServerBeforeV331, system, operator].includes(name)) return [];
    const object = `Namespace ${name}`;
    if (deletionTimestamp) {
      const evidence = `Terminating since ${deletionTimestamp}`;
      return [{ what: "namespace" as const, object, evidence, terminating: true as const }];
    }
    const old = name === apiServerBeforeV331 && moved && service.method !== "manifest";
    return old
      ? [
          {
            what: "namespace" as const,
            object,
            evidence: `${service.version} runs its API server in another namespace`,
          },
        ]
      : [];
  });
}

/** Deleted, and held by a finalizer: its owner may be gone already. */
function stuck(seen: ClusterObjects, names: Names): SeenLeftover[] {
  const { installation, apiServer, flowLogs, flowUI, ipPool } = seen.ours;
  const groups = [names.groups.operator.group, names.groups.stored.group];
  const ours = seen.definitions.filter(({ metadata }) => groups.some((group) => metadata.name.endsWith(`.${group}`)));
  return [...installation, ...apiServer, ...flowLogs, ...flowUI, ...ipPool, ...ours].flatMap((object) => {
    const { name, deletionTimestamp, finalizers = [] } = object.metadata;
    if (!deletionTimestamp || finalizers.length === 0) return [];
    const evidence = `Terminating since ${deletionTimestamp}, finalizers ${finalizers.join(", ")}`;
    return [{ what: "finalizer" as const, object: `${object.kind} ${name}`, evidence }];
  });
}

function staleApi(seen: ClusterObjects, service: SeenService): SeenLeftover[] {
  const api = seen.apiServiceOfV3;
  const place = (api?.["spec"] as { service?: { name: string; namespace: string } } | undefined)?.service;
  if (!api || !place) return [];
  const object = `APIService ${api.metadata.name}`;
  if (!seen.namespaces.some(({ metadata }) => metadata.name === place.namespace)) {
    const evidence = `its Service ${place.namespace}/${place.name} is in a namespace that does not exist`;
    return [{ what: "api-service", object, evidence }];
  }
  if (service.method === "none") {
    return [{ what: "api-service", object, evidence: "the service is not installed" }];
  }
  return [];
}

/** Whether the aggregated API answers, as the orchestrator sees it. */
export function aggregatedApiAnswers(api: KubeObject | undefined): boolean {
  const { conditions = [] } = (api?.["status"] ?? {}) as { conditions?: Condition[] };
  return conditions.some(({ type, status }) => type === "Available" && status === "True");
}

function halfMigrated(seen: ClusterObjects, names: Names): SeenLeftover[] {
  const label = names.labels.nodeMigration;
  const labelled = seen.nodes.filter(({ metadata }) => metadata.labels?.[label] !== undefined);
  const nodes: SeenLeftover[] = labelled.map(({ metadata }) => ({
    what: "half-migration",
    object: `Node ${metadata.name}`,
    evidence: `has the label ${label}=${metadata.labels?.[label]}`,
  }));
  const { system, orchestratorSystem } = names.namespaces;
  const agents = seen.daemonSets.filter(
    ({ metadata }) =>
      [names.workloads.node, names.workloads.overlayNode].includes(metadata.name) &&
      [system, orchestratorSystem].includes(metadata.namespace ?? ""),
  );
  const places = new Set(agents.map(({ metadata }) => metadata.namespace));
  if (places.size < 2) return nodes;
  const object = `DaemonSet ${orchestratorSystem}/${names.workloads.node}`;
  const evidence = `node agents run in ${system} and in ${orchestratorSystem}: a migration to the operator is not finished`;
  return [...nodes, { what: "half-migration", object, evidence }];
}

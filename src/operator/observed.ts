import { vendorNames } from "../api/names.ts";
import type { Condition, KubeObject } from "../api/object.ts";
import type { DataplaneAnnouncement } from "../api/protocol/agent-report.ts";
import type { DataplaneConfiguration } from "../api/resources/dataplane-configuration.ts";
import type { Installation } from "../api/resources/installation.ts";
import type { IPPool } from "../api/resources/ip-pool.ts";
import type { Pod, Workload } from "../api/workload-objects.ts";
import type { ProbedEndpoint } from "./endpoint-probe.ts";

/** A resource that asks for a part by being there. */
export interface Request extends KubeObject {
  spec?: Record<string, unknown>;
  status?: { conditions?: Condition[] };
}

/**
 * Everything the operator decides from, at one moment. Plain data: whatever is decided from it can be decided again in a test.
 * Objects are shared with the caches and immutable.
 */
export interface Observed {
  /** Milliseconds since the epoch. */
  now: number;
  self: {
    namespace: string;
    version: string;
    deployment: Workload | undefined;
  };
  installations: readonly (Installation & KubeObject)[];
  apiServers: readonly Request[];
  flowLogs: readonly Request[];
  flowUIs: readonly Request[];
  endpointMap: KubeObject | undefined;
  /** What came of asking the API server at the address in the endpoint map; undefined while it was not asked. */
  probedEndpoint: ProbedEndpoint | undefined;
  nodes: readonly KubeObject[];
  /** Of the system namespace. */
  pods: readonly Pod[];
  /** What agents announced last, by node, also those whose pods have just gone. */
  lastAnnouncements: ReadonlyMap<string, DataplaneAnnouncement>;
  /** Of the system namespace. */
  workloads: readonly Workload[];
  dataplaneConfigurations: readonly (DataplaneConfiguration & KubeObject)[];
  pools: readonly (IPPool & KubeObject)[];
  /** The operator's own namespace and the system namespace. */
  secrets: readonly KubeObject[];
  activeOperator: KubeObject | undefined;
  platform: PlatformObjects;
}

/** What the platform shows of itself. */
export interface PlatformObjects {
  /** Names of the custom resource definitions there are. */
  definitions: readonly string[];
  /** Of the orchestrator's system namespace. */
  configMaps: readonly KubeObject[];
  daemonSets: readonly Workload[];
  /** Those that are not ours, as far as CNI plugins of others may be among them. */
  foreignDaemonSets: readonly Workload[];
  /** The orchestrator's own API service. */
  apiService: KubeObject | undefined;
  /** Objects in which the enterprise platform describes itself. */
  openshift: { network?: KubeObject; infrastructure?: KubeObject };
}

const { singleton } = vendorNames;

/** The resource that counts: the one named default. */
export function theOne<T extends KubeObject>(objects: readonly T[]): T | undefined {
  return objects.find((object) => object.metadata.name === singleton);
}

export function isLeaving(object: KubeObject | undefined): boolean {
  return object?.metadata.deletionTimestamp !== undefined;
}

export function serviceProxyOf(observed: Observed): Workload | undefined {
  return observed.platform.daemonSets.find(({ metadata }) => metadata.name === vendorNames.serviceProxy.daemonSet);
}

export function nodeAgents(observed: Observed): Workload | undefined {
  return observed.workloads.find(
    ({ kind, metadata }) => kind === "DaemonSet" && metadata.name === vendorNames.workloads.node,
  );
}

export function configMapData(observed: Observed, name: string, key: string): string | undefined {
  const map = observed.platform.configMaps.find(({ metadata }) => metadata.name === name);
  return (map?.["data"] as Record<string, string> | undefined)?.[key];
}

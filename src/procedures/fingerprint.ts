import type { KubeObject } from "../api/object.ts";
import { hashOf } from "./make-plan.ts";
import type { Observation } from "./observation.ts";

/** The facts of a cluster that plans are decided from, by name: in words where there are few, as a hash where there are many. */
export function fingerprint(seen: Observation): Record<string, string> {
  const { kind, service, proxy, v3, server } = seen;
  return {
    "cluster kind": kind.given ?? kind.detected ?? "unknown",
    "Kubernetes version": server.version,
    "API server": `${server.host}:${server.port}`,
    nodes: many(seen.nodes.map((node) => [node.name, node.operatingSystem, node.kernelVersion, node.architecture])),
    "install method": [service.method, service.variant, service.datastore].filter(Boolean).join(", "),
    "installed version": service.version ?? "none",
    Installation: written(service.installation),
    APIServer: written(service.apiServer),
    "flow logs": written(service.flowLogs),
    "flow UI": written(service.flowUI),
    "data plane configuration": written(service.dataplaneConfiguration),
    "data plane configurations of nodes": many(service.nodeConfigurations.map(written)),
    "kube-controllers configuration": written(service.kubeControllersConfiguration),
    "IP pools": many(service.pools.map(written)),
    "operator deployment": written(service.operator),
    "node agents": written(service.nodeAgents),
    "endpoint map": written(service.endpointMap),
    "chart release": service.release ? `${service.release.name} ${service.release.version}` : "none",
    "settings map": written(service.settings),
    injectors: many(service.injectors.map(written)),
    "service proxy": [proxy.daemonSet ? "there" : "none", proxy.mode, proxy.owner?.who, proxy.parked]
      .filter(Boolean)
      .join(", "),
    "cluster configuration": written(proxy.clusterConfiguration),
    definitions: many(seen.crds.map(({ name, hash }) => [name, hash])),
    "host endpoints": many(v3.hostEndpoints.map(written)),
    policies: many([...v3.globalNetworkPolicies, ...v3.networkPolicies].map(written)),
    "owner references": seen.owned === undefined ? "not read" : many(seen.owned),
    ...(seen.stored ? { "stored settings": many(usedFields(seen.stored.objects)) } : {}),
  };
}

export interface Drift {
  fact: string;
  was: string;
  is: string;
}

/** What is no longer as it was when a plan was made. */
export function driftSince(planned: Readonly<Record<string, string>>, now: Readonly<Record<string, string>>): Drift[] {
  const facts = [...new Set([...Object.keys(planned), ...Object.keys(now)])];
  return facts
    .map((fact) => ({ fact, was: planned[fact] ?? "unknown", is: now[fact] ?? "unknown" }))
    .filter(({ was, is }) => was !== is);
}

/** The kinds and fields that are in use: more objects of the same make no other upgrade. */
function usedFields(objects: readonly KubeObject[]): string[] {
  const found = new Set<string>();
  const walk = (value: unknown, path: string): void => {
    if (Array.isArray(value)) for (const item of value) walk(item, path);
    else if (typeof value === "object" && value !== null)
      for (const [name, inner] of Object.entries(value)) walk(inner, `${path}.${name}`);
    else found.add(path);
  };
  for (const { kind, spec } of objects) walk(spec ?? {}, kind);
  return [...found].sort();
}

const SHORT = 12;

/** What people wrote of an object. How it does is no part of the decision, and changes all the time. */
function written(object: KubeObject | undefined): string {
  if (object === undefined) return "none";
  const { status: _, metadata, ...rest } = object;
  const { name, namespace, labels } = metadata;
  return hashOf({ ...rest, name, namespace, labels }).slice(0, SHORT);
}

function many(values: readonly unknown[]): string {
  if (values.length === 0) return "none";
  const each = values.map((value) => hashOf(value)).sort();
  return `${values.length} (${hashOf(each).slice(0, SHORT)})`;
}

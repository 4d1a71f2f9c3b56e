import type { KubeObject } from "../../../api/object.ts";
import { controllerReference } from "../garbage/owner-references.ts";
import { isFinished, isReady } from "../pod-state.ts";
import { semanticEqual } from "../semantic-equal.ts";
import type { Endpoint, EndpointPort, EndpointSlice, Node, Pod, Service } from "../workload-types.ts";

export const MANAGED_BY = "endpointslice-controller.k8s.io";
export const SERVICE_NAME = "kubernetes.io/service-name";
export const MANAGED_BY_LABEL = "endpointslice.kubernetes.io/managed-by";
const HEADLESS_LABEL = "service.kubernetes.io/headless";
const MAX_ENDPOINTS = 100;

export interface ObservedService {
  service: Service;
  /** Those its selector matches. */
  pods: readonly Pod[];
  node(name: string): Node | undefined;
  /** The slices this controller made for it. */
  slices: readonly EndpointSlice[];
}

export interface SlicePlan {
  create: EndpointSlice[];
  update: EndpointSlice[];
  remove: EndpointSlice[];
}

/** A service whose endpoints are ours to write: it selects pods and is not just a DNS name. */
export function hasManagedEndpoints(service: Service): boolean {
  return service.spec.selector !== undefined && service.spec.type !== "ExternalName";
}

export function planEndpointSlices(observed: ObservedService): SlicePlan {
  const plan: SlicePlan = { create: [], update: [], remove: [] };
  const families = familiesOf(observed.service);
  for (const slice of observed.slices) {
    if (slice.addressType !== "IPv4" && slice.addressType !== "IPv6") plan.remove.push(slice);
    else if (!families.includes(slice.addressType)) plan.remove.push(slice);
  }
  for (const family of families) planFamily(observed, family, plan);
  return plan;
}

interface PortGroup {
  ports: EndpointPort[];
  endpoints: Map<string, Endpoint>;
}

function planFamily(observed: ObservedService, family: "IPv4" | "IPv6", plan: SlicePlan): void {
  const { service, slices } = observed;
  const groups = groupEndpoints(observed, family);
  // A service without endpoints still has one slice, so that a reader can distinguish "none" from "not reconciled yet".
  if (groups.size === 0) groups.set("[]", { ports: [], endpoints: new Map() });
  const existing = new Map<string, EndpointSlice[]>();
  for (const slice of slices) {
    if (slice.addressType !== family) continue;
    const key = JSON.stringify(slice.ports ?? []);
    existing.set(key, [...(existing.get(key) ?? []), slice]);
  }
  for (const [key, slicesOfGroup] of existing) {
    if (!groups.has(key)) plan.remove.push(...slicesOfGroup);
  }
  for (const [key, group] of groups) fillGroup(service, family, group, existing.get(key) ?? [], plan);
}

/** Keeps each endpoint in the slice it is in, fills the gaps, and opens new slices only for what is left over. */
function fillGroup(
  service: Service,
  family: "IPv4" | "IPv6",
  { ports, endpoints }: PortGroup,
  existing: readonly EndpointSlice[],
  plan: SlicePlan,
): void {
  const waiting = new Map(endpoints);
  const kept = existing.map((slice) => {
    const staying: Endpoint[] = [];
    for (const endpoint of slice.endpoints ?? []) {
      const wanted = waiting.get(identity(endpoint));
      if (!wanted) continue;
      staying.push(wanted);
      waiting.delete(identity(endpoint));
    }
    return { slice, endpoints: staying };
  });
  const queue = [...waiting.values()];
  for (const entry of kept) entry.endpoints.push(...queue.splice(0, MAX_ENDPOINTS - entry.endpoints.length));
  let empty = 0;
  for (const entry of kept) {
    const surplus = entry.endpoints.length === 0 && (endpoints.size > 0 || empty++ > 0);
    if (surplus) plan.remove.push(entry.slice);
    else revise(service, entry.slice, entry.endpoints, plan);
  }
  if (kept.length === 0 && queue.length === 0) plan.create.push(newSlice(service, family, ports, []));
  while (queue.length > 0) plan.create.push(newSlice(service, family, ports, queue.splice(0, MAX_ENDPOINTS)));
}

function revise(service: Service, slice: EndpointSlice, endpoints: Endpoint[], plan: SlicePlan): void {
  const labels = sliceLabels(service);
  if (semanticEqual(slice.endpoints ?? [], endpoints) && semanticEqual(slice.metadata.labels, labels)) return;
  plan.update.push({ ...slice, metadata: { ...slice.metadata, labels }, endpoints });
}

function newSlice(
  service: Service,
  addressType: "IPv4" | "IPv6",
  ports: EndpointPort[],
  endpoints: Endpoint[],
): EndpointSlice {
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      name: "",
      generateName: `${service.metadata.name}-`,
      namespace: service.metadata.namespace,
      labels: sliceLabels(service),
      ownerReferences: [controllerReference(service)],
    },
    addressType,
    endpoints,
    ports,
  };
}

function sliceLabels(service: Service): Record<string, string> {
  const labels = { ...service.metadata.labels };
  delete labels[HEADLESS_LABEL];
  if (service.spec.clusterIP === "None") labels[HEADLESS_LABEL] = "";
  return { ...labels, [SERVICE_NAME]: service.metadata.name, [MANAGED_BY_LABEL]: MANAGED_BY };
}

/** Pods may name their ports differently, so one service can need slices with different port numbers. */
function groupEndpoints(observed: ObservedService, family: "IPv4" | "IPv6"): Map<string, PortGroup> {
  const groups = new Map<string, PortGroup>();
  for (const pod of observed.pods) {
    const endpoint = endpointOf(observed, pod, family);
    if (!endpoint) continue;
    const ports = portsFor(observed.service, pod);
    const key = JSON.stringify(ports);
    const group = groups.get(key) ?? { ports, endpoints: new Map() };
    group.endpoints.set(identity(endpoint), endpoint);
    groups.set(key, group);
  }
  return groups;
}

function identity(endpoint: Endpoint): string {
  return endpoint.targetRef?.uid ?? endpoint.addresses[0] ?? "";
}

function endpointOf(observed: ObservedService, pod: Pod, family: "IPv4" | "IPv6"): Endpoint | undefined {
  const addresses = podAddresses(pod).filter((ip) => ip.includes(":") === (family === "IPv6"));
  if (addresses.length === 0 || isFinished(pod)) return undefined;
  const { service } = observed;
  const serving = isReady(pod);
  const terminating = pod.metadata.deletionTimestamp !== undefined;
  const ready = service.spec.publishNotReadyAddresses === true || (serving && !terminating);
  const { name, namespace, uid } = pod.metadata;
  const endpoint: Endpoint = {
    addresses: addresses.slice(0, 1),
    conditions: { ready, serving, terminating },
    targetRef: { kind: "Pod", name, namespace, uid },
  };
  if (pod.spec.nodeName) {
    endpoint.nodeName = pod.spec.nodeName;
    const zone = observed.node(pod.spec.nodeName)?.metadata.labels?.["topology.kubernetes.io/zone"];
    if (zone) endpoint.zone = zone;
  }
  if (pod.spec.hostname && pod.spec.subdomain === service.metadata.name) endpoint.hostname = pod.spec.hostname;
  return endpoint;
}

function podAddresses(pod: Pod): string[] {
  const all = pod.status?.podIPs?.map(({ ip }) => ip) ?? [];
  return all.length > 0 ? all : pod.status?.podIP ? [pod.status.podIP] : [];
}

function portsFor(service: Service, pod: Pod): EndpointPort[] {
  const ports: EndpointPort[] = [];
  for (const { name = "", port, targetPort, protocol = "TCP", appProtocol } of service.spec.ports ?? []) {
    const target = typeof targetPort === "string" ? namedPort(pod, targetPort, protocol) : targetPort || port;
    if (target === undefined) continue;
    ports.push(appProtocol ? { name, port: target, protocol, appProtocol } : { name, port: target, protocol });
  }
  return ports;
}

function namedPort(pod: Pod, name: string, protocol: string): number | undefined {
  if (/^\d+$/.test(name)) return Number(name);
  const containers = [
    ...pod.spec.containers,
    ...(pod.spec.initContainers ?? []).filter((container) => container.restartPolicy === "Always"),
  ];
  for (const container of containers) {
    const port = container.ports?.find((port) => port.name === name && (port.protocol ?? "TCP") === protocol);
    if (port) return port.containerPort;
  }
  return undefined;
}

function familiesOf({ spec }: Service): ("IPv4" | "IPv6")[] {
  if (spec.ipFamilies && spec.ipFamilies.length > 0) return spec.ipFamilies;
  const ips = spec.clusterIPs ?? (spec.clusterIP ? [spec.clusterIP] : []);
  const known = ips.filter((ip) => ip !== "None").map((ip) => (ip.includes(":") ? "IPv6" : "IPv4"));
  return known.length > 0 ? [...new Set(known)] : ["IPv4"];
}

/** The same in the shape clients used before there were slices. */
export function endpointsObject(service: Service, pods: readonly Pod[]): KubeObject {
  const family = familiesOf(service)[0];
  const subsets = new Map<string, { ready: object[]; notReady: object[]; ports: EndpointPort[] }>();
  for (const pod of [...pods].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))) {
    const ip = podAddresses(pod).find((address) => address.includes(":") === (family === "IPv6"));
    if (!ip || isFinished(pod) || pod.metadata.deletionTimestamp) continue;
    const ports = portsFor(service, pod);
    const key = JSON.stringify(ports);
    const subset = subsets.get(key) ?? { ready: [], notReady: [], ports };
    const { name, namespace, uid } = pod.metadata;
    const address = { ip, nodeName: pod.spec.nodeName, targetRef: { kind: "Pod", namespace, name, uid } };
    const ready = isReady(pod) || service.spec.publishNotReadyAddresses === true;
    (ready ? subset.ready : subset.notReady).push(address);
    subsets.set(key, subset);
  }
  const labels = { ...service.metadata.labels };
  if (service.spec.clusterIP === "None") labels[HEADLESS_LABEL] = "";
  return {
    apiVersion: "v1",
    kind: "Endpoints",
    metadata: { name: service.metadata.name, namespace: service.metadata.namespace, labels },
    subsets: [...subsets.values()].map(({ ready, notReady, ports }) => ({
      ...(ready.length > 0 ? { addresses: ready } : {}),
      ...(notReady.length > 0 ? { notReadyAddresses: notReady } : {}),
      ports,
    })),
  };
}

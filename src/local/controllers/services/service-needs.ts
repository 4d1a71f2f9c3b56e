import type { Service, ServicePort } from "../workload-types.ts";

/** What a service of its type needs from the allocator, and what an update keeps of the object before it. */
export function needsClusterIP({ spec }: Service): boolean {
  return spec.type !== "ExternalName";
}

export function needsNodePorts({ spec }: Service): boolean {
  return spec.type === "NodePort" || (spec.type === "LoadBalancer" && spec.allocateLoadBalancerNodePorts !== false);
}

export function needsHealthCheckPort({ spec }: Service): boolean {
  return spec.type === "LoadBalancer" && spec.externalTrafficPolicy === "Local";
}

export function portsOf({ spec }: Service): number[] {
  const ports = (spec.ports ?? []).map((port) => port.nodePort ?? 0);
  return [...new Set([...ports, spec.healthCheckNodePort ?? 0])].filter((port) => port > 0);
}

/**
 * Clients that replace a service often leave out what the server gave it; those values stay. And what a change of type makes
 * meaningless is dropped, unless the writer asked for it again.
 */
export function keepAllocated(service: Service, old: Service): void {
  if (needsClusterIP(service) && needsClusterIP(old)) keepAddresses(service, old);
  if (!needsClusterIP(service)) dropAddresses(service, old);
  if (needsNodePorts(service) && needsNodePorts(old)) keepNodePorts(service, old);
  if (!needsNodePorts(service)) dropNodePorts(service, old);
  if (needsHealthCheckPort(service) && needsHealthCheckPort(old)) {
    service.spec.healthCheckNodePort ||= old.spec.healthCheckNodePort;
  } else if (!needsHealthCheckPort(service) && service.spec.healthCheckNodePort === old.spec.healthCheckNodePort) {
    delete service.spec.healthCheckNodePort;
  }
}

function keepAddresses({ spec }: Service, old: Service): void {
  if (!spec.clusterIP && !spec.clusterIPs?.length) {
    spec.clusterIP = old.spec.clusterIP;
    spec.clusterIPs = [...(old.spec.clusterIPs ?? [])];
  } else if (!spec.clusterIPs?.length && spec.clusterIP === old.spec.clusterIP) {
    spec.clusterIPs = [...(old.spec.clusterIPs ?? [])];
  } else spec.clusterIP ||= spec.clusterIPs?.[0];
  spec.ipFamilyPolicy ??= old.spec.ipFamilyPolicy;
  spec.ipFamilies ??= old.spec.ipFamilies;
  if (spec.ipFamilyPolicy === "SingleStack" && old.spec.ipFamilyPolicy !== "SingleStack") {
    spec.ipFamilies = spec.ipFamilies?.slice(0, 1);
    spec.clusterIPs = spec.clusterIPs?.slice(0, 1);
  }
}

function dropAddresses({ spec }: Service, old: Service): void {
  if (spec.clusterIP !== old.spec.clusterIP) return;
  delete spec.clusterIP;
  delete spec.clusterIPs;
  delete spec.ipFamilies;
  delete spec.ipFamilyPolicy;
}

function keepNodePorts({ spec }: Service, old: Service): void {
  const slot = ({ protocol = "TCP", nodePort }: ServicePort) => `${protocol}/${nodePort ?? 0}`;
  const used = new Set((spec.ports ?? []).map(slot));
  for (const port of spec.ports ?? []) {
    if (port.nodePort) continue;
    const before = (old.spec.ports ?? []).find((candidate) => samePort(candidate, port));
    if (before?.nodePort && !used.has(slot(before))) {
      port.nodePort = before.nodePort;
      used.add(slot(before));
    }
  }
}

function dropNodePorts({ spec }: Service, old: Service): void {
  for (const port of spec.ports ?? []) {
    const before = (old.spec.ports ?? []).find((candidate) => samePort(candidate, port));
    if (port.nodePort === before?.nodePort) delete port.nodePort;
  }
}

function samePort(a: ServicePort, b: ServicePort): boolean {
  return a.port === b.port && (a.protocol ?? "TCP") === (b.protocol ?? "TCP");
}

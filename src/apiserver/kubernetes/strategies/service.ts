import type { KubeObject } from "../../../api/object.ts";
import type { StatusCause } from "../../../api/status.ts";
import type { Strategy } from "../../resource.ts";
import { ownSpec, type ServicePort, type ServiceSpec, specOf } from "../shapes.ts";
import { freshStatus } from "./fresh-status.ts";
import {
  causes,
  dnsLabel,
  duplicate,
  forbidden,
  invalid,
  portName,
  portNumber,
  required,
  routableAddress,
  unique,
} from "./rules.ts";

const STICKY_S = 10_800;
const HAS_NODE_PORTS = ["NodePort", "LoadBalancer"];

/** Addresses and node ports are given out elsewhere; this keeps them once given. */
export const serviceStrategy: Strategy = {
  setDefaults(service) {
    const spec = ownSpec<ServiceSpec>(service);
    spec.type ||= "ClusterIP";
    spec.sessionAffinity ||= "None";
    if (spec.sessionAffinity === "None") delete spec.sessionAffinityConfig;
    else spec.sessionAffinityConfig ??= { clientIP: { timeoutSeconds: STICKY_S } };
    for (const port of spec.ports ?? []) {
      port.protocol ||= "TCP";
      if (port.targetPort === undefined || port.targetPort === "" || port.targetPort === 0) port.targetPort = port.port;
    }
    if (spec.type === "ExternalName") return;
    spec.internalTrafficPolicy ||= "Cluster";
    if (HAS_NODE_PORTS.includes(spec.type)) spec.externalTrafficPolicy ||= "Cluster";
    if (spec.type === "LoadBalancer") spec.allocateLoadBalancerNodePorts ??= true;
  },
  prepareForCreate: freshStatus({ loadBalancer: {} }),
  prepareForUpdate: keepAllocated,
  validate(service) {
    const spec = specOf<ServiceSpec>(service);
    const ports = spec.ports ?? [];
    const portless = spec.clusterIP === "None" || spec.type === "ExternalName";
    return causes(
      ports.length === 0 && !portless && required("spec.ports"),
      spec.type === "ExternalName" && !spec.externalName && required("spec.externalName"),
      ports.flatMap((port, i) => portProblems(port, `spec.ports[${i}]`, ports.length > 1, spec.type ?? "")),
      unique(
        ports.map((port) => port.name),
        (i) => `spec.ports[${i}].name`,
      ),
      samePortTwice(ports),
      (spec.externalIPs ?? []).flatMap((ip, i) => routableAddress(`spec.externalIPs[${i}]`, ip)),
    );
  },
  validateUpdate(service, old) {
    const [next, before] = [specOf<ServiceSpec>(service), specOf<ServiceSpec>(old)];
    const given = before.clusterIP !== undefined && before.clusterIP !== "" && before.type !== "ExternalName";
    if (!given || next.type === "ExternalName" || next.clusterIP === before.clusterIP) return [];
    return [invalid("spec.clusterIPs[0]", next.clusterIPs ?? [next.clusterIP], "may not change once set")];
  },
};

function portProblems(port: ServicePort, path: string, named: boolean, type: string): StatusCause[] {
  const { targetPort } = port;
  return causes(
    named && !port.name && required(`${path}.name`),
    port.name ? dnsLabel(`${path}.name`, port.name) : [],
    portNumber(`${path}.port`, port.port),
    typeof targetPort === "number" ? portNumber(`${path}.targetPort`, targetPort) : [],
    typeof targetPort === "string" ? portName(`${path}.targetPort`, targetPort) : [],
    port.nodePort !== undefined &&
      port.nodePort !== 0 &&
      !HAS_NODE_PORTS.includes(type) &&
      forbidden(`${path}.nodePort`, `may not be used when \`type\` is '${type}'`),
  );
}

function samePortTwice(ports: readonly ServicePort[]): StatusCause[] {
  const seen = new Set<string>();
  return ports.flatMap(({ protocol, port }, i) => {
    const key = `${protocol}/${port}`;
    const again = seen.has(key);
    seen.add(key);
    return again ? [duplicate(`spec.ports[${i}]`, { protocol, port })] : [];
  });
}

const GIVEN_OUT = ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] as const;

/** A client that writes a service back without the addresses it was given means to keep them. */
function keepAllocated(service: KubeObject, old: KubeObject): void {
  const next = ownSpec<ServiceSpec & Record<string, unknown>>(service);
  const before = specOf<ServiceSpec & Record<string, unknown>>(old);
  if (next.type === "ExternalName" || before.type === "ExternalName") return;
  if (!next.clusterIP) {
    for (const field of GIVEN_OUT) {
      if (next[field] === undefined || next[field] === "") next[field] = before[field] as never;
      if (next[field] === undefined) delete next[field];
    }
  }
  if (!HAS_NODE_PORTS.includes(next.type ?? "")) return;
  for (const port of next.ports ?? []) {
    if (port.nodePort) continue;
    const same = before.ports?.find((one) => one.port === port.port && one.protocol === port.protocol);
    if (same?.nodePort) port.nodePort = same.nodePort;
  }
}

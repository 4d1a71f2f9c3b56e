import type { KubeObject } from "../../../api/object.ts";
import { FAILSAFE_PORTS } from "../../../api/tables/failsafe-ports.ts";
import { contains, parseCidr } from "../../../kit/ip.ts";
import type { Host } from "./rule-match.ts";

/** Who speaks to whom so that a cluster stays a cluster. */
interface ControlPlaneRow {
  what: string;
  protocol: "TCP" | "UDP";
  port: number | "apiServer";
  from: "nodes" | "controlPlane" | "anybody";
  to: "nodes" | "controlPlane" | "anybody";
}

export const CONTROL_PLANE = [
  { what: "API server", protocol: "TCP", port: "apiServer", from: "nodes", to: "controlPlane" },
  { what: "API server, for people", protocol: "TCP", port: "apiServer", from: "anybody", to: "controlPlane" },
  { what: "kubelet", protocol: "TCP", port: 10250, from: "controlPlane", to: "nodes" },
  { what: "etcd clients", protocol: "TCP", port: 2379, from: "controlPlane", to: "controlPlane" },
  { what: "etcd peers", protocol: "TCP", port: 2380, from: "controlPlane", to: "controlPlane" },
  { what: "names", protocol: "UDP", port: 53, from: "nodes", to: "anybody" },
] as const satisfies readonly ControlPlaneRow[];

export interface Failsafe {
  protocol?: string;
  port: number;
  net?: string;
}

export type Failsafes = Readonly<Record<"Ingress" | "Egress", readonly Failsafe[]>>;

/** An empty list in the configuration means none, which is not the same as no list. */
export function failsafesOf(configuration: KubeObject | undefined): Failsafes {
  const spec = (configuration?.["spec"] ?? {}) as Record<string, readonly Failsafe[] | undefined>;
  return {
    Ingress: spec["failsafeInboundHostPorts"] ?? FAILSAFE_PORTS.inbound,
    Egress: spec["failsafeOutboundHostPorts"] ?? FAILSAFE_PORTS.outbound,
  };
}

export function isFailsafe(
  failsafes: Failsafes,
  packet: { direction: "Ingress" | "Egress"; protocol: string; port: number; peer: Host | "anybody" },
): boolean {
  return failsafes[packet.direction].some(({ protocol = "TCP", port, net }) => {
    if (port !== packet.port || protocol.toUpperCase() !== packet.protocol) return false;
    const prefix = net === undefined ? undefined : parseCidr(net);
    if (prefix === undefined || prefix.length === 0) return true;
    return packet.peer !== "anybody" && packet.peer.addresses.every((address) => contains(prefix, address));
  });
}

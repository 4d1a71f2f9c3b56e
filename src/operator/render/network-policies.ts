import type { KubeObject } from "../../api/object.ts";
import { selectorOf } from "./control-plane.ts";
import type { RenderInputs } from "./inputs.ts";
import type { Place } from "./rbac.ts";

/** Who may open a connection to a port of ours, or whom we may open one to. */
interface PolicyDirection {
  ports: readonly number[];
  /** Pods of the system namespace by name; everyone where it is left out, because nodes have no labels to select by. */
  peer?: string;
  protocol?: "TCP" | "UDP";
}

/** Nothing reaches our pods and they reach nothing, but for what a policy of their own allows. Agents are on the node's network, beyond policy. */
export function defaultDeny(namespace: string): KubeObject {
  return policy({ name: "vendor-default-deny", namespace }, { podSelector: {}, policyTypes: ["Ingress", "Egress"] });
}

export function allow(
  place: Place,
  ingress: readonly PolicyDirection[],
  egress: readonly PolicyDirection[],
): KubeObject {
  return policy(place, {
    podSelector: { matchLabels: selectorOf(place.name) },
    policyTypes: ["Ingress", "Egress"],
    ...(ingress.length > 0 ? { ingress: ingress.map((way) => rule(way, "from")) } : {}),
    ...(egress.length > 0 ? { egress: egress.map((way) => rule(way, "to")) } : {}),
  });
}

/** Names and the API server. Its addresses are not known to a policy, its ports are: after a service is translated they are one of these. */
export function toApiServer({ apiEndpoint }: RenderInputs): PolicyDirection[] {
  const ports = new Set([443, 6443, ...(apiEndpoint ? [Number(apiEndpoint.port)] : [])]);
  return [...TO_DNS, { ports: [...ports].sort((a, b) => a - b) }];
}

/** 5353 is where the OpenShift-like platform's name servers listen. */
const TO_DNS: readonly PolicyDirection[] = [
  { ports: [53, 5353], protocol: "UDP" },
  { ports: [53, 5353], protocol: "TCP" },
];

function rule({ ports, peer, protocol = "TCP" }: PolicyDirection, direction: "from" | "to"): object {
  return {
    ...(peer ? { [direction]: [{ podSelector: { matchLabels: selectorOf(peer) } }] } : {}),
    ports: ports.map((port) => ({ protocol, port })),
  };
}

function policy(place: Place, spec: object): KubeObject {
  return { apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy", metadata: { ...place }, spec };
}

import { vendorNames } from "../../api/names.ts";
import { groupVersion } from "../../api/object.ts";
import type { PolicyHit } from "../../api/protocol/flow.ts";
import { NAME_LABEL } from "../../api/resources/profile-names.ts";

/** Rules and policies as objects, in the words of Kubernetes and in ours. */

export type Fields = Record<string, unknown>;
export type Labels = Readonly<Record<string, string>>;
type Direction = PolicyHit["direction"];

export const DEFAULT_TIER = "default";
const KUBERNETES_PROTOCOLS: readonly string[] = ["TCP", "UDP", "SCTP"];

/** Whether a NetworkPolicy of Kubernetes can name the protocol. */
export function isKubernetesProtocol(protocol: string): boolean {
  return KUBERNETES_PROTOCOLS.includes(protocol);
}

/** Port 0: all of the protocol. */
export interface RulePort {
  protocol: string;
  port: number;
}

export function kubernetesRule(direction: Direction, peers: readonly Fields[], ports: readonly RulePort[]): Fields {
  const named = ports.map(({ protocol, port }) => ({ protocol, ...(port === 0 ? {} : { port }) }));
  return { [direction === "Egress" ? "to" : "from"]: peers, ports: named };
}

/** `namespace`: another one than the policy's. Without labels: all pods there. */
export function kubernetesPeer({ namespace, labels }: { namespace?: string; labels?: Labels | undefined }): Fields {
  const namespaceSelector = { matchLabels: { "kubernetes.io/metadata.name": namespace } };
  return {
    ...(namespace === undefined ? {} : { namespaceSelector }),
    ...(labels ? { podSelector: { matchLabels: labels } } : {}),
  };
}

/** Of one protocol; `peer` has selectors or prefixes. */
export function allowRule(direction: Direction, peer: Fields, protocol: string, ports: readonly number[]): Fields {
  const named = ports.length === 0 ? {} : { ports };
  const sides = direction === "Egress" ? { destination: { ...peer, ...named } } : { source: peer, destination: named };
  const asked = Object.entries(sides).filter(([, side]) => Object.keys(side).length > 0);
  // One without a name has its number.
  const numbered = /^\d+$/.test(protocol) ? Number(protocol) : protocol;
  return { action: "Allow", protocol: numbered, ...Object.fromEntries(asked) };
}

/** `namespace`: another one than the policy's; empty: what is in none. */
export function selectingPeer(namespace: string | undefined, selector: string): Fields {
  const within = namespace === "" ? "global()" : `${NAME_LABEL} == "${namespace}"`;
  return {
    ...(namespace === undefined ? {} : { namespaceSelector: within }),
    ...(selector === "" ? {} : { selector }),
  };
}

export function selectorText(labels: Labels): string {
  return Object.entries(labels)
    .map(([label, value]) => `${label} == "${value}"`)
    .join(" && ");
}

export interface PolicyParts {
  kubernetes: boolean;
  tier: string;
  namespace: string;
  name: string;
  /** Of the pods that it selects. */
  labels: Labels;
  rules: Readonly<Partial<Record<Direction, readonly Fields[]>>>;
}

export function policyObject({ kubernetes, tier, namespace, name, labels, rules }: PolicyParts) {
  const types = Object.keys(rules);
  const lists = Object.fromEntries(Object.entries(rules).map(([direction, list]) => [direction.toLowerCase(), list]));
  if (kubernetes) {
    return {
      ...{ apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy", metadata: { name, namespace } },
      spec: { podSelector: { matchLabels: labels }, policyTypes: types, ...lists },
    };
  }
  return {
    ...{ apiVersion: groupVersion(vendorNames.groups.served), kind: "NetworkPolicy" },
    metadata: { name: tier === DEFAULT_TIER ? name : `${tier}.${name}`, namespace },
    spec: { tier, selector: selectorText(labels), types, ...lists },
  };
}

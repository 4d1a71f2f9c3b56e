import type { KubeObject } from "../../api/object.ts";
import { podMac } from "../../api/protocol/pod-network.ts";
import { DERIVED_LABELS, isDerivedLabel, ORCHESTRATOR } from "../../api/resources/derived-labels.ts";
import type { HostEndpoint } from "../../api/resources/host-endpoint.ts";
import type { NetworkSet } from "../../api/resources/network-set.ts";
import {
  NAME_LABEL,
  NAMESPACE_LABEL_PREFIX,
  profileName,
  SERVICE_ACCOUNT_LABEL_PREFIX,
} from "../../api/resources/profile-names.ts";
import { protocolNumber } from "../../api/tables/protocols.ts";
import type { Net } from "../model.ts";
import { toNets } from "../nets.ts";

/** Something selectors find: it has labels, addresses, and maybe names for ports. */
export interface LabeledEndpoint {
  id: string;
  labels: Readonly<Record<string, string>>;
  nets: Net[];
  ports: readonly NamedPort[];
  /** `NAMESPACE/NAME`: it is this service account itself. */
  account?: string;
}

export interface NamedPort {
  name: string;
  protocol: number;
  port: number;
}

/** A pod with a network of its own. */
export interface Workload extends LabeledEndpoint {
  /** `NAMESPACE/POD`, the endpoint's id. */
  endpoint: string;
  node: string;
  mac: string | null;
  /** Profiles it has by where it is, in the order they are asked. */
  profiles: string[];
}

interface PodSpec {
  nodeName?: string;
  hostNetwork?: boolean;
  serviceAccountName?: string;
  containers?: Container[];
  initContainers?: Container[];
}

interface Container {
  restartPolicy?: string;
  ports?: { name?: string; containerPort?: number; protocol?: string }[];
}

/** What a pod hands its labels on from, and what it has by the rules of `PodAddresses`. */
export interface PodFacts {
  namespace: KubeObject | undefined;
  account: KubeObject | undefined;
  nets: Net[];
  mac: string | null;
  /** Another CNI plugin made its interface: what our annotations say of it is not ours. */
  foreign: boolean;
}

/** Not so of pods on the host's network, not placed yet, or finished. */
export function hasOwnNetwork(pod: KubeObject): boolean {
  const spec = (pod["spec"] ?? {}) as PodSpec;
  const phase = ((pod["status"] ?? {}) as { phase?: string }).phase;
  return !spec.hostNetwork && Boolean(spec.nodeName) && phase !== "Succeeded" && phase !== "Failed";
}

/** Undefined for pods without a network of their own, or without an address yet. */
export function workloadOf(
  pod: KubeObject,
  { namespace, account, nets, mac, foreign }: PodFacts,
): Workload | undefined {
  const spec = (pod["spec"] ?? {}) as PodSpec;
  if (nets.length === 0 || !spec.nodeName || !hasOwnNetwork(pod)) return undefined;
  const { name, namespace: within = "default", labels } = pod.metadata;
  const accountName = serviceAccountOf(pod);
  return {
    id: `pod ${within}/${name}`,
    labels: {
      ...ownLabels(labels),
      ...handedOn(NAMESPACE_LABEL_PREFIX, namespace),
      ...handedOn(SERVICE_ACCOUNT_LABEL_PREFIX, account),
      [DERIVED_LABELS.namespace]: within,
      [DERIVED_LABELS.orchestrator]: ORCHESTRATOR,
      [DERIVED_LABELS.serviceAccount]: accountName,
    },
    nets,
    ports: portsOf(spec),
    endpoint: `${within}/${name}`,
    node: spec.nodeName,
    mac: mac ?? (foreign ? null : (podMac(pod) ?? null)),
    profiles: [
      profileName({ of: "namespace", namespace: within }),
      profileName({ of: "serviceAccount", namespace: within, name: accountName }),
    ],
  };
}

export function serviceAccountOf(pod: KubeObject): string {
  return ((pod["spec"] ?? {}) as PodSpec).serviceAccountName || "default";
}

/** A service account with the labels its pods have of it, so that one selector asks the same of both. */
export function labeledAccount(account: KubeObject, namespace: KubeObject | undefined): LabeledEndpoint {
  const { name, namespace: within = "default" } = account.metadata;
  return {
    id: `account ${within}/${name}`,
    labels: {
      ...handedOn(NAMESPACE_LABEL_PREFIX, namespace),
      ...handedOn(SERVICE_ACCOUNT_LABEL_PREFIX, account),
      [DERIVED_LABELS.namespace]: within,
      [DERIVED_LABELS.serviceAccount]: name,
    },
    nets: [],
    ports: [],
    account: `${within}/${name}`,
  };
}

export function labeledNetworkSet(set: NetworkSet, namespace: KubeObject | undefined): LabeledEndpoint {
  const { name, namespace: within, labels } = set.metadata;
  const derived =
    within === undefined ? {} : { ...handedOn(NAMESPACE_LABEL_PREFIX, namespace), [DERIVED_LABELS.namespace]: within };
  return {
    id: within === undefined ? `gns ${name}` : `ns ${within}/${name}`,
    labels: { ...ownLabels(labels), ...derived },
    nets: toNets(set.spec?.nets),
    ports: [],
  };
}

/** Labels of its profiles are the endpoint's too, where it has none of the same key itself. */
export function labeledHostEndpoint(
  endpoint: HostEndpoint,
  labelsOfProfile: (name: string) => Readonly<Record<string, string>> | undefined,
): LabeledEndpoint {
  const { name, labels } = endpoint.metadata;
  const inherited = [...(endpoint.spec.profiles ?? [])].reverse().map(labelsOfProfile);
  return {
    id: `hep ${name}`,
    labels: ownLabels(Object.assign({}, ...inherited, labels) as Record<string, string>),
    nets: toNets(endpoint.spec.expectedIPs),
    ports: (endpoint.spec.ports ?? []).flatMap(({ name: port, port: number, protocol }) => {
      const known = protocolNumber(protocol);
      return known === undefined ? [] : [{ name: port, protocol: known, port: number }];
    }),
  };
}

/** Without the keys the service derives: set by hand they would let a thing pass for one of another namespace or account. */
function ownLabels(labels: Readonly<Record<string, string>> | undefined): Record<string, string> {
  return Object.fromEntries(Object.entries(labels ?? {}).filter(([key]) => !isDerivedLabel(key)));
}

/** Labels of a namespace or an account as its pods have them; its name is one of them. */
function handedOn(prefix: string, object: KubeObject | undefined): Record<string, string> {
  if (!object) return {};
  const labels = { ...object.metadata.labels, [NAME_LABEL]: object.metadata.name };
  return Object.fromEntries(Object.entries(labels).map(([key, value]) => [`${prefix}${key}`, value]));
}

/** Names given by containers that go on running; of those that prepare the pod, only by the ones that stay. */
function portsOf({ containers = [], initContainers = [] }: PodSpec): NamedPort[] {
  const running = [...containers, ...initContainers.filter(({ restartPolicy }) => restartPolicy === "Always")];
  return running.flatMap(({ ports = [] }) =>
    ports.flatMap(({ name, containerPort, protocol = "TCP" }) => {
      const number = protocolNumber(protocol);
      return name && containerPort && number !== undefined ? [{ name, protocol: number, port: containerPort }] : [];
    }),
  );
}

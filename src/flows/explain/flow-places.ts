import type { KubeObject } from "../../api/object.ts";
import type { FlowEnd } from "../../api/protocol/flow.ts";
import { statusAddresses } from "../../api/protocol/pod-network.ts";
import { workloadEnd } from "../../api/protocol/workload-end.ts";
import { addressOf, isV4, toAddress } from "../../calc/nets.ts";
import { hasOwnNetwork } from "../../calc/policy/labeled-endpoints.ts";
import type { ClusterObjects } from "./cluster-objects.ts";

/** An address that an end of a flow has now. */
export interface FlowPlace {
  at: "workload" | "host" | "outside";
  address: string;
  /** Undefined: it is outside of the cluster. */
  node: string | undefined;
  /** `NAMESPACE/POD`, of a workload. */
  pod: string | undefined;
}

/** A source and a destination of one family; `unknown` says of which end there is no address, or that they have no family in common. */
export type FlowPlaces =
  | { from: FlowPlace; to: FlowPlace }
  | { unknown: "from" | "to" | "family"; from: FlowPlace | undefined; to: FlowPlace | undefined };

/** Addresses that the flow was counted with come first; a workload that speaks to itself does so with another pod. */
export function flowPlaces(
  { from, to }: { from: FlowEnd; to: FlowEnd },
  recorded: { sources: readonly string[]; destinations: readonly string[] },
  objects: ClusterObjects,
): FlowPlaces {
  const sources = placesOf(from, recorded.sources, objects);
  const destinations = placesOf(to, recorded.destinations, objects);
  const first = { from: sources[0], to: destinations[0] };
  if (!first.from) return { unknown: "from", ...first };
  if (!first.to) return { unknown: "to", ...first };
  for (const source of sources) {
    const same = destinations.filter(({ address }) => isV4(address) === isV4(source.address));
    const other = same.find(({ pod }) => pod === undefined || pod !== source.pod);
    const chosen = other ?? same[0];
    if (chosen) return { from: source, to: chosen };
  }
  return { unknown: "family", ...first };
}

function placesOf(end: FlowEnd, recorded: readonly string[], objects: ClusterObjects): FlowPlace[] {
  const places = knownPlaces(end, recorded, objects);
  const wasThere = ({ address }: FlowPlace) => recorded.includes(address);
  return [...places.filter(wasThere), ...places.filter((place) => !wasThere(place))];
}

function knownPlaces(end: FlowEnd, recorded: readonly string[], objects: ClusterObjects): FlowPlace[] {
  const named = (name: "nodes" | "hostEndpoints") =>
    (objects.get(name) ?? []).filter(({ metadata }) => metadata.name === end.name);
  switch (end.type) {
    case "Workload":
      return podsOf(end, objects).flatMap(podPlaces);
    case "Node":
      return named("nodes").flatMap(nodePlaces);
    case "HostEndpoint":
      return named("hostEndpoints").flatMap((endpoint) => hostEndpointPlaces(endpoint, objects));
    default:
      return outsidePlaces(recorded.length > 0 ? recorded : netsOf(end, objects));
  }
}

function podsOf(end: FlowEnd, objects: ClusterObjects): KubeObject[] {
  const isOf = (pod: KubeObject) => {
    if (pod.metadata.namespace !== end.namespace || !hasOwnNetwork(pod)) return false;
    const { name, kind } = workloadEnd(pod);
    return name === end.name && (end.kind === undefined || kind === end.kind);
  };
  return (objects.get("pods") ?? []).filter(isOf);
}

function podPlaces(pod: KubeObject): FlowPlace[] {
  const { nodeName } = pod["spec"] as { nodeName?: string };
  const id = `${pod.metadata.namespace}/${pod.metadata.name}`;
  return statusAddresses(pod).map((net) => ({ at: "workload", address: addressOf(net), node: nodeName, pod: id }));
}

function nodePlaces(node: KubeObject): FlowPlace[] {
  const { addresses = [] } = (node["status"] ?? {}) as { addresses?: { type?: string; address?: string }[] };
  return addresses
    .filter(({ type }) => type !== "Hostname")
    .flatMap(({ address = "" }) => hostPlaces(node.metadata.name, [address]));
}

function hostEndpointPlaces({ spec }: KubeObject, objects: ClusterObjects): FlowPlace[] {
  const { node = "", expectedIPs = [] } = (spec ?? {}) as { node?: string; expectedIPs?: string[] };
  const own = hostPlaces(node, expectedIPs);
  if (own.length > 0) return own;
  return (objects.get("nodes") ?? []).filter(({ metadata }) => metadata.name === node).flatMap(nodePlaces);
}

function hostPlaces(node: string, addresses: readonly string[]): FlowPlace[] {
  return addresses.flatMap((text) => {
    const address = toAddress(text);
    return address === undefined ? [] : [{ at: "host" as const, address, node, pod: undefined }];
  });
}

function outsidePlaces(addresses: readonly string[]): FlowPlace[] {
  return addresses.map((address) => ({ at: "outside", address, node: undefined, pod: undefined }));
}

/** The first address of each prefix of a network set. */
function netsOf({ type, namespace, name }: FlowEnd, objects: ClusterObjects): string[] {
  if (type !== "NetworkSet") return [];
  const sets = objects.get(namespace === "" ? "globalNetworkSets" : "networkSets") ?? [];
  const found = sets.find(({ metadata }) => metadata.name === name && (metadata.namespace ?? "") === namespace);
  const { nets = [] } = (found?.["spec"] ?? {}) as { nets?: string[] };
  return nets.flatMap((net) => toAddress(net.split("/", 1)[0] ?? "") ?? []);
}

import type { Allocation } from "../../api/resources/ipam-allocation.ts";
import { FURTHER_NETWORKS_ANNOTATION, type Pod } from "../orchestrator-objects.ts";

/** What is alive, as far as addresses are concerned. */
export interface LiveObjects {
  hasNode(name: string): boolean;
  pod(namespace: string, name: string): Pod | undefined;
  /** Some running pod reports this address, whatever its handle. */
  isReported(address: string): boolean;
}

/**
 * Whether an address may be in use. In doubt it is: a pod that has not said its addresses yet may have this one, and so may one with
 * further networks, which are not in its status.
 */
export function mayBeInUse({ address, owner }: Allocation, world: LiveObjects): boolean {
  if (world.isReported(address)) return true;
  switch (owner.kind) {
    case "unknown":
    // Released by the controller of load balancers, which knows its Services.
    case "service":
      return true;
    case "tunnel":
    case "node":
      return world.hasNode(owner.node);
    case "pod": {
      const pod = world.pod(owner.namespace, owner.name);
      return pod !== undefined && mayHave(pod, address, owner.node);
    }
  }
}

/** Whether a pod may have an address that was given out for a pod of its name, on this node. */
export function mayHave(pod: Pod, address: string, node: string | undefined): boolean {
  if (isFinished(pod)) return false;
  const addresses = addressesOf(pod);
  if (addresses.includes(address)) return true;
  // The same name elsewhere is another pod: a stateful set's, started again on another node.
  const { nodeName } = pod.spec ?? {};
  if (nodeName && node && nodeName !== node) return false;
  return addresses.length === 0 || pod.metadata.annotations?.[FURTHER_NETWORKS_ANNOTATION] !== undefined;
}

interface Watched {
  nodes: { get(name: string): unknown };
  /** By `NAMESPACE/NAME`. */
  pods: { get(key: string): Pod | undefined; list(): readonly Pod[] };
}

export function liveObjects({ nodes, pods }: Watched): LiveObjects {
  const reported = reportedAddresses(pods.list());
  return {
    hasNode: (name) => nodes.get(name) !== undefined,
    pod: (namespace, name) => pods.get(`${namespace}/${name}`),
    isReported: (address) => reported.has(address),
  };
}

/** Every address a living pod says it has. */
function reportedAddresses(pods: readonly Pod[]): Set<string> {
  return new Set(pods.flatMap((pod) => (isFinished(pod) ? [] : addressesOf(pod))));
}

/** Its network is gone for good; the object stays only to be read. */
export function isFinished({ status }: Pod): boolean {
  return status?.phase === "Succeeded" || status?.phase === "Failed";
}

export function addressesOf({ status }: Pod): string[] {
  const all = [...(status?.podIPs ?? []).map(({ ip }) => ip), status?.podIP];
  return all.filter((address): address is string => address !== undefined && address !== "");
}

import type { KubeObject } from "../../api/object.ts";
import { isOurInterface, podInterfaceName, statusAddresses } from "../../api/protocol/pod-network.ts";
import type { Owner } from "../../ipam/block-edits.ts";
import { handleId } from "../../ipam/handles.ts";
import type { AddressesInUse, LocalAddress } from "../../ipam/in-use.ts";
import { formatAddress, parseAddress } from "../../kit/ip.ts";
import type { PodRecord } from "../pods/pod-records.ts";

interface InUseSources {
  node: string;
  /** Of the whole cluster. */
  pods: readonly KubeObject[];
  records: readonly PodRecord[];
  /** Routes of this node to single addresses, with the name of their interface. */
  routes: readonly { address: string; interfaceName: string }[];
  /** Whether this agent has disconnected the pod: then its status repeats an address that was released. */
  wasDisconnected(namespace: string, pod: string): boolean;
}

/**
 * From the node's own records first: they have the handle under which a DEL releases. Then routes to pod interfaces, and the status of
 * pods, which survive an uninstall and another CNI. Only pods that the cluster knows are claimed for: garbage collection would release the rest.
 */
export function addressesInUse(sources: InUseSources): AddressesInUse {
  const living = sources.pods.filter(hasOwnNetwork);
  const users = new Map<string, string[]>();
  const use = (address: string, user: string) => {
    const list = users.get(address);
    if (!list) users.set(address, [user]);
    else if (!list.includes(user)) list.push(user);
  };
  const local = new Map<string, LocalAddress>();
  const claim = (address: string, owner: Owner) => {
    if (!local.has(address)) local.set(address, { address, owner });
  };
  const here = new Map(living.filter((pod) => nodeOf(pod) === sources.node).map((pod) => [keyOf(pod), pod]));
  const recorded = new Set<string>();
  for (const { namespace, pod, handle, addresses, hostLocal } of newestRecords(sources.records)) {
    const key = `${namespace}/${pod}`;
    recorded.add(key);
    for (const address of addresses.flatMap(normalized)) {
      use(address, key);
      if (here.has(key) && !hostLocal) claim(address, { handle, facts: { node: sources.node, namespace, pod } });
    }
  }
  const byInterface = new Map([...here.values()].map((pod) => [interfaceOf(pod), pod]));
  for (const { address: text, interfaceName } of sources.routes) {
    if (!isOurInterface(interfaceName)) continue;
    const pod = byInterface.get(interfaceName);
    for (const address of normalized(text)) {
      use(address, pod ? keyOf(pod) : interfaceName);
      if (pod && !recorded.has(keyOf(pod))) claim(address, ownerByStatus(pod, sources.node));
    }
  }
  for (const pod of living) {
    const { namespace = "", name, deletionTimestamp } = pod.metadata;
    const isUnrecorded = here.has(keyOf(pod)) && !recorded.has(keyOf(pod));
    // Kept by a finalizer after its DEL: the status repeats an address that was released. If its interface is still here, the routes have it.
    if (isUnrecorded && (deletionTimestamp !== undefined || sources.wasDisconnected(namespace, name))) continue;
    for (const address of statusAddresses(pod).map((prefix) => prefix.split("/")[0] as string)) {
      use(address, keyOf(pod));
      if (isUnrecorded) claim(address, ownerByStatus(pod, sources.node));
    }
  }
  return { local: [...local.values()], users };
}

/** Of several sandboxes of one pod the newest has the interface. The record written last comes last. */
function newestRecords(records: readonly PodRecord[]): PodRecord[] {
  const newest = new Map<string, PodRecord>();
  for (const record of records) {
    if (record.state !== "removing") newest.set(`${record.namespace}/${record.pod}/${record.ifname}`, record);
  }
  return [...newest.values()];
}

/** No container is known: the pod's own identity makes the handle. Released by garbage collection once the pod is gone. */
function ownerByStatus({ metadata }: KubeObject, node: string): Owner {
  const { namespace = "", name, uid = "" } = metadata;
  return { handle: handleId("pod-in-use", namespace, name, uid), facts: { node, namespace, pod: name } };
}

/** Not on the network of its node, and not finished: the network of a finished pod is gone, and its object stays only to be read. */
function hasOwnNetwork(pod: KubeObject): boolean {
  const { hostNetwork } = (pod["spec"] ?? {}) as { hostNetwork?: boolean };
  const { phase } = (pod["status"] ?? {}) as { phase?: string };
  return !hostNetwork && phase !== "Succeeded" && phase !== "Failed";
}

function nodeOf(pod: KubeObject): string | undefined {
  return ((pod["spec"] ?? {}) as { nodeName?: string }).nodeName;
}

function interfaceOf({ metadata: { namespace = "", name } }: KubeObject): string {
  return podInterfaceName(namespace, name);
}

function keyOf({ metadata: { namespace = "", name } }: KubeObject): string {
  return `${namespace}/${name}`;
}

function normalized(text: string): string[] {
  const parsed = parseAddress(text);
  return parsed ? [formatAddress(parsed)] : [];
}

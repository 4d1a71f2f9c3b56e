import type { KubeObject } from "../../api/object.ts";
import type { AddressesInUse } from "../../ipam/in-use.ts";
import type { NetlinkPort } from "../../kernel/netlink/netlink-port.ts";
import { addressesInUse } from "../ipam/addresses-in-use.ts";
import type { PodRecords } from "./pod-records.ts";
import { singleAddresses } from "./pod-routes.ts";

interface Sources {
  records: PodRecords;
  netlink: Pick<NetlinkPort, "links" | "routes">;
  /** Of the whole cluster, as watched. */
  pods(): readonly KubeObject[];
}

/** Reads what is in use each time it is called: from disk, the kernel, and the pods of the cluster. */
export function addressesOfNode(node: string, { records, netlink, pods }: Sources): () => AddressesInUse {
  const disconnected = new Set<string>();
  records.onChange(({ namespace, pod }) => {
    if (records.ofPod(namespace, pod)) disconnected.delete(`${namespace}/${pod}`);
    else disconnected.add(`${namespace}/${pod}`);
  });
  return () => {
    const known = pods();
    const names = new Set(known.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`));
    for (const key of disconnected) if (!names.has(key)) disconnected.delete(key);
    return addressesInUse({
      ...{ node, pods: known, records: records.list(), routes: singleAddresses(netlink) },
      // Also while the release is under way: the block may have lost the address already, and the record stays until the end.
      wasDisconnected: (namespace, pod) =>
        disconnected.has(`${namespace}/${pod}`) || records.ofPod(namespace, pod)?.state === "removing",
    });
  };
}

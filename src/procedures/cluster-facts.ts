import type { ClusterKind } from "../api/tables/cluster-kinds.ts";
import type { ClusterFacts } from "../api/validation/facts.ts";
import type { Observation } from "./observation.ts";

/** The kind rules go by: what was detected or said; a cluster that shows nothing is a plain one. */
export function kindOf({ kind }: Pick<Observation, "kind">): ClusterKind {
  return kind.detected ?? kind.given ?? "generic";
}

type Facts = Pick<Observation, "kind" | "nodes" | "service" | "proxy" | "apiAddress">;

/** What the rules of `src/api/validation` may know of this cluster. */
export function clusterFacts(
  seen: Omit<Facts, "apiAddress"> & { apiAddress: Omit<Facts["apiAddress"], "candidates"> },
): ClusterFacts {
  const { service, nodes, apiAddress } = seen;
  const mode = proxyMode(seen.proxy);
  return {
    kind: kindOf(seen),
    ...(service.datastore === "unknown" ? {} : { datastore: service.datastore }),
    nodes,
    apiClusterIPs: apiAddress.clusterIPs,
    serviceCidrs: apiAddress.serviceCidrs,
    podCidrs: apiAddress.podCidrs,
    ...(service.version ? { version: service.version } : {}),
    ...(mode ? { serviceProxyMode: mode } : {}),
  };
}

function proxyMode({ daemonSet, parked, mode }: Observation["proxy"]): ClusterFacts["serviceProxyMode"] {
  if (!daemonSet || parked) return "none";
  if (mode === "unknown") return undefined;
  return mode === "userspace" ? "iptables" : mode;
}

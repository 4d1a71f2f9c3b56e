import { isDeepStrictEqual } from "node:util";
import type { HostEndpoint } from "../../api/resources/host-endpoint.ts";
import type { Stored } from "../informers.ts";
import { isOurs } from "../stored-kinds.ts";

export type StoredEndpoint = Stored<HostEndpoint>;

/** What to do for one node. Made before removed, so that a node that changes is not without an endpoint in between. */
export interface EndpointPlan {
  create: HostEndpoint[];
  /** Each is the live object with our labels and specification: its resource version makes the write a compare-and-swap. */
  replace: StoredEndpoint[];
  remove: StoredEndpoint[];
  /** Desired, but another owner has the name: left alone, and reported. */
  conflicts: { wanted: HostEndpoint; taken: StoredEndpoint | undefined }[];
}

export interface EndpointsSeen {
  wanted: readonly HostEndpoint[];
  /** By name, whatever its owner. */
  present: (name: string) => StoredEndpoint | undefined;
  /** Ours, for this node. */
  ours: readonly StoredEndpoint[];
  /** The name is wanted for another node. */
  claimedElsewhere: (name: string) => boolean;
}

export function planEndpoints({ wanted, present, ours, claimedElsewhere }: EndpointsSeen): EndpointPlan {
  const plan: EndpointPlan = { create: [], replace: [], remove: [], conflicts: [] };
  const names = new Set(wanted.map(({ metadata }) => metadata.name));
  for (const endpoint of wanted) {
    const live = present(endpoint.metadata.name);
    if (claimedElsewhere(endpoint.metadata.name)) plan.conflicts.push({ wanted: endpoint, taken: live });
    else if (!live) plan.create.push(endpoint);
    else if (!isOurs(live)) plan.conflicts.push({ wanted: endpoint, taken: live });
    else if (!isAsWanted(live, endpoint)) plan.replace.push(corrected(live, endpoint));
  }
  // One that only says it is for this node is put right by the node that wants its name.
  plan.remove = ours.filter(({ metadata: { name } }) => !names.has(name) && !claimedElsewhere(name));
  return plan;
}

function isAsWanted(live: StoredEndpoint, wanted: HostEndpoint): boolean {
  return isDeepStrictEqual(live.spec, wanted.spec) && isDeepStrictEqual(live.metadata.labels, wanted.metadata.labels);
}

/** Annotations and finalizers are not compared. */
function corrected(live: StoredEndpoint, wanted: HostEndpoint): StoredEndpoint {
  return { ...live, metadata: { ...live.metadata, labels: wanted.metadata.labels }, spec: wanted.spec };
}

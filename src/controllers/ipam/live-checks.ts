import type { KubeObject, ObjectRef, ResourceKind } from "../../api/object.ts";
import type { Allocation } from "../../api/resources/ipam-allocation.ts";
import type { Client } from "../../cluster/client.ts";
import { isNotFound } from "../../cluster/failures.ts";
import { NODES, PODS } from "../../cluster/kinds.ts";
import type { Pod } from "../orchestrator-objects.ts";
import { mayHave } from "./live-objects.ts";

/** The last check before a release, a live read from the API server: a cache can be behind, or silently stuck. */
export interface LiveChecks {
  isNodeDeleted(name: string): Promise<boolean>;
  isAbandoned(allocation: Allocation): Promise<boolean>;
}

/** Answers about nodes are kept for as long as these checks are: one sweep. */
export function liveChecks(client: Client): LiveChecks {
  const nodes = new Map<string, Promise<boolean>>();
  const isNodeGone = (name: string): Promise<boolean> => {
    const asked = nodes.get(name) ?? getIfThere(client, NODES, { name }).then((node) => node === undefined);
    nodes.set(name, asked);
    return asked;
  };
  return {
    isNodeDeleted: isNodeGone,
    async isAbandoned({ address, owner }) {
      if (owner.kind === "unknown" || owner.kind === "service") return false;
      if (owner.kind !== "pod") return await isNodeGone(owner.node);
      const pod = await getIfThere<Pod>(client, PODS, { namespace: owner.namespace, name: owner.name });
      return pod === undefined || !mayHave(pod, address, owner.node);
    },
  };
}

/** Undefined only if the server says that there is no such object. */
export async function getIfThere<T extends KubeObject>(
  client: Client,
  kind: ResourceKind,
  ref: ObjectRef,
): Promise<T | undefined> {
  try {
    return await client.get<T>(kind, ref);
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

import type { KubeObject } from "../api/object.ts";
import type { Client } from "../cluster/client.ts";
import { ENDPOINT_SLICES } from "../cluster/kinds.ts";

interface EndpointSlice extends KubeObject {
  endpoints?: { nodeName?: string; conditions?: { ready?: boolean } }[] | null;
}

/** The nodes on which a pod of some service answers, by name. */
export async function servingNodes(client: Client, signal: AbortSignal): Promise<string[]> {
  const { items } = await client.list<EndpointSlice>(ENDPOINT_SLICES, { signal });
  const answering = items
    .flatMap(({ endpoints }) => endpoints ?? [])
    .filter(({ conditions }) => conditions?.ready !== false);
  return [...new Set(answering.flatMap(({ nodeName }) => nodeName ?? []))].sort();
}

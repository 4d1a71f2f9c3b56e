import type { Client } from "../../cluster/client.ts";
import { isNotFound } from "../../cluster/failures.ts";
import { NODES } from "../../cluster/kinds.ts";
import type { Node } from "../controllers/workload-types.ts";

/** What an older version knew of a node it ran on. */
export interface InstalledNode {
  name: string;
  labels: Record<string, string>;
  internalIPs: string[];
  podCidr: string | undefined;
}

/** The Linux nodes of these names, as the cluster has them now; one that has not joined yet is known by its name alone. */
export async function readNodes(client: Client, names: readonly string[]): Promise<InstalledNode[]> {
  const nodes = await Promise.all(
    names.map(async (name) => {
      const node = await client.get<Node>(NODES, { name }).catch((error: unknown) => {
        if (!isNotFound(error)) throw error;
        return undefined;
      });
      return { name, node };
    }),
  );
  return nodes
    .filter(({ node }) => node?.metadata.labels?.["kubernetes.io/os"] !== "windows")
    .map(({ name, node }) => ({
      name,
      labels: { ...node?.metadata.labels },
      internalIPs: (node?.status?.addresses ?? [])
        .filter(({ type }) => type === "InternalIP")
        .map(({ address }) => address),
      podCidr: node?.spec?.podCIDR,
    }));
}

import { BGP_CONFIGURATIONS, BGP_FILTERS, BGP_PEERS, typeOf } from "../../src/agent/stored-kinds.ts";
import { inside } from "../agent/node-lab.ts";
import { NODE_AS, type RoutedCluster } from "./routed-lab.ts";

/** Nodes speak with the router of their rack only. It brings them blocks with itself as next hop, so a filter has to accept those. */
export async function peerWithRacks({ client, racks }: RoutedCluster, pods: string): Promise<void> {
  const asNumber = NODE_AS;
  await client.create(BGP_CONFIGURATIONS, {
    ...{ ...typeOf(BGP_CONFIGURATIONS), metadata: { name: "default" } },
    spec: { nodeToNodeMeshEnabled: false, asNumber },
  });
  await client.create(BGP_FILTERS, {
    ...{ ...typeOf(BGP_FILTERS), metadata: { name: "pods" } },
    spec: { importV4: [{ action: "Accept", matchOperator: "In", cidr: pods }] },
  });
  for (const { name, address, asNumber } of racks) {
    await client.create(BGP_PEERS, {
      ...{ ...typeOf(BGP_PEERS), metadata: { name: `rack-${name}` } },
      // All nodes are of one AS, so what comes from another rack has been through it.
      spec: {
        peerIP: address,
        asNumber,
        nodeSelector: `rack == "${name}"`,
        filters: ["pods"],
        numAllowedLocalASNumbers: 1,
      },
    });
  }
}

/** The route by which a node sends packets to this address. */
export interface Way {
  dev: string;
  gateway?: string;
  /** Who wrote it. */
  protocol: string;
}

export async function wayTo({ runtime }: RoutedCluster, node: string, address: string): Promise<Way> {
  const asked = ["ip", "-j", "route", "get", "fibmatch", address];
  const { ok, output } = await inside(runtime.machine(node).netns.name, ...asked);
  if (!ok) throw new Error(output);
  return (JSON.parse(output) as Way[])[0]!;
}

import { SEPARATE_OVERLAY } from "../../src/agent/separate-overlay/names.ts";
import { NODES, PODS } from "../../src/cluster/kinds.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import type { Pod } from "../../src/local/controllers/workload-types.ts";
import { eventually } from "../../src/local/testing/bare-server.ts";
import { createPod, type RealCluster } from "./real-cluster.ts";
import { askFrom } from "./sockets.ts";

const PATIENCE_MS = 120_000;
const PORT = 8080;

/** What the overlay of one node has for the others: prefixes that routes lead to, and where VXLAN sends. */
function peersOf({ runtime }: RealCluster, node: string): { prefixes: string[]; tunnels: string[] } {
  const netlink = realKernel().netlink(runtime.machine(node).netns);
  try {
    const device = netlink.link(SEPARATE_OVERLAY.device);
    return {
      prefixes: netlink.routes({ protocol: SEPARATE_OVERLAY.protocol }).map(({ destination }) => destination),
      tunnels: netlink
        .forwarding()
        .filter((entry) => entry.device === device?.index)
        .map(({ destination }) => destination),
    };
  } finally {
    netlink.close();
  }
}

export async function untilPeers(cluster: RealCluster, node: string, prefixes: readonly string[]): Promise<void> {
  await eventually(
    async () => peersOf(cluster, node),
    (peers) => peers.prefixes.join() === prefixes.join() && peers.tunnels.length === prefixes.length,
    PATIENCE_MS,
  );
}

/** The machine goes, and its Node with it. */
export async function removeNode({ client, kubelet }: RealCluster, name: string): Promise<void> {
  await kubelet.removeNode(name);
  await client.delete(NODES, { name });
  for (const { spec, metadata } of (await client.list<Pod>(PODS)).items)
    if (spec.nodeName === name) await client.delete(PODS, metadata, { gracePeriodSeconds: 0 });
}

/** Everything in the kernel and every process is lost; the Node and its pods stay. */
export async function reboot({ kubelet, runtime }: RealCluster, name: string): Promise<void> {
  const { spec } = runtime.machine(name);
  await kubelet.removeNode(name);
  await kubelet.addNode(spec);
}

/** Until a pod of this name on the node, made if there is none, answers the client's pod. */
export async function untilAnswers(cluster: RealCluster, choice: { name: string; namespace: string; node: string }) {
  const { client, runtime } = cluster;
  const { name, namespace } = choice;
  const there = (await client.list<Pod>(PODS, { namespace })).items.some(({ metadata }) => metadata.name === name);
  if (!there) await createPod(cluster, { ...choice, image: "probe", labels: { app: "web" } });
  await eventually(
    async () => {
      const { status } = await client.get<Pod>(PODS, { name, namespace });
      const sender = [...runtime.pods()].find(({ pod }) => pod.metadata.name === "client");
      if (!status?.podIP || !sender) return undefined;
      return (await askFrom(sender.netns, { host: status.podIP, port: PORT }, 1_500))?.host;
    },
    (host) => host !== undefined,
    PATIENCE_MS,
  );
}

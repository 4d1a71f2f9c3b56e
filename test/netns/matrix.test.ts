import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";
import {
  createPod,
  installNetwork,
  type NetworkChoice,
  type RealCluster,
  readyPods,
  startReal,
  whyNoRealNodes,
} from "./real-cluster.ts";
import { answerIn, askFrom, type Listener } from "./sockets.ts";

/** Where the segment puts the world outside. */
const OUTSIDE_ADDRESSES = ["203.0.113.2", "2001:db8:ffff::2"] as const;

type Family = 4 | 6;

const DATAPLANES = ["Nftables", "BPF"] as const;
const ENCAPSULATIONS = ["VXLAN", "None"] as const;
const FAMILIES: readonly (readonly Family[])[] = [[4, 6], [4], [6]];

/** Each data plane and each encapsulation, with both families at once; every combination has its own cluster in the long run. */
const isLong = process.env["NETNS_MATRIX"] === "full";
const rows: NetworkChoice[] = isLong
  ? DATAPLANES.flatMap((dataplane) =>
      ENCAPSULATIONS.flatMap((encapsulation) =>
        FAMILIES.map((families): NetworkChoice => ({ dataplane, encapsulation, families })),
      ),
    )
  : [
      { dataplane: "Nftables", encapsulation: "VXLAN", families: [4, 6] },
      { dataplane: "BPF", encapsulation: "None", families: [4, 6] },
    ];
const PORT = 7000;

/** Somebody who can ask, and be asked. */
interface Party {
  name: string;
  netns: Netns;
  address(family: Family): string;
}

describe.skipIf(whyNoRealNodes).each(rows)(
  `$dataplane, encapsulation $encapsulation, families $families${whyNoRealNodes ? `: ${whyNoRealNodes}` : ""}`,
  (choice) => {
    let cluster: RealCluster;
    const listeners: Listener[] = [];
    const parties = new Map<string, Party>();
    beforeAll(async () => {
      cluster = await startReal({ nodes: 2, dualStack: choice.families.includes(6) });
      await installNetwork(cluster, choice);
      for (const party of await gather(cluster)) {
        parties.set(party.name, party);
        listeners.push(await answerIn(party.netns, party.name, { tcp: [PORT], udp: [PORT] }));
      }
    });
    afterAll(async () => {
      for (const listener of listeners) listener.close();
      await cluster?.close();
    });

    /** From, to, and whose address the other end must see; undefined where both would be right. */
    const paths: readonly [from: string, to: string, seenAs: string | undefined][] = [
      ["pod-a1", "pod-a2", "pod-a1"],
      ["pod-a1", "pod-b1", "pod-a1"],
      ["pod-b1", "pod-a1", "pod-b1"],
      ["pod-a1", "pod-a1", undefined],
      ["node-a", "pod-a1", undefined],
      ["node-a", "pod-b1", undefined],
      ["pod-a1", "node-a", undefined],
      ["pod-a1", "node-b", undefined],
      ["pod-a1", "outside", "node-a"],
    ];
    it.each(paths)("%s reaches %s", async (from, to, seenAs) => {
      const [asker, asked] = [parties.get(from) as Party, parties.get(to) as Party];
      for (const family of choice.families) {
        for (const protocol of ["tcp", "udp"] as const) {
          const host = asked.address(family);
          const answer = await askFrom(asker.netns, { host, port: PORT, protocol });
          const what = `${protocol} over IPv${family} to ${host}`;
          expect(answer?.host, what).toBe(to);
          if (seenAs) expect(answer?.client, what).toBe(parties.get(seenAs)?.address(family));
        }
      }
    });
  },
);

async function gather(cluster: RealCluster): Promise<Party[]> {
  const [a = "", b = ""] = cluster.nodeNames;
  await createPod(cluster, { name: "pod-a1", node: a });
  await createPod(cluster, { name: "pod-a2", node: a });
  await createPod(cluster, { name: "pod-b1", node: b });
  const pods = await readyPods(cluster, "default", 3);
  const of = (addresses: readonly string[]) => (family: Family) =>
    addresses.find((address) => address.includes(":") === (family === 6)) as string;
  const nodes = [a, b].map((name, i) => {
    const { netns, spec } = cluster.runtime.machine(name);
    return { name: i === 0 ? "node-a" : "node-b", netns, address: of(spec.internalIPs) };
  });
  return [
    ...[...pods].map(([name, pod]) => ({ name, netns: pod.sandbox?.netns as Netns, address: of(pod.podIPs) })),
    ...nodes,
    { name: "outside", netns: cluster.runtime.outside, address: of(OUTSIDE_ADDRESSES) },
  ];
}

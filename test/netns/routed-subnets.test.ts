import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { NETWORK_POLICIES, SERVICES } from "../../src/cluster/kinds.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import type { RealPod } from "../../src/local/runtime/netns/real-pod.ts";
import { whyNoBgp } from "../agent/frr-router.ts";
import { whyNoIpip } from "../kernels/ipip-scenario.ts";
import { ALL_CAME, echoFullSize } from "./full-size.ts";
import { createPod, installNetwork, type NetworkChoice, readyPods, whyNoRealNodes } from "./real-cluster.ts";
import { peerWithRacks, wayTo } from "./routed-bgp.ts";
import { type RoutedCluster, startRouted } from "./routed-lab.ts";
import { answerIn, askFrom, type Listener } from "./sockets.ts";

const why = whyNoRealNodes ?? whyNoBgp();
const POOL = "10.244.0.0/16";
const PORT = 7000;
const OUTSIDE = "203.0.113.2";
const EVERY = { interval: 250 };
/** Of routes that the agent writes. */
const AGENT = "80";
const NONE = { encapsulation: "None", bgp: "Enabled", overlay: undefined } as const;
const VXLAN = { encapsulation: "VXLANCrossSubnet", overlay: "vxlan.vendor" } as const;
const IPIP = { encapsulation: "IPIPCrossSubnet", overlay: "ipip.vendor" } as const;
const isLong = process.env["NETNS_MATRIX"] === "full";
type Row = Omit<NetworkChoice, "families"> & { overlay: string | undefined };
/** One every time, all in the long run of the matrix; IPIP where the kernel has it. */
const ROWS: Row[] = [
  { dataplane: "Nftables", ...NONE },
  ...(isLong
    ? ([
        { dataplane: "BPF", ...NONE },
        { dataplane: "Nftables", ...VXLAN },
        { dataplane: "BPF", ...VXLAN },
      ] as const)
    : []),
  ...(isLong && !why && !whyNoIpip(realKernel()) ? ([{ dataplane: "Nftables", ...IPIP }] as const) : []),
];

describe.skipIf(why).each(ROWS)(
  `$dataplane, three subnets with routers between them, $encapsulation${why ? `: ${why}` : ""}`,
  ({ overlay, ...choice }) => {
    let cluster: RoutedCluster;
    let pods: Map<string, RealPod>;
    const listeners: Listener[] = [];
    const netnsOf = (pod: RealPod) => pod.sandbox!.netns;
    const others = (pod: RealPod) => [...pods.values()].filter((other) => other !== pod);
    const rackOf = ({ machine }: RealPod) => cluster.racks.find(({ nodes }) => nodes.includes(machine.spec.name))!;
    const addressOf = ({ podIPs }: RealPod) => podIPs[0] as string;

    beforeAll(async () => {
      cluster = await startRouted({ proxy: "iptables" });
      await installNetwork(cluster, { ...choice, families: [4] });
      if (choice.bgp) await peerWithRacks(cluster, POOL);
      for (const [at, node] of cluster.nodeNames.entries()) {
        await createPod(cluster, { name: `pod-${at}`, node, labels: { app: "web", on: node } });
      }
      pods = await readyPods(cluster, "default", cluster.nodeNames.length);
      for (const [name, pod] of pods) listeners.push(await answerIn(netnsOf(pod), name, { tcp: [PORT], udp: [PORT] }));
    });
    afterAll(async () => {
      for (const listener of listeners) listener.close();
      await cluster?.close();
    });

    it("nodes send to pods of their own subnet directly, and to others by their rack's router or in the tunnel", async () => {
      const expected = (from: RealPod, to: RealPod) => {
        const [here, there] = [rackOf(from), rackOf(to)];
        const common = { dev: "eth0" };
        if (here === there) return { ...common, protocol: AGENT, gateway: to.machine.spec.internalIPs[0] };
        return overlay ? { dev: overlay, protocol: AGENT } : { ...common, protocol: "bird", gateway: here.address };
      };
      for (const from of pods.values()) {
        for (const to of others(from)) {
          const way = () => wayTo(cluster, from.machine.spec.name, addressOf(to));
          await expect.poll(way, EVERY).toMatchObject(expected(from, to));
        }
      }
    });

    it("pods of all subnets reach each other as themselves", async () => {
      for (const from of pods.values()) {
        for (const to of others(from)) {
          for (const protocol of ["tcp", "udp"] as const) {
            const answer = await askFrom(netnsOf(from), { host: addressOf(to), port: PORT, protocol });
            expect(answer).toMatchObject({ host: to.pod.metadata.name, client: addressOf(from) });
          }
        }
      }
    });

    it("packets as long as a pod may send arrive whole", async () => {
      const [first, ...rest] = [...pods.values()] as [RealPod, ...RealPod[]];
      for (const other of rest) {
        expect(await echoFullSize(netnsOf(first), netnsOf(other), addressOf(other))).toEqual(ALL_CAME);
        expect(await echoFullSize(netnsOf(other), netnsOf(first), addressOf(first))).toEqual(ALL_CAME);
      }
    });

    it("a Service leads to pods of all subnets, by its address from pods and by each node's port from outside", async () => {
      const all = [...pods.keys()].sort();
      const { spec } = (await cluster.client.create(SERVICES, {
        ...{ apiVersion: "v1", kind: "Service", metadata: { name: "web", namespace: "default" } },
        spec: { type: "NodePort", selector: { app: "web" }, ports: [{ port: 80, targetPort: PORT, protocol: "TCP" }] },
      })) as unknown as { spec: { clusterIP: string; ports: [{ nodePort: number }] } };
      const doors = [
        ...[...pods.values()].map((pod) => [netnsOf(pod), spec.clusterIP, 80] as const),
        ...cluster.nodeNames.map((name) => {
          const [address = ""] = cluster.runtime.machine(name).spec.internalIPs;
          return [cluster.runtime.outside, address, spec.ports[0].nodePort] as const;
        }),
      ];
      for (const [from, host, port] of doors) {
        const heard = new Set<string>();
        const ask = async () => {
          const answer = await askFrom(from, { host, port });
          if (answer) heard.add(answer.host);
          return [...heard].sort();
        };
        await expect.poll(ask, { interval: 10 }).toEqual(all);
      }
    });

    it("a policy holds between subnets: who is allowed is heard, and nobody else, in the same rack or another", async () => {
      const [closed, friend, ...strangers] = [...pods.values()].sort((a, b) =>
        a.pod.metadata.name < b.pod.metadata.name ? -1 : 1,
      ) as [RealPod, RealPod, RealPod, RealPod];
      await cluster.client.create(NETWORK_POLICIES, {
        ...{
          apiVersion: "networking.k8s.io/v1",
          kind: "NetworkPolicy",
          metadata: { name: "one", namespace: "default" },
        },
        spec: {
          ...{ podSelector: { matchLabels: { on: closed.machine.spec.name } }, policyTypes: ["Ingress"] },
          ingress: [{ from: [{ podSelector: { matchLabels: { on: friend.machine.spec.name } } }] }],
        },
      });
      const hears = async (from: RealPod) =>
        (await askFrom(netnsOf(from), { host: addressOf(closed), port: PORT }, 1_000))?.host;
      for (const stranger of strangers) await expect.poll(() => hears(stranger), EVERY).toBeUndefined();
      await expect.poll(() => hears(friend), EVERY).toBe("pod-0");
      // One of the strangers is in its rack, and so not behind the routers.
      expect(strangers.map((one) => rackOf(one) === rackOf(closed)).sort()).toEqual([false, true]);
    });

    it.runIf(choice.bgp)("pods reach the world outside by the routers, as their node", async () => {
      const outside = await answerIn(cluster.runtime.outside, "outside", { tcp: [PORT] });
      try {
        for (const pod of pods.values()) {
          const answer = await askFrom(netnsOf(pod), { host: OUTSIDE, port: PORT });
          expect(answer).toMatchObject({ host: "outside", client: pod.machine.spec.internalIPs[0] });
        }
      } finally {
        outside.close();
      }
    });

    it.runIf(choice.bgp)(
      "a link between two routers that fails costs no rack another: the third router is the way",
      async () => {
        const [from, to] = ["pod-1", "pod-2"].map((name) => pods.get(name)!) as [RealPod, RealPod];
        const { router } = rackOf(from);
        await router.vtysh("configure terminal", `interface to${rackOf(to).name}`, "shutdown");
        const answer = () => askFrom(netnsOf(from), { host: addressOf(to), port: PORT }, 1_000);
        await expect.poll(answer, EVERY).toMatchObject({ host: "pod-2" });
        expect(await echoFullSize(netnsOf(from), netnsOf(to), addressOf(to))).toEqual(ALL_CAME);
        await router.vtysh("configure terminal", `interface to${rackOf(to).name}`, "no shutdown");
      },
    );
  },
);

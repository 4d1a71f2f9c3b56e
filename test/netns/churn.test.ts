import { readdirSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isNotFound } from "../../src/cluster/failures.ts";
import { createInformer, type Informer } from "../../src/cluster/informer.ts";
import { PODS } from "../../src/cluster/kinds.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import { isReady } from "../../src/local/controllers/pod-state.ts";
import type { Pod } from "../../src/local/controllers/workload-types.ts";
import type { Machine } from "../../src/local/runtime/netns/machine.ts";
import { eventually } from "../../src/local/testing/bare-server.ts";
import { createPod, installNetwork, type RealCluster, startReal, whyNoRealNodes } from "./real-cluster.ts";

/** 2,000 in the long run, on each data plane and with an agent killed at every hundredth; some of it every time, where pods leave the most: with eBPF. */
const isLong = process.env["NETNS_CHURN"] === "full";
const PODS_IN_ALL = isLong ? 2000 : 8;
const AT_ONCE = isLong ? 20 : 8;
const KILL_EVERY = isLong ? 5 : 1;

const STORED = "crd.vendor.io/v1";

/** What pods leave behind when somebody forgets: on each node, and in the cluster. */
interface Traces {
  nodes: Record<string, Record<string, number | readonly string[]>>;
  addresses: readonly string[];
  handles: readonly string[];
}

const DATAPLANES = isLong ? (["Nftables", "BPF"] as const) : (["BPF"] as const);

describe.skipIf(whyNoRealNodes).each(DATAPLANES)(
  `pods that come and go on %s${whyNoRealNodes ? `: ${whyNoRealNodes}` : ""}`,
  (dataplane) => {
    let cluster: RealCluster;
    let pods: Informer<Pod>;
    beforeAll(async () => {
      cluster = await startReal({ nodes: isLong ? 3 : 2 });
      pods = createInformer<Pod>(cluster.client, PODS);
      await installNetwork(cluster, { dataplane, encapsulation: "VXLAN", families: [4] });
    });
    afterAll(async () => {
      await pods?.stop();
      await cluster?.close();
    });

    it(
      `${PODS_IN_ALL} of them, with agents killed on the way, leave addresses, routes, links, programs and maps as they were`,
      async () => {
        // The first pod of a node makes what stays for all others: its block, its maps.
        await round(cluster, pods, "first", cluster.nodeNames.length);
        await told(pods, 120_000, (all) => all.every(isReady));
        const before = await settledTraces(cluster);
        let killed = 0;
        const started = Date.now();
        for (let made = 0; made < PODS_IN_ALL; made += AT_ONCE) {
          const number = made / AT_ONCE;
          const kill = async () => {
            if (number % KILL_EVERY === 0) await killAnAgent(cluster, killed++);
          };
          const count = Math.min(AT_ONCE, PODS_IN_ALL - made);
          await withAgentsWords(cluster, () => round(cluster, pods, `r${number}`, count, kill));
        }
        const seconds = Math.round((Date.now() - started) / 1000);
        if (isLong) console.log(`${dataplane}: ${PODS_IN_ALL} pods, ${killed} agents killed, ${seconds} s`, before);
        const after = await eventually(
          () => traces(cluster),
          (now) => JSON.stringify(now) === JSON.stringify(before),
          120_000,
        ).catch(() => traces(cluster));
        expect(after).toEqual(before);
      },
      isLong ? 3_600_000 : undefined,
    );
  },
);

/** Makes pods on all nodes, lets something happen while they come up, waits for all of them, and deletes them again. */
async function round(
  cluster: RealCluster,
  pods: Informer<Pod>,
  name: string,
  count: number,
  meanwhile: () => Promise<void> = async () => {},
): Promise<void> {
  const nodes = cluster.nodeNames;
  const names = Array.from({ length: count }, (_, i) => `${name}-${i}`);
  await Promise.all(names.map((pod, i) => createPod(cluster, { name: pod, node: nodes[i % nodes.length] as string })));
  await meanwhile();
  const inDefault = (all: Pod[]) => all.filter(({ metadata }) => metadata.namespace === "default");
  const isUp = (all: Pod[]) => inDefault(all).length === count && inDefault(all).every(isReady);
  const addresses = inDefault(await told(pods, 180_000, isUp)).map(({ status }) => status?.podIP);
  expect(new Set(addresses).size).toBe(count);
  await Promise.all(names.map((pod) => forget(cluster, pod)));
  await told(pods, 180_000, (all) => inDefault(all).length === 0);
}

/** Waits for pods to be so. Told of each change: asking over and over would keep the API server from its work. */
async function told(pods: Informer<Pod>, withinMs: number, is: (pods: Pod[]) => boolean): Promise<Pod[]> {
  return await new Promise((resolve, reject) => {
    let stop = (): void => {};
    const end = (then: () => void) => {
      clearTimeout(timer);
      stop();
      then();
    };
    const look = () => {
      const now = pods.list();
      if (is(now)) end(() => resolve(now));
    };
    const timer = setTimeout(() => end(() => reject(new Error(notYet(pods.list())))), withinMs);
    stop = pods.onChange(look);
    look();
  });
}

function notYet(pods: readonly Pod[]): string {
  const waiting = pods.filter((pod) => !isReady(pod) || pod.metadata.deletionTimestamp);
  const rows = waiting.map(({ metadata, spec, status }) => `${metadata.name} ${spec.nodeName} ${status?.phase}`);
  return `these are not as they should be:\n${rows.join("\n")}`;
}

/** With the last words of every agent where it fails: they know why. */
async function withAgentsWords(cluster: RealCluster, act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } catch (error) {
    const agents = [...cluster.runtime.pods()].filter(({ pod }) => pod.metadata.labels?.["k8s-app"] === "vendor-node");
    const words: string[] = [];
    for (const agent of agents) {
      words.push(`${agent.machine.spec.name}:`);
      const log = agent.log(agent.pod.spec.containers[0]?.name ?? "");
      for await (const line of log.read({ tailLines: 15 })) words.push(line);
    }
    throw new Error([(error as Error).message, ...words].join("\n"), { cause: error });
  }
}

async function forget({ client }: RealCluster, name: string): Promise<void> {
  await client.delete(PODS, { name, namespace: "default" }).catch((error: unknown) => {
    if (!isNotFound(error)) throw error;
  });
}

/**
 * In turn on every node, as `kill -9` does. One that was killed before is replaced: a kubelet lets what ends again and again wait for minutes,
 * which is not what this is about.
 */
async function killAnAgent({ runtime, nodeNames, client }: RealCluster, number: number): Promise<void> {
  const node = nodeNames[number % nodeNames.length];
  const agent = [...runtime.pods()].find(
    ({ pod, machine }) => pod.metadata.labels?.["k8s-app"] === "vendor-node" && machine.spec.name === node,
  );
  const { uid = "", name, namespace = "" } = agent?.pod.metadata ?? { name: "" };
  expect(runtime.kill(uid)).toBe(true);
  const { status } = await client.get<Pod>(PODS, { name, namespace });
  if ((status?.containerStatuses?.[0]?.restartCount ?? 0) > 0) await client.delete(PODS, { name, namespace });
}

async function traces(cluster: RealCluster): Promise<Traces> {
  const nodes: Traces["nodes"] = {};
  for (const name of cluster.nodeNames) nodes[name] = onNode(cluster.runtime.machine(name));
  const blocks = await stored(cluster, "ipamblocks", "IPAMBlock");
  return {
    nodes,
    addresses: blocks
      .flatMap(({ spec }) => spec.allocations?.map((one, i) => (one === null ? "" : `${spec.cidr}#${i}`)) ?? [])
      .filter(Boolean)
      .sort(),
    handles: (await stored(cluster, "ipamhandles", "IPAMHandle")).map(({ metadata }) => metadata.name).sort(),
  };
}

/** Until two looks in a row see the same. */
async function settledTraces(cluster: RealCluster): Promise<Traces> {
  let last = "";
  return await eventually(
    async () => {
      const now = await traces(cluster);
      const same = JSON.stringify(now) === last;
      last = JSON.stringify(now);
      await new Promise((resolve) => setTimeout(resolve, 500));
      return { now, same };
    },
    ({ same }) => same,
    60_000,
  ).then(({ now }) => now);
}

interface StoredItem {
  metadata: { name: string };
  spec: { cidr?: string; allocations?: (number | null)[] };
}

async function stored({ client }: RealCluster, plural: string, kind: string): Promise<StoredItem[]> {
  const [group = "", version = ""] = STORED.split("/");
  const { items } = await client.list({ group, version, kind, plural, namespaced: false });
  return items as unknown as StoredItem[];
}

function onNode(machine: Machine): Record<string, number | readonly string[]> {
  const netlink = realKernel().netlink(machine.netns);
  try {
    return {
      links: netlink
        .links()
        .map(({ name }) => name)
        .sort(),
      routes: netlink
        .routes()
        .map(({ destination, table, type }) => `${destination} ${table} ${type}`)
        .filter((route) => !route.includes("fe80") && !route.includes("ff00"))
        .sort(),
      // Of pods and tunnels. A peer's own address is among them from before it had a tunnel's, until the agent's next start.
      neighbours: netlink
        .neighbours()
        .filter(({ state, address }) => state === "permanent" && address.startsWith("10.244."))
        .map(({ address, mac }) => `${address} ${mac}`)
        .sort(),
      namespaces: listed(machine.path("/run/netns")),
      pods: listed(machine.path("/var/lib/vendor")).length,
      pins: below(machine.path("/sys/fs/bpf")),
      containers: listed(machine.path("/var/lib/kubelet/pods")).length,
    };
  } finally {
    netlink.close();
  }
}

function listed(directory: string): string[] {
  try {
    return readdirSync(directory).sort();
  } catch {
    return [];
  }
}

function below(directory: string): number {
  try {
    return readdirSync(directory, { recursive: true }).length;
  } catch {
    return 0;
  }
}

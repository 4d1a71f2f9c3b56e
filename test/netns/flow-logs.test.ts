import { createSocket, type Socket } from "node:dgram";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { FlowCounts, FlowKey } from "../../src/api/protocol/flow.ts";
import { NAMESPACES, NETWORK_POLICIES, PERSISTENT_VOLUME_CLAIMS, PODS, SERVICES } from "../../src/cluster/kinds.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";
import type { Pod } from "../../src/local/controllers/workload-types.ts";
import { storedKind } from "../../src/operator/managed-kinds.ts";
import { openTool, type Tool } from "../procedures/kill-sweep/tool-process.ts";
import { createPod, type RealCluster, readyPods, startReal, untilActs, whyNoRealNodes } from "./real-cluster.ts";
import { answerIn, askFrom, type Listener } from "./sockets.ts";

const kernel = realKernel();
const NAMESPACE = "shop";
const PORT = 8080;
/** Of what each datagram carries, and with the headers of UDP and IP. */
const LENGTH = 200;
const DATAGRAM = LENGTH + 28;
const EVERY = { interval: 500, timeout: 120_000 };
/** Longer than agents wait between two batches. */
const STILL_MS = 20_000;
const KILLS = Number(process.env["FLOW_KILLS"] ?? 3);

interface FlowsAnswer {
  items: (FlowKey & FlowCounts)[];
  metadata: { totals: FlowCounts };
}

/**
 * The whole way: packets, the kernel's counting, agents, vendor-flow-logs, the API. What is sent is known to the packet, and the API has to say just
 * that, whatever is killed or switched meanwhile.
 */
describe.skipIf(whyNoRealNodes)(`flow logs of real nodes${whyNoRealNodes ? `: ${whyNoRealNodes}` : ""}`, () => {
  let cluster: RealCluster;
  let tool: Tool;
  let pods: Map<string, { netns: Netns; ip: string }>;
  let sinks: Listener[] = [];
  /** By query: of one port at a time, so that what was counted before has no part in it. */
  const sent = new Map<string, number>();
  let port = PORT;
  const begin = () => {
    port++;
    sent.clear();
  };

  const vendorctl = async (...args: string[]) => {
    const ended = await tool.run(...args);
    expect(ended.status, `vendorctl ${args.join(" ")}: ${ended.err}`).toBe(0);
    return ended.out;
  };
  const flows = async (query: string): Promise<FlowsAnswer> => {
    const path = `/apis/flows.vendor.io/v1/namespaces/${NAMESPACE}/flows`;
    const response = await cluster.client.raw({ method: "GET", path, query: { query } });
    const text = await response.text();
    expect(response.status, text).toBe(200);
    return JSON.parse(text) as FlowsAnswer;
  };
  const totals = async (query: string) => (await flows(query)).metadata.totals;
  const send = async (from: string, to: string, count: number) => {
    const { netns } = pods.get(from)!;
    const fd = kernel.netns.bind(netns, { kind: "datagram", address: "::", port: 0 });
    const socket: Socket = createSocket("udp6");
    await new Promise<void>((resolve) => socket.bind({ fd }, () => resolve()));
    const address = `::ffff:${pods.get(to)!.ip}`;
    for (let index = 0; index < count; index++) {
      await new Promise<void>((resolve, reject) =>
        socket.send(Buffer.alloc(LENGTH, index), port, address, (error) => (error ? reject(error) : resolve())),
      );
      if (index % 10 === 9) await new Promise((resolve) => setTimeout(resolve, 1));
    }
    socket.close();
    for (const reporter of from[0] === to[0] ? ["both"] : ["source", "destination"]) {
      const query = `from:${NAMESPACE}/${from} to:${NAMESPACE}/${to} proto:udp port:${port} reporter:${reporter}`;
      sent.set(query, (sent.get(query) ?? 0) + count);
    }
  };
  /** At each end of each way that something was sent on. */
  const expectSent = async () => {
    for (const [query, packets] of sent) {
      const counted = async () => {
        const { packets, bytes } = await totals(query);
        return { query, packets, bytes };
      };
      await expect.poll(counted, EVERY).toEqual({ query, packets, bytes: packets * DATAGRAM });
    }
  };
  /** For a moment both data planes may count; once all agents have sent, all is exact again. */
  const expectSwitched = async () => {
    const queries = [...sent.keys()];
    const counted = () => Promise.all(queries.map(async (query) => (await totals(query)).packets));
    let [last, since] = [await counted(), Date.now()];
    const still = async () => {
      const now = await counted();
      if (now.some((packets, index) => packets !== last[index])) [last, since] = [now, Date.now()];
      return Date.now() - since > STILL_MS;
    };
    await expect.poll(still, EVERY).toBe(true);
    for (const [index, query] of queries.entries()) {
      const packets = sent.get(query)!;
      expect(Math.abs(packets - last[index]!), `${query}: ${last[index]} of ${packets}`).toBeLessThan(packets / 20);
      sent.set(query, last[index]!);
    }
  };
  const sendAll = (count: number) =>
    Promise.all([send("a-one", "a-two", count), send("a-one", "b-one", count), send("b-one", "a-two", count)]);
  const podOf = async (labels: string, node?: string) => {
    const { items } = await cluster.client.list<Pod>(PODS, { namespace: "vendor-system", labelSelector: labels });
    return items.find(({ spec }) => node === undefined || spec.nodeName === node)!.metadata.uid as string;
  };

  beforeAll(async () => {
    cluster = await startReal({ nodes: 2, proxy: "nftables" });
    tool = openTool(cluster.kubeconfig);
    await vendorctl("install", "-y", "--dataplane", "standard");
    await cluster.client.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE } });
    const [nodeA = "", nodeB = ""] = cluster.nodeNames;
    for (const [name, node] of Object.entries({ "a-one": nodeA, "a-two": nodeA, "b-one": nodeB })) {
      await createPod(cluster, { name, namespace: NAMESPACE, node, labels: { app: name } });
    }
    const ready = await readyPods(cluster, NAMESPACE, 3);
    const { items } = await cluster.client.list<Pod>(PODS, { namespace: NAMESPACE });
    const ipOf = (name: string) => items.find(({ metadata }) => metadata.name === name)?.status?.podIP as string;
    pods = new Map([...ready].map(([name, { netns }]) => [name, { netns, ip: ipOf(name) }]));
    sinks = await Promise.all([...pods].map(([name, { netns }]) => answerIn(netns, name, { tcp: [PORT], udp: [] })));
    for (const { netns } of pods.values()) {
      const fd = kernel.netns.bind(netns, { kind: "datagram", address: "::", port: PORT });
      const socket = createSocket("udp6");
      await new Promise<void>((resolve) => socket.bind({ fd }, () => resolve()));
      sinks.push(socket);
    }
    await vendorctl("flows", "enable", "-y");
  });
  afterAll(async () => {
    for (const sink of sinks) sink.close();
    tool?.close();
    await cluster?.close();
  });

  it("count what is sent by nftables to the packet, on one node and between two", async () => {
    await sendAll(500);
    await expectSent();
    await expect
      .poll(async () => (await tool.run("status")).out, EVERY)
      .toMatch(/ok flow logs {2}Flows come from 2 nodes/);
  });

  it("count it once while agents and vendor-flow-logs are killed at any moment", async () => {
    for (let round = 0; round < KILLS; round++) {
      begin();
      const sending = sendAll(300);
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 1_500));
      const labels = round % 3 === 2 ? "k8s-app=vendor-flow-logs" : "k8s-app=vendor-node";
      cluster.runtime.kill(await podOf(labels, round % 3 === 2 ? undefined : cluster.nodeNames[round % 2]));
      await sending;
      // Each round by itself: an agent sends the last five minutes again, and twenty rounds take longer.
      await expectSent();
    }
    await untilActs(cluster.client, "Nftables");
  });

  it("count it through a switch to eBPF and back, but for the moment of each", async () => {
    for (const to of ["BPF", "standard"] as const) {
      begin();
      let isOver = false;
      const budget = ["--budget", "connections=0,silence=20s,datagrams=5%"];
      const switching = vendorctl("switch", "--to", to, "-y", ...budget).finally(() => {
        isOver = true;
      });
      while (!isOver) await sendAll(100);
      await switching;
      await untilActs(cluster.client, to === "BPF" ? "BPF" : "Nftables");
      await expectSwitched();
      await sendAll(500);
      await expectSent();
    }
  });

  it("name the Service, the rule that denied, and show a denial to a watcher within two seconds", async () => {
    await cluster.client.create(SERVICES, {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "two", namespace: NAMESPACE },
      spec: { selector: { app: "a-two" }, ports: [{ name: "http", port: 80, targetPort: PORT, protocol: "TCP" }] },
    });
    await vendorctl("switch", "--to", "BPF", "-y");
    const service = await cluster.client.get(SERVICES, { namespace: NAMESPACE, name: "two" });
    const { clusterIP } = service["spec"] as { clusterIP: string };
    const { netns } = pods.get("b-one")!;
    const askTwo = async () => (await askFrom(netns, { host: clusterIP, port: 80 }))?.host;
    await expect.poll(askTwo, EVERY).toBe("a-two");
    // Again and again: one connection could be of the moment of the switch.
    await expect
      .poll(async () => {
        await askTwo();
        const { items } = await flows(`from:${NAMESPACE}/b-one to:${NAMESPACE}/a-two proto:tcp port:${PORT}`);
        return items.map(({ service, reporter, dataplane, started }) => ({
          ...{ service: service?.name, reporter, dataplane },
          isStarted: started > 0,
        }));
      }, EVERY)
      .toContainEqual({ service: "two", reporter: "Source", dataplane: "BPF", isStarted: true });
    const deny = { podSelector: { matchLabels: { app: "a-two" } }, policyTypes: ["Ingress"] };
    await cluster.client.create(NETWORK_POLICIES, {
      apiVersion: "networking.k8s.io/v1",
      kind: "NetworkPolicy",
      metadata: { name: "closed", namespace: NAMESPACE },
      spec: deny,
    });
    await expect.poll(() => askFrom(netns, { host: clusterIP, port: 80 }, 500), EVERY).toBeUndefined();
    const following = tool.start("flows", "-n", NAMESPACE, "-f", "verdict:deny", "-o", "json");
    let isHeard = false;
    const heard = following.said(/"Deny"/).then(() => {
      isHeard = true;
    });
    // It may not follow yet when somebody knocks first.
    while (!isHeard) await askFrom(netns, { host: clusterIP, port: 80 }, 250);
    await heard;
    following.interrupt();
    const flow = JSON.parse((await following.ended).out.split("\n")[0]!) as Record<string, unknown>;
    expect(flow).toMatchObject({
      ...{ verdict: "Deny", reason: "policy_workload_ingress", port: PORT, dataplane: "BPF" },
      from: { type: "Workload", namespace: NAMESPACE, name: "b-one" },
      to: { type: "Workload", namespace: NAMESPACE, name: "a-two" },
    });
    expect((flow["policies"] as { kind: string }[]).at(-1)).toMatchObject({ kind: "EndOfTier", action: "Deny" });
  });

  it("are there again when agents and vendor-flow-logs have forgotten them, from a volume", async () => {
    await cluster.client.create(PERSISTENT_VOLUME_CLAIMS, {
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: { name: "flows", namespace: "vendor-system" },
      spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
    });
    const patch = { spec: { disk: { persistentVolumeClaim: "flows" } } };
    await cluster.client.patch(storedKind("flowLogs"), { name: "default" }, { type: "merge", patch });
    await expect.poll(async () => (await tool.run("status")).out, EVERY).toContain("they are kept on disk");
    begin();
    await send("a-one", "b-one", 300);
    await expectSent();
    const before = await flows("proto:udp");
    for (const node of cluster.nodeNames) cluster.runtime.kill(await podOf("k8s-app=vendor-node", node));
    cluster.runtime.kill(await podOf("k8s-app=vendor-flow-logs"));
    await expectSent();
    const kept = async () => (await flows("proto:udp")).metadata.totals.packets;
    await expect.poll(kept, EVERY).toBeGreaterThanOrEqual(before.metadata.totals.packets);
    await untilActs(cluster.client, "BPF");
  });

  it("end when they are disabled, and leave nothing on the nodes", async () => {
    await vendorctl("flows", "disable", "-y");
    const flowLogs = () => cluster.client.list(storedKind("flowLogs"));
    await expect.poll(async () => (await flowLogs()).items, EVERY).toEqual([]);
    await expect.poll(async () => (await tool.run("flows")).err, EVERY).toContain("FLOWS_NOT_SERVED");
  });
});

import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { KubeObject } from "../../src/api/object.ts";
import type { FlowCounts } from "../../src/api/protocol/flow.ts";
import { NAMESPACES, SERVICES } from "../../src/cluster/kinds.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";
import { dial } from "../../src/local/runtime/netns/dial.ts";
import { storedKind } from "../../src/operator/managed-kinds.ts";
import { createPod, installNetwork, type RealCluster, readyPods, startReal, whyNoRealNodes } from "./real-cluster.ts";

const kernel = realKernel();
const NAMESPACE = "shop";
/** What arrives at `measured` of a family is compared; `warm` is for what comes before: neighbours and Services have to be there. */
const PORTS = { warm: 7000, 4: 7004, 6: 7006 } as const;
type Port = keyof typeof PORTS;
/** Of the Service, and of nodes, after the port behind them. */
const [SERVICE_PORTS, NODE_PORTS] = [-6_900, 23_000];
const OUTSIDE = ["203.0.113.2", "2001:db8:ffff::2"];
const EVERY = { interval: 1_000, timeout: 90_000 };
const FAMILIES = [4, 6] as const;
type Family = (typeof FAMILIES)[number];

const DATAGRAMS = { count: 400, length: 300 };
/** Each write is answered before the next, so each is a packet: no interface joins them. */
const CONNECTIONS = { count: 20, writes: 3, length: 500 };
const IP_HEADER = { 4: 20, 6: 40 } as const;
const UDP_HEADER = 8;
/** With a timestamp, as Linux writes it; the first packet of a connection has more options. */
const TCP_HEADER = 32;
const FIRST_OPTIONS = 8;

/** A way that packets take, and where flow logs have it: each of `seen` alone is all of it. */
interface Way {
  name: string;
  from: string;
  to(family: Family): string;
  /** What is asked for by this way, after the port that answers. */
  shift: number;
  seen: readonly string[];
}

interface Asked {
  netns: Netns;
  host: string;
  port: number;
}

type Counts = Pick<FlowCounts, "packets" | "bytes" | "started" | "ended">;

/** What senders know of what they sent, next to what flow logs say of it. */
describe.skipIf(whyNoRealNodes).each(["Nftables", "BPF"] as const)(
  `flow logs of %s${whyNoRealNodes ? `: ${whyNoRealNodes}` : ""}`,
  (dataplane) => {
    let cluster: RealCluster;
    const places = new Map<string, { netns: Netns; addresses: readonly string[] }>();
    let clusterIPs: readonly string[];
    const sinks: { close(): void }[] = [];

    const at = (name: string) => ({
      ...{ shift: 0, to: (family: Family) => ofFamily(places.get(name)!.addresses, family) },
    });
    const ways: readonly Way[] = [
      { name: "on one node", from: "a-one", ...at("a-two"), seen: ["from:shop/a-one to:shop/a-two reporter:both"] },
      {
        ...{ name: "between nodes", from: "a-two", ...at("b-one") },
        seen: ["source", "destination"].map((reporter) => `from:shop/a-two to:shop/b-one reporter:${reporter}`),
      },
      {
        ...{ name: "by a Service", from: "a-one", shift: SERVICE_PORTS, to: (family) => ofFamily(clusterIPs, family) },
        seen: [
          "from:shop/a-one to:shop/b-one service:shop/one reporter:source",
          "from:shop/a-one to:shop/b-one reporter:destination",
        ],
      },
      { name: "to outside", from: "b-two", ...at("outside"), seen: ["from:shop/b-two to:/public reporter:source"] },
      {
        ...{ name: "by a node port", from: "outside", ...at("node-a"), shift: NODE_PORTS },
        // With kube-proxy it comes from the node that was asked.
        seen: [`from:/${dataplane === "BPF" ? "public" : "*"} to:shop/b-one reporter:destination`],
      },
    ];

    const totals = async (query: string): Promise<Counts> => {
      const response = await cluster.client.raw({
        ...{ method: "GET", path: "/apis/flows.vendor.io/v1/flows", query: { query, limit: "1" } },
      });
      const text = await response.text();
      expect(response.status, text).toBe(200);
      return (JSON.parse(text) as { metadata: { totals: FlowCounts } }).metadata.totals;
    };
    beforeAll(async () => {
      cluster = await startReal({ nodes: 2, dualStack: true, proxy: "nftables" });
      const { client, runtime, nodeNames } = cluster;
      await installNetwork(cluster, { dataplane, families: [4, 6] });
      await client.create(storedKind("flowLogs"), {
        ...{ apiVersion: "operator.vendor.io/v1", kind: "FlowLogs", metadata: { name: "default" } },
      });
      await client.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE } });
      const [nodeA = "", nodeB = ""] = nodeNames;
      const nodeOf = { "a-one": nodeA, "a-two": nodeA, "b-one": nodeB, "b-two": nodeB };
      for (const [name, node] of Object.entries(nodeOf))
        await createPod(cluster, { name, namespace: NAMESPACE, node, labels: { app: name } });
      for (const [name, { sandbox, podIPs }] of await readyPods(cluster, NAMESPACE, 4))
        places.set(name, { netns: sandbox!.netns, addresses: podIPs });
      const { netns, spec } = runtime.machine(nodeA);
      places.set("node-a", { netns, addresses: spec.internalIPs });
      places.set("outside", { netns: runtime.outside, addresses: OUTSIDE });
      for (const name of ["a-two", "b-one", "outside"]) {
        const place = places.get(name)!;
        for (const port of Object.values(PORTS)) {
          sinks.push(await takeTcp(place.netns, port), await takeUdp(place.netns, port));
        }
      }
      const created = await client.create(SERVICES, serviceOf("b-one"));
      clusterIPs = (created["spec"] as { clusterIPs: string[] }).clusterIPs;
    });
    afterAll(async () => {
      for (const sink of sinks) sink.close();
      await cluster?.close();
    });

    it.each(FAMILIES)("are what was sent on every way by IPv%s", async (family) => {
      const askedBy = ({ from, to, shift }: Way, port: Port) => ({
        ...{ netns: places.get(from)!.netns, host: to(family), port: PORTS[port] + shift },
      });
      for (const way of ways) {
        const asked = askedBy(way, "warm");
        await expect.poll(() => converse(asked), { ...EVERY, message: way.name }).toBe(true);
      }

      for (const way of ways) {
        const asked = askedBy(way, family);
        await sendDatagrams(asked);
        for (let index = 0; index < CONNECTIONS.count; index++) expect(await converse(asked), way.name).toBe(true);
      }

      const { count, length } = DATAGRAMS;
      const udp = { packets: count, bytes: count * (length + UDP_HEADER + IP_HEADER[family]), started: 1 };
      const payload = CONNECTIONS.count * CONNECTIONS.writes * CONNECTIONS.length;
      const tcp = { started: CONNECTIONS.count, ended: CONNECTIONS.count, payload };
      const queries = ways.flatMap(({ seen }) => seen).map((query) => `${query} port:${PORTS[family]}`);
      const counted = () =>
        Promise.all(
          queries.map(async (query) => {
            const { packets, bytes, started } = await totals(`${query} proto:udp`);
            const tcp = withoutHeaders(await totals(`${query} proto:tcp`), family);
            return { query, udp: { packets, bytes, started }, tcp };
          }),
        );
      await expect.poll(counted, EVERY).toEqual(queries.map((query) => ({ query, udp, tcp })));
    });
  },
);

function ofFamily(addresses: readonly string[], family: Family): string {
  return addresses.find((address) => address.includes(":") === (family === 6)) as string;
}

function withoutHeaders({ packets, bytes, started, ended }: Counts, family: Family) {
  const headers = packets * (IP_HEADER[family] + TCP_HEADER) + started * FIRST_OPTIONS;
  return { started, ended, payload: bytes - headers };
}

function serviceOf(app: string): KubeObject {
  const ports = Object.values(PORTS).flatMap((port) =>
    ["TCP", "UDP"].map((protocol) => ({
      ...{ name: `${protocol.toLowerCase()}-${port}`, protocol, targetPort: port },
      ...{ port: port + SERVICE_PORTS, nodePort: port + NODE_PORTS },
    })),
  );
  return {
    ...{ apiVersion: "v1", kind: "Service", metadata: { name: "one", namespace: NAMESPACE } },
    spec: { type: "NodePort", ipFamilyPolicy: "RequireDualStack", selector: { app }, ports },
  } as KubeObject;
}

/** Answers each write with one byte. */
async function takeTcp(netns: Netns, port: number): Promise<Server> {
  const fd = kernel.netns.bind(netns, { kind: "stream", address: "::", port });
  const server = createServer((socket) => {
    socket.setNoDelay(true).on("error", () => socket.destroy());
    socket.on("data", () => socket.write("."));
  });
  await once(server.listen({ fd }), "listening");
  return server;
}

async function takeUdp(netns: Netns, port: number): Promise<UdpSocket> {
  const fd = kernel.netns.bind(netns, { kind: "datagram", address: "::", port });
  const socket = createSocket("udp6");
  await new Promise<void>((resolve) => socket.bind({ fd }, () => resolve()));
  return socket;
}

/** One connection, from its first packet to the last; false: nobody answered. */
async function converse({ netns, host, port }: Asked): Promise<boolean> {
  const socket = dial(kernel, netns, { host, port }).setNoDelay(true).setTimeout(3_000);
  socket.on("timeout", () => socket.destroy(new Error("no answer")));
  try {
    for (let index = 0; index < CONNECTIONS.writes; index++) {
      socket.write(Buffer.alloc(CONNECTIONS.length));
      await once(socket, "data");
    }
    socket.end().resume();
    await once(socket, "close");
    return true;
  } catch {
    return false;
  }
}

async function sendDatagrams({ netns, host, port }: Asked): Promise<void> {
  const any = host.includes(":") ? "::" : "0.0.0.0";
  const fd = kernel.netns.bind(netns, { kind: "datagram", address: any, port: 0 });
  const socket = createSocket(host.includes(":") ? "udp6" : "udp4");
  await new Promise<void>((resolve) => socket.bind({ fd }, () => resolve()));
  for (let index = 0; index < DATAGRAMS.count; index++) {
    await new Promise<void>((resolve, reject) => {
      socket.send(Buffer.alloc(DATAGRAMS.length), port, host, (error) => (error ? reject(error) : resolve()));
    });
  }
  socket.close();
}

import { get } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { KubeObject } from "../../src/api/object.ts";
import { DAEMON_SETS, SERVICES } from "../../src/cluster/kinds.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";
import { dial } from "../../src/local/runtime/netns/dial.ts";
import { createPod, type RealCluster, readyPods, startReal, whyNoRealNodes } from "./real-cluster.ts";
import { answerIn, askFrom, type Listener } from "./sockets.ts";

const kernel = realKernel();
const PORT = 7000;
const PROXY = { namespace: "kube-system", name: "kube-proxy" };

const WEB: KubeObject = {
  apiVersion: "v1",
  kind: "Service",
  metadata: { name: "web", namespace: "default" },
  spec: {
    type: "NodePort",
    ipFamilyPolicy: "RequireDualStack",
    selector: { app: "web" },
    ports: ["TCP", "UDP"].map((protocol) => ({ name: protocol.toLowerCase(), protocol, port: 80, targetPort: PORT })),
  },
};

/** The mode, and how rules of it are seen on a node. */
const MODES = [
  ["iptables", ["iptables-save", "-t", "nat"], /^:KUBE-SVC-NPX46M4PTMTKRN6Y /m],
  ["nftables", ["nft", "list", "table", "ip", "kube-proxy"], /service-\w{8}-default\/kubernetes\/tcp\/https/],
] as const;

describe.skipIf(whyNoRealNodes).each(MODES)(
  `the platform's service proxy in mode %s${whyNoRealNodes ? `: ${whyNoRealNodes}` : ""}`,
  (proxy, show, shape) => {
    let cluster: RealCluster;
    let service: { spec: { clusterIPs: string[]; ports: { nodePort: number }[] } };
    const listeners: Listener[] = [];
    const node = (at: number) => cluster.runtime.machine(cluster.nodeNames[at] as string);
    const rules = async () => (await node(1).run([...show])).out;

    beforeAll(async () => {
      cluster = await startReal({ nodes: 2, dualStack: true, proxy });
      for (const at of [0, 1]) {
        const { netns, spec } = node(at);
        listeners.push(await answerIn(netns, spec.name, { tcp: [PORT], udp: [PORT] }));
        await createPod(cluster, {
          name: `web-${at}`,
          node: spec.name,
          labels: { app: "web" },
          spec: { hostNetwork: true },
        });
      }
      await readyPods(cluster, "default", 2);
      service = (await cluster.client.create(SERVICES, WEB)) as unknown as typeof service;
    });
    afterAll(async () => {
      for (const listener of listeners) listener.close();
      await cluster?.close();
    });

    it("writes rules of its own shape on every node", async () => {
      await expect.poll(rules).toMatch(shape);
    });

    it("serves cluster addresses and node ports of both families and protocols, inside and outside", async () => {
      const { clusterIPs, ports: given } = service.spec;
      expect(clusterIPs.length).toBe(2);
      const inside = clusterIPs.map((host) => [node(0).netns, host, 80, 80] as const);
      const nodeIPs = node(1).spec.internalIPs.map(
        (host) => [cluster.runtime.outside, host, given[0]?.nodePort, given[1]?.nodePort] as const,
      );
      for (const [netns, host, tcp, udp] of [...inside, ...nodeIPs]) {
        for (const [protocol, port] of [
          ["tcp", tcp],
          ["udp", udp],
        ] as const) {
          const answered = () => askFrom(netns, { host, port: port as number, protocol }, 1000);
          await expect.poll(answered, { message: `${protocol} to ${host}` }).toBeDefined();
        }
      }
    });

    it("answers for its health on port 10256", async () => {
      const ask = () => statusOf(node(1).netns, 10_256, "/healthz");
      await expect.poll(ask).toBe(200);
    });

    it("leaves its rules when it goes, and its port", async () => {
      const before = await rules();
      await cluster.client.delete(DAEMON_SETS, PROXY);
      await expect.poll(() => statusOf(node(1).netns, 10_256, "/healthz")).toBe("ECONNREFUSED");
      expect(shapeOf(await rules())).toBe(shapeOf(before));
      const [host = ""] = service.spec.clusterIPs;
      expect(await askFrom(node(1).netns, { host, port: 80 })).toBeDefined();
    });
  },
);

function statusOf(netns: Netns, port: number, path: string): Promise<number | string> {
  return new Promise((resolve) => {
    const createConnection = () => dial(kernel, netns, { host: "127.0.0.1", port });
    get({ path, createConnection }, (answer) => resolve(answer.resume().statusCode ?? 0)).on(
      "error",
      (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message),
    );
  });
}

/** Without counters and times. */
function shapeOf(rules: string): string {
  return rules.replace(/^#.*$/gm, "").replace(/\[\d+:\d+\]/g, "");
}

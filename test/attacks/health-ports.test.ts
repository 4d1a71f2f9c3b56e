import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PODS } from "../../src/cluster/kinds.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";
import { isReady } from "../../src/local/controllers/pod-state.ts";
import type { Pod } from "../../src/local/controllers/workload-types.ts";
import { dial } from "../../src/local/runtime/netns/dial.ts";
import { eventually } from "../../src/local/testing/bare-server.ts";
import { installNetwork, type RealCluster, startReal, whyNoRealNodes } from "../netns/real-cluster.ts";

const kernel = realKernel();
const AGENT = 9099;
const OPERATOR = 9440;
const CONTROLLERS = 9094;
const KUBE_PROXY = 10_256;

/** What a server in a network answers to a target; undefined where no connection comes about. */
function ask(netns: Netns, host: string, port: number, target: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = dial(kernel, netns, { host, port });
    const parts: Buffer[] = [];
    socket.on("error", () => resolve(undefined));
    socket.on("data", (part: Buffer) => parts.push(part));
    socket.on("close", () => resolve(parts.length > 0 ? Buffer.concat(parts).toString() : undefined));
    socket.write(`GET ${target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
  });
}

describe.skipIf(whyNoRealNodes)(`health ports of a node${whyNoRealNodes ? ` (${whyNoRealNodes})` : ""}`, () => {
  let cluster: RealCluster;
  const node = (at: number) => cluster.runtime.machine(cluster.nodeNames[at] as string);
  const address = (at: number) => node(at).spec.internalIPs[0] as string;
  const restarts = async () => {
    const { items } = await cluster.client.list<Pod>(PODS, {});
    return items
      .filter(({ metadata }) => /^vendor-/.test(metadata.namespace ?? ""))
      .flatMap(({ status }) => status?.containerStatuses ?? [])
      .map(({ restartCount }) => restartCount);
  };

  beforeAll(async () => {
    cluster = await startReal({ nodes: 2, proxy: "nftables" });
    await installNetwork(cluster, { dataplane: "Nftables", encapsulation: "VXLAN", families: [4] });
  });
  afterAll(async () => await cluster?.close());

  it("answer on loopback, as the kubelet asks, and nowhere else", async () => {
    expect(await ask(node(1).netns, "127.0.0.1", AGENT, "/readyz")).toMatch(/^HTTP\/1\.1 200/);
    for (const port of [AGENT, OPERATOR]) {
      for (const at of [0, 1]) expect(await ask(node(0).netns, address(at), port, "/livez")).toBeUndefined();
    }
  });

  it("of the agent serve no metrics that were not asked for", async () => {
    expect(await ask(node(1).netns, "127.0.0.1", AGENT, "/metrics")).toMatch(/^HTTP\/1\.1 404/);
  });

  it("survive hostile targets, with the programs and the cluster behind them", async () => {
    const before = await restarts();
    // While copies share a node, the operator evicts one of them.
    const controllers = await eventually(
      async () => (await cluster.client.list<Pod>(PODS, { labelSelector: "k8s-app=vendor-kube-controllers" })).items,
      (pods) => pods.every(isReady) && new Set(pods.map(({ spec }) => spec.nodeName)).size === cluster.nodeNames.length,
    );
    const pod = controllers[0]?.status?.podIP as string;
    // Ready is what its own node finds; the way from another one may come a moment later.
    await eventually(
      () => ask(node(0).netns, pod, CONTROLLERS, "/livez"),
      (answer) => answer !== undefined,
    );
    for (const target of ["//", "http://[", "*", "/%"]) {
      expect(await ask(node(0).netns, address(1), KUBE_PROXY, target)).toMatch(/^HTTP\/1\.1 404/);
      expect(await ask(node(1).netns, "127.0.0.1", AGENT, target)).toMatch(/^HTTP\/1\.1 404/);
      expect(await ask(node(0).netns, pod, CONTROLLERS, target)).toMatch(/^HTTP\/1\.1 404/);
    }
    expect(await ask(node(0).netns, address(1), KUBE_PROXY, "/healthz")).toMatch(/^HTTP\/1\.1 200/);
    expect(await ask(node(1).netns, "127.0.0.1", AGENT, "/livez")).toMatch(/^HTTP\/1\.1 200/);
    expect(await restarts()).toEqual(before);
  });
});

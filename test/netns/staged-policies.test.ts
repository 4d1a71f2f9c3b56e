import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { FlowKey } from "../../src/api/protocol/flow.ts";
import { NAMESPACES, PODS } from "../../src/cluster/kinds.ts";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";
import type { Pod } from "../../src/local/controllers/workload-types.ts";
import { storedKind } from "../../src/operator/managed-kinds.ts";
import { openTool, type Tool } from "../procedures/kill-sweep/tool-process.ts";
import { createPod, type RealCluster, readyPods, startReal, untilActs, whyNoRealNodes } from "./real-cluster.ts";
import { answerIn, askFrom, type Listener } from "./sockets.ts";

const NAMESPACE = "shop";
const PORT = 8080;
/** Agents of a busy machine send seldom: their share of a processor is bounded. */
const EVERY = { interval: 500, timeout: 240_000 };
const POLICY = { name: "default.closed", namespace: NAMESPACE };
/** Lets in one of two clients, and says so by which rule. */
const SPEC = {
  ...{ tier: "default", selector: "app == 'a-two'", types: ["Ingress"] },
  ingress: [{ action: "Allow", source: { selector: "app == 'a-one'" } }, { action: "Deny" }],
};

/** What a staged policy says of packets, and what the same policy then does to them, on real nodes. */
describe.skipIf(whyNoRealNodes)(`staged policies${whyNoRealNodes ? `: ${whyNoRealNodes}` : ""}`, () => {
  let cluster: RealCluster;
  let tool: Tool;
  let pods: Map<string, { netns: Netns; ip: string }>;
  let sinks: Listener[] = [];

  const vendorctl = async (...args: string[]) => {
    const ended = await tool.run(...args);
    expect(ended.status, `vendorctl ${args.join(" ")}: ${ended.err}`).toBe(0);
    return ended.out;
  };
  const ask = async (from: string) =>
    (await askFrom(pods.get(from)!.netns, { host: pods.get("a-two")!.ip, port: PORT }, 1_000))?.host;
  const flows = async (query: string): Promise<FlowKey[]> => {
    const path = `/apis/flows.vendor.io/v1/namespaces/${NAMESPACE}/flows`;
    const response = await cluster.client.raw({ method: "GET", path, query: { query } });
    const text = await response.text();
    expect(response.status, text).toBe(200);
    return (JSON.parse(text) as { items: FlowKey[] }).items;
  };
  /** Again and again by both clients, until a flow says so. */
  const askedUntil = (from: string, query: string, of: (flow: FlowKey) => unknown) =>
    expect.poll(async () => {
      await Promise.all([ask("a-one"), ask("b-one")]);
      const [found] = await flows(`from:${NAMESPACE}/${from} to:${NAMESPACE}/a-two port:${PORT} ${query}`);
      return found && of(found);
    }, EVERY);
  const create = (noun: "networkPolicy" | "stagedNetworkPolicy", spec: object) => {
    const kind = storedKind(noun);
    const apiVersion = `${kind.group}/${kind.version}`;
    return cluster.client.create(kind, { apiVersion, kind: kind.kind, metadata: POLICY, spec });
  };

  beforeAll(async () => {
    cluster = await startReal({ nodes: 2, proxy: "nftables" });
    tool = openTool(cluster.kubeconfig);
    await vendorctl("install", "-y", "--dataplane", "standard");
    await cluster.client.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE } });
    const [nodeA = "", nodeB = ""] = cluster.nodeNames;
    for (const [name, node] of Object.entries({ "a-one": nodeA, "a-two": nodeA, "b-one": nodeB }))
      await createPod(cluster, { name, namespace: NAMESPACE, node, labels: { app: name } });
    const ready = await readyPods(cluster, NAMESPACE, 3);
    const { items } = await cluster.client.list<Pod>(PODS, { namespace: NAMESPACE });
    const ipOf = (name: string) => items.find(({ metadata }) => metadata.name === name)?.status?.podIP as string;
    pods = new Map([...ready].map(([name, { netns }]) => [name, { netns, ip: ipOf(name) }]));
    sinks = await Promise.all([...pods].map(([name, { netns }]) => answerIn(netns, name, { tcp: [PORT], udp: [] })));
    await vendorctl("flows", "enable", "-y");
  });
  afterAll(async () => {
    for (const sink of sinks) sink.close();
    tool?.close();
    await cluster?.close();
  });

  it.each(["Nftables", "BPF"] as const)(
    "let packets pass and say what they would do to them, which enforced they do: %s",
    async (dataplane) => {
      if (dataplane === "BPF") await vendorctl("switch", "--to", "BPF", "-y");
      await untilActs(cluster.client, dataplane);
      const plane = `plane:${dataplane.toLowerCase()}`;
      const by = { direction: "Ingress", tier: "default", ...POLICY };
      await create("stagedNetworkPolicy", { stagedAction: "Set", ...SPEC });
      const pendingOf = ({ verdict, pending }: FlowKey) => [verdict, pending?.verdict, pending?.policies.at(-1)];
      await askedUntil("b-one", `${plane} reporter:destination pending:deny`, pendingOf).toEqual([
        ...["Allow", "Deny"],
        { ...by, kind: "StagedNetworkPolicy", rule: 1, action: "Deny", staged: true },
      ]);
      await askedUntil("a-one", `${plane} policy:${NAMESPACE}/${POLICY.name}`, pendingOf).toEqual([
        ...["Allow", "Allow"],
        { ...by, kind: "StagedNetworkPolicy", rule: 0, action: "Allow", staged: true },
      ]);
      expect([await ask("a-one"), await ask("b-one")]).toEqual(["a-two", "a-two"]);
      expect(await vendorctl("flows", "-n", NAMESPACE, "pending:deny", plane, "-o", "wide")).toContain(
        `deny by ${NAMESPACE}/${POLICY.name}#ingress[1]`,
      );

      await create("networkPolicy", SPEC);
      await cluster.client.delete(storedKind("stagedNetworkPolicy"), POLICY);
      await expect.poll(() => ask("b-one"), EVERY).toBeUndefined();
      const decider = ({ verdict, policies, pending }: FlowKey) => [verdict, policies.at(-1), pending];
      await askedUntil("b-one", `${plane} verdict:deny`, decider).toEqual([
        "Deny",
        { ...by, kind: "NetworkPolicy", rule: 1, action: "Deny" },
        undefined,
      ]);
      expect(await ask("a-one")).toBe("a-two");

      await create("stagedNetworkPolicy", { stagedAction: "Delete" });
      await askedUntil("b-one", `${plane} verdict:deny pending:allow`, pendingOf).toMatchObject([
        ...["Deny", "Allow"],
        { kind: "Profile", action: "Allow" },
      ]);
      expect(await ask("b-one")).toBeUndefined();
      for (const noun of ["networkPolicy", "stagedNetworkPolicy"] as const)
        await cluster.client.delete(storedKind(noun), POLICY);
      await expect.poll(() => ask("b-one"), EVERY).toBe("a-two");
    },
  );
});

import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PODS } from "../../src/cluster/kinds.ts";
import { OUR_PROTOCOL } from "../../src/dataplane/net/desired-routes.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import { eventually } from "../../src/local/testing/bare-server.ts";
import { fewWithEveryTag, NetworkPolicyLab, networkPolicyCases } from "../calc/network-policy-lab.ts";
import { installPtp, netOf, setPrefixOfNode, switchToEbpf, whyNoPtp } from "./foreign-cni-lab.ts";
import { LivePolicyLab } from "./live-policy-lab.ts";
import {
  ALL_PATHS,
  closeByGlobalPolicy,
  closeByNetworkPolicy,
  type Paths,
  pathsOf,
  routePodCidrs,
  untilWorking,
} from "./manifest-lab.ts";
import {
  createPod,
  installNetwork,
  type RealCluster,
  readyPods,
  startReal,
  untilActs,
  whyNoRealNodes,
} from "./real-cluster.ts";
import { askFrom } from "./sockets.ts";

const why = whyNoRealNodes ?? whyNoPtp;
/** The operator names the first for all nodes; the configuration of a node names each of the others. */
const PREFIXES = ["eni", "azv", "gke"];
/** All of them hold in the calculation and in each plane's own tests. Which addresses pods get is up to `host-local`, so none with prefixes. */
const cases = fewWithEveryTag(
  (networkPolicyCases() ?? []).filter(({ Tags }) => !Tags.some((tag) => /ip-?block/.test(tag))),
);
const PLANES = ["Nftables", "BPF"] as const;

describe.skipIf(why)(`pods that another CNI plugin connects${why ? `: ${why}` : ""}`, () => {
  let cluster: RealCluster;
  let paths: Paths;
  beforeAll(async () => {
    cluster = await startReal({ nodes: PREFIXES.length });
    await routePodCidrs(cluster);
    await installPtp(cluster, new Map(cluster.nodeNames.map((node, at) => [node, PREFIXES[at] as string])));
    await installNetwork(cluster, { dataplane: "Nftables", cni: "AmazonVPC", families: [] });
    for (const [at, node] of cluster.nodeNames.entries()) {
      if (at > 0) await setPrefixOfNode(cluster, node, PREFIXES[at] as string);
    }
    paths = await pathsOf(cluster);
  });
  afterAll(async () => {
    paths?.close();
    await cluster?.close();
  });

  describe.each(PLANES)("with %s", (dataplane) => {
    beforeAll(async () => {
      if (dataplane === "Nftables") return;
      await switchToEbpf(cluster);
      await untilActs(cluster.client, dataplane);
    });

    it("carries packets on a node, between nodes, to a Service and to the outside", async () => {
      await untilWorking(paths, ALL_PATHS);
    });

    it("enforces NetworkPolicy and policies of its own, also while an agent restarts, and on a pod that comes then", async () => {
      const open = await closeByNetworkPolicy(cluster);
      await untilWorking(paths, ["outside"]);
      const node = cluster.nodeNames[0] as string;
      const before = interfacesOf(node);
      killAgent(node);
      await createPod(cluster, { name: "late", namespace: "shop", node, image: "probe", labels: { app: "web" } });
      const pods = await readyPods(cluster, "shop", 4);
      const late = { host: pods.get("late")?.podIPs[0] as string, port: 8080 };
      const ask = () => askFrom(pods.get("client")!.netns, late, 1_000);
      expect([await ask(), await paths.working()]).toEqual([undefined, ["outside"]]);
      await untilActs(cluster.client, dataplane);
      expect([await ask(), await paths.working()]).toEqual([undefined, ["outside"]]);
      const openOutside = await closeByGlobalPolicy(cluster);
      await open();
      await untilWorking(
        paths,
        ALL_PATHS.filter((path) => path !== "outside"),
      );
      await eventually(ask, (answer) => answer?.host === "late", 20_000);
      await openOutside();
      await cluster.client.delete(PODS, { name: "late", namespace: "shop" });
      await eventually(
        async () => interfacesOf(node),
        (now) => now.join() === before.join(),
        20_000,
      );
      await untilWorking(paths, ALL_PATHS);
    });

    const own = cases.slice(PLANES.indexOf(dataplane)).slice(0, 1);
    it.each(own.map((one) => [one.Description, one] as const))(
      "holds for the public case: %s",
      async (_, { Steps }) => {
        const live = new LivePolicyLab(cluster, cluster.nodeNames);
        const world = new NetworkPolicyLab(live, "");
        try {
          for (const [index, { Actions = [], Allowed }] of Steps.entries()) {
            for (const action of Actions) world.act(action);
            await live.sync();
            const probes = [...world.probes(Allowed)].filter(({ protocol }) => protocol !== "SCTP");
            expect(await live.wrong(probes), `step ${index + 1}`).toEqual([]);
          }
        } finally {
          live.clear();
          await live.sync();
          live.close();
        }
      },
    );

    it("writes no routes to pods, and no settings of their interfaces", () => {
      expect(cluster.nodeNames.flatMap(interfacesOf).length).toBeGreaterThan(0);
      for (const node of cluster.nodeNames) {
        const { links, routes } = netOf(cluster, node);
        const pods = interfacesOf(node);
        expect(links.filter(({ name }) => name.startsWith("ven"))).toEqual([]);
        expect(routes.filter(({ protocol }) => protocol === OUR_PROTOCOL)).toEqual([]);
        realKernel().netns.run(cluster.runtime.machine(node).netns, () => {
          const settings = pods.map((name) => readFileSync(`/proc/sys/net/ipv4/conf/${name}/proxy_arp`, "utf8").trim());
          expect(settings.filter((setting) => setting !== "0")).toEqual([]);
        });
      }
    });
  });

  function interfacesOf(node: string): string[] {
    const prefix = PREFIXES[cluster.nodeNames.indexOf(node)] as string;
    const names = netOf(cluster, node).links.map(({ name }) => name);
    return names.filter((name) => name.startsWith(prefix)).sort();
  }

  function killAgent(node: string): void {
    const agent = [...cluster.runtime.pods()].find(
      ({ pod, machine }) => pod.metadata.labels?.["k8s-app"] === "vendor-node" && machine.spec.name === node,
    );
    expect(cluster.runtime.kill(agent?.pod.metadata.uid ?? "")).toBe(true);
  }
});

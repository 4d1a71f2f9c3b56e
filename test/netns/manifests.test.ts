import { resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findKubectls, type Kubectl, openKubectl } from "../support/kubectl.ts";
import {
  ALL_PATHS,
  closeByGlobalPolicy,
  closeByNetworkPolicy,
  type Paths,
  pathsOf,
  routePodCidrs,
  untilAllRun,
  untilWorking,
} from "./manifest-lab.ts";
import { reboot, removeNode, untilAnswers, untilPeers } from "./overlay-nodes.ts";
import { type RealCluster, startReal, whyNoRealNodes } from "./real-cluster.ts";

const program = findKubectls().at(-1);
const why = whyNoRealNodes ?? (program ? undefined : "needs kubectl");

const LATER_PREFIX = "10.244.7.0/24";

const FILES = [
  ["vendor.yaml", "vendor-node"],
  ["vendor-overlay.yaml", "vendor-overlay"],
  ["vendor-policy-only.yaml", "vendor-node"],
] as const;

describe.skipIf(why).each(FILES)(
  `%s applied by kubectl to nodes without a network${why ? `: ${why}` : ""}`,
  (file, agents) => {
    let cluster: RealCluster;
    let kubectl: Kubectl;
    let paths: Paths;
    beforeAll(async () => {
      cluster = await startReal({ nodes: 2 });
      kubectl = openKubectl(program!, cluster.kubeconfig);
      if (file === "vendor-policy-only.yaml") await routePodCidrs(cluster);
      await kubectl.ok("apply", "--server-side", "-f", resolve("manifests", file));
    });
    afterAll(async () => {
      paths?.close();
      kubectl?.close();
      await cluster?.close();
    });

    it("runs every pod, with the READY column of the specification", async () => {
      const pods = await untilAllRun(kubectl, cluster, agents);
      const controllers = "vendor-kube-controllers 1/1 Running";
      expect(pods).toEqual([controllers, controllers, `${agents} 2/2 Running`, `${agents} 2/2 Running`].sort());
    });

    it("carries packets on a node, between nodes, to a Service and to the outside", async () => {
      paths = await pathsOf(cluster);
      await untilWorking(paths, ALL_PATHS);
    });

    it("enforces NetworkPolicy, and policies of its own", async () => {
      const open = await closeByNetworkPolicy(cluster);
      await untilWorking(paths, ["outside"]);
      const openAgain = await closeByGlobalPolicy(cluster);
      await open();
      await untilWorking(
        paths,
        ALL_PATHS.filter((path) => path !== "outside"),
      );
      await openAgain();
      await untilWorking(paths, ALL_PATHS);
    });

    it.runIf(agents === "vendor-overlay")(
      "follows nodes that leave, come with another prefix, and restart",
      async () => {
        const [near, far] = cluster.nodeNames as [string, string];
        const { spec } = cluster.runtime.machine(far);
        await untilPeers(cluster, near, spec.podCIDRs);
        await removeNode(cluster, far);
        await untilPeers(cluster, near, []);
        await cluster.kubelet.addNode({ ...spec, podCIDRs: [LATER_PREFIX] });
        await untilAnswers(cluster, { name: "later", namespace: "shop", node: far });
        await untilPeers(cluster, near, [LATER_PREFIX]);
        await reboot(cluster, far);
        await untilAnswers(cluster, { name: "later", namespace: "shop", node: far });
        await untilPeers(cluster, far, cluster.runtime.machine(near).spec.podCIDRs);
      },
    );
  },
);

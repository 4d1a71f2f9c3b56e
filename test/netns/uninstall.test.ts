import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { NAMESPACES, NODES, PODS } from "../../src/cluster/kinds.ts";
import type { Pod } from "../../src/local/controllers/workload-types.ts";
import { openTool, type Tool } from "../procedures/kill-sweep/tool-process.ts";
import { createPod, type RealCluster, readyPods, startReal, whyNoRealNodes } from "./real-cluster.ts";
import { answerIn, askFrom } from "./sockets.ts";

/** Two installations and what is between them: minutes. */
const why =
  whyNoRealNodes ??
  (process.env["NETNS_UNINSTALL"] === "full" ? undefined : "a long run: npm run test:long -- uninstall");

const PORT = 9000;

/** Everything of a node's kernel and disk that an agent writes to. What kube-proxy and the runtime have in the same places is left out. */
const STATE = `
ip -o link | awk -F': ' '{print "link", $2}' | sed 's/@.*//' | sort
ip route show table all proto 80
ip -6 route show table all proto 80
ip rule; ip -6 rule
nft list tables | grep vendor
find /sys/fs/bpf -mindepth 1 | sort
find /opt/cni/bin /etc/cni/net.d -mindepth 1 | sort
find /var/lib/vendor -mindepth 1 2>/dev/null | sort
find /run/vendor/ -mindepth 1 -maxdepth 1 2>/dev/null | sort
for link in $(ls /sys/class/net); do tc filter show dev $link ingress; tc filter show dev $link egress; done
cat /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv6/conf/all/forwarding
grep -c " - cgroup2 " /proc/self/mountinfo
`;

describe.skipIf(why).each(["BPF", "standard"])(
  `uninstall, and install again, with %s${why ? `: ${why}` : ""}`,
  (dataplane) => {
    let cluster: RealCluster;
    let tool: Tool;
    let before: Record<string, string[]>;
    const ok = async (...args: string[]) => {
      const ended = await tool.run(...args);
      expect(ended.status, `vendorctl ${args.join(" ")}: ${ended.out}${ended.err}`).toBe(0);
      return ended.out;
    };
    const stateOfNodes = async () => {
      const state: Record<string, string[]> = {};
      for (const name of cluster.nodeNames) {
        const ran = await cluster.runtime.machine(name)?.run(["bash", "-c", STATE]);
        state[name] = (ran?.out ?? "").trim().split("\n");
      }
      return state;
    };
    const addresses = async () =>
      (await cluster.client.list<Pod>(PODS)).items
        .filter(({ spec, status }) => !spec.hostNetwork && status?.podIP)
        .map(({ metadata, status }) => `${status?.podIP} ${metadata.namespace}/${metadata.name}`);
    const duplicates = (lines: readonly string[]) => {
      const found = lines.map((line) => line.split(" ")[0]);
      return found.filter((address, at) => found.indexOf(address) !== at);
    };
    const reached = async (from: string, to: string) => {
      const pods = new Map([...cluster.runtime.pods()].map((pod) => [pod.pod.metadata.name, pod]));
      const [client, server] = [pods.get(from), pods.get(to)];
      const listener = await answerIn(server!.sandbox!.netns, to, { udp: [PORT] });
      try {
        const host = server!.podIPs[0] as string;
        return (await askFrom(client!.sandbox!.netns, { host, port: PORT, protocol: "udp" }))?.host;
      } finally {
        listener.close();
      }
    };
    const createPods = async (prefix: string) => {
      for (const [at, node] of cluster.nodeNames.entries()) await createPod(cluster, { name: `${prefix}-${at}`, node });
    };

    beforeAll(async () => {
      cluster = await startReal({ nodes: 2, proxy: "iptables" });
      tool = openTool(cluster.kubeconfig);
      before = await stateOfNodes();
    });
    afterAll(async () => {
      tool?.close();
      await cluster?.close();
    });

    it("leaves nothing on any node, although pods run", async () => {
      await ok("install", "-y", "--dataplane", dataplane);
      await createPods("first");
      await readyPods(cluster, "default", 2);
      expect(await stateOfNodes()).not.toEqual(before);
      const said = await ok("uninstall", "--remove-crds", "-y");
      expect(said).toContain("nothing of the service is left on 2 of 2 nodes");
      expect(await stateOfNodes()).toEqual(before);
      const names = (await cluster.client.list(NAMESPACES)).items.map(({ metadata }) => metadata.name);
      expect(names.filter((name) => name.startsWith("vendor"))).toEqual([]);
      const nodes = (await cluster.client.list(NODES)).items;
      const written = nodes.flatMap(({ metadata }) => Object.keys(metadata.annotations ?? {}));
      expect(written.filter((key) => key.startsWith("vendor.io/"))).toEqual([]);
    });

    it("installed again, no address is assigned twice, and restarted pods are reachable", async () => {
      await ok("install", "-y", "--dataplane", dataplane);
      await createPods("second");
      await readyPods(cluster, "default", 4);
      expect(duplicates(await addresses())).toEqual([]);
      await expect.poll(() => reached("second-0", "second-1")).toBe("second-1");
      for (const name of ["first-0", "first-1"]) {
        await cluster.client.delete(PODS, { namespace: "default", name }, { gracePeriodSeconds: 0 });
      }
      await readyPods(cluster, "default", 2);
      await createPods("third");
      await readyPods(cluster, "default", 4);
      expect(duplicates(await addresses())).toEqual([]);
      await expect.poll(() => reached("third-0", "second-1")).toBe("second-1");
      expect((await cluster.client.list(NODES)).items).toHaveLength(2);
    });
  },
);

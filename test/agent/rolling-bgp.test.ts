import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type BgpLab, bgpLab, learned, problemsOf, sessionsOf } from "./bgp-lab.ts";
import { whyNoBird } from "./frr-router.ts";
import { type LabNode, type LabPod, until, whyNoNodes } from "./node-lab.ts";
import { type OlderBird, olderRoutes, startOlderBird } from "./older-bird.ts";
import { measurePodPaths, type PodPaths } from "./pod-paths.ts";

const run = promisify(execFile);
const why = whyNoNodes() ?? whyNoBird();
const POOL = "10.88.0.0/24";

describe.skipIf(why !== undefined)(
  `nodes become ours one by one beside older ones, in a pool without encapsulation${why ? ` (${why})` : ""}`,
  () => {
    let lab: BgpLab;
    let paths: PodPaths;
    const pods: LabPod[] = [];
    const older = new Map<string, OlderBird>();

    beforeAll(async () => {
      lab = await bgpLab({ bpf: false, nodes: 3, pools: [{ cidr: POOL, vxlanMode: "Never", blockSize: 28 }] }, [], {});
      for (const [at, node] of lab.nodes.entries()) pods.push(await lab.addPod(`pod-${at}`, node));
      // The pods' own interfaces and routes are all that is left of us.
      for (const [at, node] of lab.nodes.entries()) {
        await lab.bgp[at]!.kill();
        await node.stop();
      }
      for (const [at, node] of lab.nodes.entries()) {
        await forgetRoutes(node);
        const others = lab.nodes.filter((other) => other !== node);
        older.set(node.name, await startOlderBird({ node, block: blockOf(pods[at]!) }, others, POOL));
      }
      for (const [at, node] of lab.nodes.entries()) {
        await becomes(() => olderRoutes(node), [...routesTo(node), `${blockOf(pods[at]!)} nowhere`].sort());
      }
      paths = await measurePodPaths(pods);
    });
    afterAll(async () => {
      await paths?.close();
      for (const bird of older.values()) await bird.kill();
      await lab?.close();
    });

    const becomes = async <T>(is: () => Promise<T>, wanted: T) =>
      await until(
        async () => JSON.stringify(await is()) === JSON.stringify(wanted),
        async () => `${JSON.stringify(await is())} instead of ${JSON.stringify(wanted)}`,
      );
    const routesTo = (node: LabNode) =>
      pods
        .filter((pod) => pod.node !== node)
        .map((pod) => `${blockOf(pod)} via ${pod.node.addresses.v4}`)
        .sort();

    it("no pod is unreachable at any moment, and nothing of the older daemon is left", async () => {
      for (const [at, node] of lab.nodes.entries()) {
        await older.get(node.name)!.kill();
        older.delete(node.name);
        lab.bgp[at]!.start();
        await node.start();
        const sessions = async () =>
          Object.entries(await sessionsOf(node)).flatMap(([name, state]) =>
            name.startsWith("mesh_10_") ? [state] : [],
          );
        await becomes(sessions, ["Established", "Established"]);
        await becomes(async () => (await learned(node)).filter((one) => one.startsWith("10.88.")), routesTo(node));
      }
      const figures = await paths.figures();
      expect(figures.filter(({ lost, unanswered }) => lost > 0 || unanswered > 0)).toEqual([]);
      expect(figures).toHaveLength(12);
      for (const node of lab.nodes) {
        expect(await olderRoutes(node)).toEqual([]);
        await becomes(() => problemsOf(node), []);
      }
    });
  },
);

/** What an agent of ours and its BIRD would have written for the way to other nodes, and for the node's own block. */
async function forgetRoutes({ netns }: LabNode): Promise<void> {
  const ip = (...args: string[]) => run("nsenter", [`--net=/run/netns/${netns.name}`, "ip", "route", ...args]);
  const { stdout } = await ip("show");
  const ours = stdout
    .split("\n")
    .filter((line) => /proto (80|bird)/.test(line) && !/ dev ven/.test(line))
    .map((line) =>
      line
        .trim()
        .split(" ")
        .filter((word) => word !== "onlink"),
    );
  for (const words of ours) await ip("del", ...words);
}

function blockOf({ addresses: [address = ""] }: LabPod): string {
  return `10.88.0.${Math.floor(Number(address.split(".")[3]) / 16) * 16}/28`;
}

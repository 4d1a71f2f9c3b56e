/**
 * An upgrade from an earlier commit, with its own programs: real nodes run what was built from that commit, installed by its own vendorctl. Then
 * this tree's vendorctl ends what the earlier one left unfinished, and upgrades: operator, controllers, API server, plugin, and each agent.
 */
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readAgentReport } from "../../src/api/protocol/agent-report.ts";
import { VERSION } from "../../src/api/tables/release.ts";
import { PODS } from "../../src/cluster/kinds.ts";
import { isReady } from "../../src/local/controllers/pod-state.ts";
import type { Pod } from "../../src/local/controllers/workload-types.ts";
import { ourProgram } from "../../src/local/programs/our-program.ts";
import type { RealPod } from "../../src/local/runtime/netns/real-pod.ts";
import type { StatusTree } from "../../src/procedures/status-tree.ts";
import { type RealCluster, startReal, whyNoRealNodes } from "../netns/real-cluster.ts";
import { measuredIn } from "../netns/steady-traffic.ts";
import { openTool, type Tool } from "../procedures/kill-sweep/tool-process.ts";
import { buildEarlier, EARLIER, type EarlierRelease, whyNoEarlier } from "./earlier-release.ts";
import { NOTHING_LOST, type PolicedTraffic, policedTraffic } from "./policed-traffic.ts";

const asked = process.env["EARLIER_PROGRAMS"] === "full";
const why = whyNoRealNodes ?? (asked ? whyNoEarlier() : "a long run: npm run test:long -- earlier-programs");
const AGENTS = { namespace: "vendor-system", labelSelector: "k8s-app=vendor-node" };
/** A machine with other things to do may be late; a connection is lost or it is not. */
const BUDGET = ["--budget", "connections=0,silence=20s,datagrams=5%"];
const EVERY = { interval: 500, timeout: 120_000 };

describe.skipIf(why)(`programs of ${EARLIER} on real nodes${why ? `: ${why}` : ""}`, () => {
  let earlier: EarlierRelease;
  beforeAll(async () => {
    earlier = await buildEarlier();
  });
  afterAll(() => earlier?.remove());

  describe.each([
    { plane: "BPF", flag: "BPF", other: "standard" },
    { plane: "Nftables", flag: "standard", other: "BPF" },
  ] as const)("$plane", ({ plane, flag, other }) => {
    let cluster: RealCluster;
    let [theirs, ours]: Tool[] = [];
    let traffic: PolicedTraffic;

    beforeAll(async () => {
      cluster = await startReal({ nodes: 3, proxy: "iptables", releases: { [earlier.version]: earlier.root } });
      // Earlier agents start only where this directory is.
      for (const node of cluster.nodeNames)
        mkdirSync(cluster.runtime.machine(node).path("/lib/modules"), { recursive: true });
      ours = openTool(cluster.kubeconfig);
      theirs = openTool(cluster.kubeconfig, { executable: earlier.vendorctl, home: ours.home });
    });
    afterAll(async () => {
      traffic?.close();
      theirs?.close();
      ours?.close();
      await cluster?.close();
    });

    const ok = async (...args: string[]) => {
      const ended = await ours!.run(...args, "--timeout", "8m", "-o", "json");
      const last = ended.out.trimEnd().split("\n").slice(-5).join("\n");
      expect(ended.status, `vendorctl ${args.join(" ")}: ${last}\n${ended.err}`).toBe(0);
      return ended.out;
    };
    /** The earlier vendorctl begins, and is killed when a step is done. */
    const leaveUnfinished = async (step: string, ...args: string[]) => {
      const begun = theirs!.start(...args, "-y", "-o", "json");
      await begun.said(new RegExp(`"id":"${step}".*"state":"(done|ok)"`));
      await begun.kill();
    };
    const agents = async () => {
      const { items } = await cluster.client.list<Pod>(PODS, AGENTS);
      return items.map((pod) => ({
        version: pod.spec.containers[0]?.image?.split(":").at(-1),
        acts: readAgentReport(pod.metadata.annotations).dataplane,
        ready: isReady(pod),
      }));
    };
    const all = (version: string) => cluster.nodeNames.map(() => ({ version, acts: plane, ready: true }));
    const programs = () => programsOf(cluster, earlier);

    it("an installation that the earlier vendorctl left unfinished is resumed, with the earlier programs", async () => {
      // It refuses nodes that wait for a CNI; this is what its guide says to do.
      const suppressed = ["--suppress", "NO_ROOM_FOR_PODS"];
      await leaveUnfinished("operator", "install", "--dataplane", flag, "--manifest-url", earlier.url, ...suppressed);
      await ok("resume", "-y", "--manifest-url", earlier.url);
      await expect.poll(agents, EVERY).toEqual(all(earlier.version));
      expect(await programs()).toEqual({ ours: [], theirs: EVERY_PROGRAM, plugins: "theirs" });
      traffic = await policedTraffic(cluster);
    });

    it("a switch that the earlier vendorctl left unfinished is rolled back, and nothing is lost", async () => {
      await leaveUnfinished("release-canary", "switch", "--to", other, ...BUDGET);
      await ok("rollback", "-y");
      await expect.poll(agents, EVERY).toEqual(all(earlier.version));
      expect(await traffic.figures()).toMatchObject(NOTHING_LOST);
    });

    it("an upgrade replaces every program, one node after another, and nothing is lost", async () => {
      const out = await ok("upgrade", "-y", "--canary-traffic", "auto", ...BUDGET);
      await expect.poll(agents, EVERY).toEqual(all(VERSION));
      expect(await programs()).toEqual({ ours: EVERY_PROGRAM, theirs: [], plugins: "ours" });
      const figures = await traffic.figures();
      console.log(`${plane}: ${JSON.stringify(figures)}`);
      expect(figures).toMatchObject(NOTHING_LOST);
      const lossy = measuredIn(out).filter(({ lost, reached }) => lost > 0 || !reached);
      expect(lossy, "what vendorctl measured").toEqual([]);
    });

    it("a pod that the earlier plugin connected is removed by ours, and a new one is connected", async () => {
      for (const node of cluster.nodeNames) await traffic.replaceClient(node);
      expect(await traffic.figures()).toMatchObject(NOTHING_LOST);
      const state = async () => (JSON.parse((await ours!.run("status", "-o", "json")).out || "{}") as StatusTree).state;
      await expect.poll(state, EVERY).toBe("ok");
    });
  });
});

const EVERY_PROGRAM = ["apiserver", "apiserver", "controllers", "controllers", "node", "node", "node", "operator"];

/** Which containers of our image run which programs, by the files they see; and whose plugin the nodes have. */
async function programsOf({ runtime, nodeNames }: RealCluster, { root, version }: EarlierRelease) {
  const bundle = { ours: mainOf("."), theirs: mainOf(root) };
  const running: Record<string, string[]> = { ours: [], theirs: [] };
  for (const pod of runtime.pods()) {
    const name = ourProgram(pod.pod.spec.containers[0]!)?.name;
    if (name === undefined) continue;
    const main = await fileIn(pod, "/opt/vendor/dist/main.js");
    const whose = main === bundle.ours ? "ours" : main === bundle.theirs ? "theirs" : `neither ${version}`;
    running[whose] = [...(running[whose] ?? []), name];
  }
  const plugin = { ours: pluginOf("."), theirs: pluginOf(root) };
  const installed = nodeNames.map((node) => readFileSync(runtime.machine(node).path("/opt/cni/bin/vendor"), "utf8"));
  const whose = (["ours", "theirs"] as const).filter((one) => installed.every((text) => text.endsWith(plugin[one])));
  for (const names of Object.values(running)) names.sort();
  return { ...running, plugins: whose.join(" ") };
}

const mainOf = (root: string) => readFileSync(join(root, "dist/main.js"), "utf8");
const pluginOf = (root: string) => readFileSync(join(root, "dist/cni-plugin.cjs"), "utf8");

async function fileIn(pod: RealPod, path: string): Promise<string> {
  const session = await pod.exec(pod.pod.spec.containers[0]!.name, { command: ["cat", path] }).catch(() => undefined);
  if (!session) return "";
  const { stdout } = session;
  let text = "";
  for await (const part of stdout) text += part;
  return text;
}

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { announcedDataplane } from "../../src/api/protocol/agent-report.ts";
import { PODS } from "../../src/cluster/kinds.ts";
import type { Pod } from "../../src/local/controllers/workload-types.ts";
import { openTool, type Tool } from "../procedures/kill-sweep/tool-process.ts";
import { type ApiFault, apiFaults } from "../support/api-faults.ts";
import { type RealCluster, startReal, whyNoRealNodes } from "./real-cluster.ts";
import { lossesOf, measuredIn, NOTHING_LOST, type SteadyTraffic, steadyTraffic } from "./steady-traffic.ts";

/** Ten switches under measured traffic, with minutes of outage in each. */
const why =
  whyNoRealNodes ?? (process.env["API_OUTAGE"] === "full" ? undefined : "a long run: npm run test:long -- outage");
const EVERY = { interval: 500, timeout: 300_000 };
const AGENTS = { namespace: "vendor-system", labelSelector: "k8s-app=vendor-node" };
/** A machine with other things to do may be late; a connection is lost or it is not. */
const LENIENT = ["--budget", "connections=0,silence=20s,datagrams=5%", "-o", "json"];
/** When the first node is about to change: some nodes have followed and some have not, whatever happens from here on. */
const AMID = /"id":"release-canary".*"state":"running"/;

const FAULTS: [name: string, fault: ApiFault, seconds: number][] = [
  ["does not answer for 10 s", "silent", 10],
  ["does not answer for 60 s", "silent", 60],
  ["ends every watch with 410 for 60 s", "expired", 60],
  ["answers everything 3 s late for 60 s", { slowMs: 3_000 }, 60],
  ["does not answer for 5 minutes", "silent", 300],
];

describe.skipIf(why)(`an API server in trouble while nodes change their data plane${why ? `: ${why}` : ""}`, () => {
  let cluster: RealCluster;
  let tool: Tool;
  let live: SteadyTraffic;
  const faults = apiFaults();
  const planes = async () => {
    const { items } = await cluster.client.list<Pod>(PODS, AGENTS);
    return items.map(({ metadata }) => announcedDataplane(metadata.annotations));
  };

  beforeAll(async () => {
    cluster = await startReal({ nodes: 2, proxy: "iptables", front: faults.front });
    tool = openTool(cluster.kubeconfig);
    const { status, err } = await tool.run("install", "-y", "--dataplane", "standard");
    expect(status, err).toBe(0);
    live = await steadyTraffic(cluster, cluster.nodeNames[0] as string);
  }, 300_000);
  afterAll(async () => {
    faults.set("none");
    tool?.close();
    await cluster?.close();
  }, 120_000);

  describe.each(FAULTS)("one that %s", (name, fault, seconds) => {
    it.each(["BPF", "standard"])(
      "loses nothing, lets nothing pass, and the switch to %s succeeds",
      async (to) => {
        const plan = async () => (await tool.run("plan", "switch", "--to", to)).status;
        await expect.poll(plan, EVERY).toBe(0);
        const began = Date.now();
        const switching = tool.start("switch", "--to", to, "-y", ...LENIENT);
        await switching.said(AMID);
        const amid = Date.now();
        faults.set(fault);
        await new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
        const met = faults.met();
        faults.set("none");
        const back = Date.now();
        const { status, out, err } = await switching.ended;
        const ended = Date.now();
        const figures = await live.figures();
        const silence = Math.max(...figures.map(({ silenceMs }) => silenceMs));
        const took = `${took1(began, amid)} s before, ${took1(back, ended)} s after`;
        process.stdout.write(
          `switch to ${to}, server ${name}: ${took}; ${met} requests met; longest silence ${silence} ms\n`,
        );
        expect(met).toBeGreaterThan(0);
        expect(status, `${err}\n${out.slice(-2_000)}`).toBe(0);
        const plane = to === "BPF" ? "BPF" : "Nftables";
        await expect.poll(planes, EVERY).toEqual([plane, plane]);
        expect(measuredIn(out).filter(({ lost, reached }) => lost > 0 || !reached)).toEqual([]);
        expect(lossesOf(figures)).toEqual(NOTHING_LOST);
        expect(await live.deniedHeard()).toBe(false);
      },
      900_000,
    );
  });
});

const took1 = (from: number, to: number) => ((to - from) / 1_000).toFixed(1);

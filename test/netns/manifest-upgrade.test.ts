import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import { VERSION } from "../../src/api/tables/release.ts";
import { DAEMON_SETS } from "../../src/cluster/kinds.ts";
import type { DaemonSet } from "../../src/local/controllers/workload-types.ts";
import type { ManifestFile } from "../../src/releases/published.ts";
import { openTool, type Tool } from "../procedures/kill-sweep/tool-process.ts";
import { findKubectls, type Kubectl, openKubectl } from "../support/kubectl.ts";
import { applyAll } from "../support/operator-manifests.ts";
import { routePodCidrs, untilAllRun } from "./manifest-lab.ts";
import { olderRelease } from "./older-release.ts";
import { type RealCluster, startReal, whyNoRealNodes } from "./real-cluster.ts";
import { lossesOf, NOTHING_LOST, type SteadyTraffic, steadyTraffic } from "./steady-traffic.ts";

const program = findKubectls().at(-1);
const why = whyNoRealNodes ?? (program ? undefined : "needs kubectl");
const FROM = "v3.27";
const SYSTEM = "kube-system";
/** As the specification writes it. */
const APPLY = ["apply", "--server-side", "--force-conflicts", "-f"];
/** A machine with other things to do may be late; a connection is lost or it is not. */
const MEASURED = ["--canary-traffic", "auto", "--budget", "connections=0,silence=20s,datagrams=5%", "-o", "json"];

const FILES: readonly (readonly [ManifestFile, string])[] = [
  ["policyAndNetworking", "vendor-node"],
  // A long run: npm run test:long -- manifest-upgrade
  ...(process.env["MANIFEST_UPGRADE"] === "full"
    ? ([
        ["policyAndOverlay", "vendor-overlay"],
        ["policyOnly", "vendor-node"],
      ] as const)
    : []),
];

describe.skipIf(why).each(FILES)(`%s of ${FROM}, upgraded under traffic${why ? `: ${why}` : ""}`, (file, agents) => {
  const older = olderRelease(file, FROM);
  const today = resolve("manifests", vendorNames.manifests[file]);
  let cluster: RealCluster;
  let kubectl: Kubectl;
  let tool: Tool;
  let live: SteadyTraffic;
  let before: string;
  const ok = async (...args: string[]) => {
    const ended = await tool.run(...args);
    expect(ended.status, `vendorctl ${args.join(" ")}: ${ended.out}${ended.err}`).toBe(0);
    return ended.out;
  };
  const untilAllAre = (version: string) => untilAllRun(kubectl, cluster, agents, version);

  beforeAll(async () => {
    cluster = await startReal({ nodes: 2, admissions: [older.admission] });
    kubectl = openKubectl(program!, cluster.kubeconfig);
    tool = openTool(cluster.kubeconfig);
    before = join(tool.home, "older.yaml");
    writeFileSync(before, older.text);
    await applyAll(cluster.client, older.needs);
    if (file === "policyOnly") await routePodCidrs(cluster);
    await kubectl.ok(...APPLY, before);
    await untilAllAre(older.version);
    live = await steadyTraffic(cluster, cluster.nodeNames[1] as string);
  });
  afterAll(async () => {
    tool?.close();
    kubectl?.close();
    await cluster?.close();
  });

  it("by kubectl apply, and back", async () => {
    await kubectl.ok(...APPLY, today);
    await untilAllAre(VERSION);
    await kubectl.ok(...APPLY, before);
    await untilAllAre(older.version);
    expect(lossesOf(await live.figures())).toEqual(NOTHING_LOST);
  });

  it("by vendorctl upgrade, and back", async () => {
    const was = await cluster.client.get<DaemonSet>(DAEMON_SETS, { name: agents, namespace: SYSTEM });
    await ok("upgrade", "-y", ...MEASURED);
    await untilAllAre(VERSION);
    await ok("rollback", "-y");
    await untilAllAre(older.version);
    expect(lossesOf(await live.figures())).toEqual(NOTHING_LOST);
    const is = await cluster.client.get<DaemonSet>(DAEMON_SETS, { name: agents, namespace: SYSTEM });
    expect(is.spec).toEqual(was.spec);
  });
});

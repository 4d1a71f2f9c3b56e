import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import { VERSION } from "../../src/api/tables/release.ts";
import { DAEMON_SETS } from "../../src/cluster/kinds.ts";
import type { DaemonSet } from "../../src/local/controllers/workload-types.ts";
import { OUTSIDE } from "../../src/local/runtime/netns/places.ts";
import type { ManifestFile } from "../../src/releases/published.ts";
import { openTool, type Tool } from "../procedures/kill-sweep/tool-process.ts";
import { filledIn } from "../support/etcd-cluster.ts";
import { type EtcdServer, hasEtcd, NO_ETCD, startEtcd } from "../support/etcd-server.ts";
import { findKubectls, type Kubectl, openKubectl } from "../support/kubectl.ts";
import { applyAll, manifest } from "../support/operator-manifests.ts";
import { routePodCidrs, untilAllRun } from "./manifest-lab.ts";
import { olderRelease } from "./older-release.ts";
import { type RealCluster, startReal, whyNoRealNodes } from "./real-cluster.ts";
import { lossesOf, NOTHING_LOST, type SteadyTraffic, steadyTraffic } from "./steady-traffic.ts";

const program = findKubectls().at(-1);
const FULL = process.env["MANIFEST_UPGRADE"] === "full";
const why = whyNoRealNodes ?? (program ? (FULL && !hasEtcd() ? NO_ETCD : undefined) : "needs kubectl");
/** Of etcd, outside the cluster. */
const ADDRESS = "203.0.113.2";
const FROM = "v3.27";
const SYSTEM = "kube-system";
/** As the specification writes it. */
const APPLY = ["apply", "--server-side", "--force-conflicts", "-f"];
/** A machine with other things to do may be late; a connection is lost or it is not. */
const MEASURED = ["--canary-traffic", "auto", "--budget", "connections=0,silence=20s,datagrams=5%", "-o", "json"];

const FILES: readonly (readonly [ManifestFile, string])[] = [
  ["policyAndNetworking", "vendor-node"],
  // A long run: npm run test:long -- manifest-upgrade
  ...(FULL
    ? ([
        ["policyAndOverlay", "vendor-overlay"],
        ["policyOnly", "vendor-node"],
        ["policyAndNetworkingEtcd", "vendor-node"],
        ["policyAndOverlayEtcd", "vendor-overlay"],
      ] as const)
    : []),
];

describe.skipIf(why).each(FILES)(`%s of ${FROM}, upgraded under traffic${why ? `: ${why}` : ""}`, (file, agents) => {
  const older = olderRelease(file, FROM);
  /** Of the containers of an agent's pod: on etcd the second never is, as the specification says. */
  const ready = file.endsWith("Etcd") ? 1 : undefined;
  let cluster: RealCluster;
  let etcd: EtcdServer | undefined;
  let kubectl: Kubectl;
  let tool: Tool;
  let live: SteadyTraffic;
  let before: string;
  let today: string;
  const ok = async (...args: string[]) => {
    const ended = await tool.run(...args);
    expect(ended.status, `vendorctl ${args.join(" ")}: ${ended.out}${ended.err}`).toBe(0);
    return ended.out;
  };
  const untilAllAre = (version: string) => untilAllRun(kubectl, cluster, agents, version, ready);
  /** The file, as its head asks to edit it. */
  const written = (name: string, text: string) => {
    const path = join(tool.home, name);
    writeFileSync(path, etcd ? filledIn(text, etcd) : text);
    return path;
  };

  beforeAll(async () => {
    cluster = await startReal({ nodes: 2, admissions: [older.admission] });
    kubectl = openKubectl(program!, cluster.kubeconfig);
    tool = openTool(cluster.kubeconfig);
    if (ready !== undefined) {
      const within = { netns: `v-${cluster.name}.${OUTSIDE}`, address: ADDRESS };
      etcd = await startEtcd({ tls: true, users: true, within });
    }
    before = written("older.yaml", older.text);
    today = written("today.yaml", manifest(vendorNames.manifests[file]));
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
    await etcd?.stop();
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

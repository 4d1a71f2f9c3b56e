import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { KubeObject } from "../../src/api/object.ts";
import { allocationsOf } from "../../src/api/resources/ipam-allocation.ts";
import { CRDS, NAMESPACES, PODS } from "../../src/cluster/kinds.ts";
import { type Block, IPAM_BLOCKS } from "../../src/ipam/ipam-kinds.ts";
import type { Pod } from "../../src/local/controllers/workload-types.ts";
import { OUTSIDE } from "../../src/local/runtime/netns/places.ts";
import { applyEtcdManifest } from "../support/etcd-cluster.ts";
import { type EtcdServer, hasEtcd, NO_ETCD, startEtcd } from "../support/etcd-server.ts";
import { type OutsideVendorctl, outsideVendorctl } from "./outside-vendorctl.ts";
import { createPod, type RealCluster, readyPods, startReal, whyNoRealNodes } from "./real-cluster.ts";
import { lossesOf, measuredIn, NOTHING_LOST, type SteadyTraffic, steadyTraffic } from "./steady-traffic.ts";

/** A migration and its way back, both measured: minutes. */
const full = process.env["NETNS_SWITCH"] === "full" ? undefined : "a long run: npm run test:long -- switch";
const why = whyNoRealNodes ?? (hasEtcd() ? full : NO_ETCD);
/** A machine with other things to do may be late; a connection is lost or it is not. */
const BUDGET = ["--budget", "connections=0,silence=20s,datagrams=5%"];
const ADDRESS = "203.0.113.2";
const SHOP = "shop";
/** Of the steady traffic. */
const LIVE = "live";

/** File, what takes its place, and its DaemonSet; whether IPAM of ours gives the addresses, which are in blocks then. */
const FILES = [
  ["vendor-etcd.yaml", "vendor.yaml", "vendor-node", true],
  ["vendor-overlay-etcd.yaml", "vendor-overlay.yaml", "vendor-overlay", false],
] as const;

describe.skipIf(why).each(FILES)(`%s becomes %s under traffic${why ? `: ${why}` : ""}`, (file, _, name, hasBlocks) => {
  let cluster: RealCluster;
  let etcd: EtcdServer;
  let tool: OutsideVendorctl;
  let live: SteadyTraffic;
  const agents = async () =>
    (await cluster.client.list<Pod>(PODS, { namespace: "kube-system", labelSelector: `k8s-app=${name}` })).items;
  /** Addresses of pods that have one of their own, one for each pod. */
  const podAddresses = async (staying: (namespace: string) => boolean = () => true) =>
    (await cluster.client.list<Pod>(PODS)).items
      .filter(({ metadata, spec }) => !spec.hostNetwork && staying(metadata.namespace ?? ""))
      .filter(({ status }) => status?.phase === "Running")
      .map(({ status }) => status?.podIP as string)
      .sort();
  /** Not those of vendor-kube-controllers and of canary traffic, which come and go with a run. */
  const staying = () => podAddresses((namespace) => [SHOP, LIVE].includes(namespace));
  const onEtcd = async () => {
    const { out } = await tool.run("get", "ipamblocks", "-o", "json", ...etcd.flags);
    return (JSON.parse(out) as { items: Block[] }).items;
  };
  const onKubernetes = async () => (await cluster.client.list<Block>(IPAM_BLOCKS)).items;
  const allocated = (blocks: readonly Block[]) =>
    blocks
      .flatMap((block) => allocationsOf(block))
      .filter(({ owner }) => owner.kind === "pod")
      .map(({ address }) => address)
      .sort();
  /** Addresses that are allocated to no pod, and of pods that have no allocation. */
  const unlike = async (blocks: () => Promise<Block[]>) => {
    if (!hasBlocks) return (await blocks()).map(({ metadata }) => metadata.name);
    const [given, used] = [allocated(await blocks()), await podAddresses()];
    return [...given.filter((one) => !used.includes(one)), ...used.filter((one) => !given.includes(one))];
  };
  const startPods = async (prefix: string) => {
    for (const [at, node] of cluster.nodeNames.entries()) {
      await createPod(cluster, { name: `${prefix}-${at}`, namespace: SHOP, node, image: "probe", labels: {} });
    }
  };

  beforeAll(async () => {
    cluster = await startReal({ nodes: 2, proxy: "iptables" });
    etcd = await startEtcd({
      tls: true,
      users: true,
      within: { netns: `v-${cluster.name}.${OUTSIDE}`, address: ADDRESS },
    });
    // For get; the migration reads them from the Secret, as the agents do.
    for (const name of ["ETCD_USERNAME", "ETCD_PASSWORD"]) vi.stubEnv(name, etcd.env[name]);
    tool = await outsideVendorctl(cluster);
    await applyEtcdManifest(cluster.client, file, etcd);
    await cluster.client.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: { name: SHOP } });
    live = await steadyTraffic(cluster, cluster.nodeNames[1] as string);
  });
  afterAll(async () => {
    vi.unstubAllEnvs();
    tool?.close();
    await cluster?.close();
    await etcd?.stop();
  });

  it("loses no connection, keeps every address, and starts the pods that came meanwhile", async () => {
    const before = await staying();
    const [{ out }] = await Promise.all([
      tool.run("migrate", "datastore", "-y", "-o", "json", ...BUDGET),
      startPods("meanwhile"),
    ]);
    const rows = measuredIn(out);
    expect(rows.length).toBeGreaterThan(0);
    expect(rows.filter(({ lost, reached }) => lost > 0 || !reached)).toEqual([]);
    expect(lossesOf(await live.figures())).toEqual(NOTHING_LOST);
    expect(await live.deniedHeard()).toBe(false);
    expect(JSON.stringify((await agents()).map(({ spec }) => spec))).not.toContain("ETCD_ENDPOINTS");
    await startPods("after");
    await readyPods(cluster, SHOP, 4);
    const now = await podAddresses();
    expect(now).toEqual(expect.arrayContaining(before));
    expect(new Set(now).size).toBe(now.length);
    await expect.poll(() => unlike(onKubernetes)).toEqual([]);
  });

  it("nor on the way back, which takes the addresses of newer pods along", async () => {
    const before = await staying();
    await tool.run("rollback", "-y");
    expect((await cluster.client.list<KubeObject>(CRDS)).items).toEqual([]);
    expect(lossesOf(await live.figures())).toEqual(NOTHING_LOST);
    expect(await live.deniedHeard()).toBe(false);
    expect(allocated(await onEtcd())).toEqual(hasBlocks ? expect.arrayContaining(before) : []);
    await startPods("again");
    await readyPods(cluster, SHOP, 6);
    const now = await podAddresses();
    expect(now).toEqual(expect.arrayContaining(before));
    expect(new Set(now).size).toBe(now.length);
    await expect.poll(() => unlike(onEtcd)).toEqual([]);
  });
});

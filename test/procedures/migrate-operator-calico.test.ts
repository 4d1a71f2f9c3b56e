import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { calicoNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { createInformer, type Informer } from "../../src/cluster/informer.ts";
import { DAEMON_SETS, DEPLOYMENTS, NODES, PODS } from "../../src/cluster/kinds.ts";
import { type LocalCluster, startCluster } from "../../src/local/cluster.ts";
import type { Pod } from "../../src/local/controllers/workload-types.ts";
import type { Plan } from "../../src/procedures/plan.ts";
import { applyCalicoManifest, untilCalicoRuns, writeCalicoRelease } from "../support/calico-manifest.ts";
import { startMigratingOperator } from "../support/calico-operator.ts";
import { type InProcessVendorctl, inProcessVendorctl } from "../support/in-process-vendorctl.ts";
import { type ClusterState, settledState, untilState } from "../support/procedure-state.ts";

const LABEL = calicoNames.labels.nodeMigration;
const AGENTS = { name: "calico-node", namespace: "kube-system" };

describe.each([["calico.yaml"], ["calico-typha.yaml"]])("migrating %s to the public operator", (file) => {
  let cluster: LocalCluster;
  let tool: InProcessVendorctl;
  let operator: ReturnType<typeof startMigratingOperator>;
  let initial: ClusterState;
  let folder: string;
  let command: string[];
  let pods: Informer<KubeObject>;
  /** Nodes that had agents of both at one time, those that end included; the public operator itself does not wait for that. */
  let overlaps: Set<string>;
  const isAgent = ({ metadata }: KubeObject) => metadata.labels?.["k8s-app"] === "calico-node";
  const countAgents = () => {
    const agents = pods.list().filter(isAgent) as unknown as Pod[];
    for (const { spec, metadata } of agents) {
      const others = agents.filter((one) => one.spec.nodeName === spec.nodeName);
      if (others.some((one) => one.metadata.namespace !== metadata.namespace)) overlaps.add(spec.nodeName ?? "");
    }
  };
  const agentPods = async () =>
    (await cluster.client.list<KubeObject>(PODS)).items.filter(isAgent).map(({ metadata }) => metadata.namespace);
  const ACCEPTED = () => [...command, "-y", "--accept-loss", "FELIX_LOGSEVERITYSCREEN"];
  const patchAgents = async (env: object[]) => {
    const patch = { spec: { template: { spec: { containers: [{ name: "calico-node", env }] } } } };
    await cluster.client.patch(DAEMON_SETS, AGENTS, { type: "strategic", patch }, { fieldManager: "kubectl-edit" });
    await untilCalicoRuns(cluster.client);
  };

  beforeAll(async () => {
    cluster = await startCluster({ name: "calico", kind: "generic", nodes: 3, cni: "preinstalled" });
    tool = inProcessVendorctl(cluster.kubeconfig);
    folder = mkdtempSync(join(tmpdir(), "calico-release-"));
    command = ["--names", "calico", "migrate", "operator", "--manifest-url", writeCalicoRelease(folder)];
    await applyCalicoManifest(cluster.client, { typha: file === "calico-typha.yaml" });
    await patchAgents([
      { name: "IP_AUTODETECTION_METHOD", value: "interface=eth.*" },
      { name: "FELIX_LOGSEVERITYSCREEN", value: "Warning" },
    ]);
    initial = await settledState(cluster.client);
    operator = startMigratingOperator(cluster.client);
    overlaps = new Set();
    pods = createInformer<KubeObject>(cluster.client, PODS);
    await pods.synced;
    pods.onChange(countAgents);
  });
  afterAll(async () => {
    await pods?.stop();
    await operator?.stop();
    tool?.close();
    await cluster?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it("says where each edit goes and what is lost, and does nothing until that is accepted", async () => {
    const plan = JSON.parse(await tool.ok("plan", ...command, "-o", "json")) as Plan;
    expect(plan.title).toContain(file);
    expect(plan.inventory).toMatchObject([{ name: "FELIX_LOGSEVERITYSCREEN", fate: "lost" }]);
    expect(plan.notes.join("\n")).toContain("Installation spec.calicoNetwork.nodeAddressAutodetectionV4");
    const { exit, err } = await tool.run(...command, "-y");
    expect([exit, err]).toEqual([3, expect.stringContaining("--accept-loss FELIX_LOGSEVERITYSCREEN")]);
    expect(await untilState(cluster.client, initial)).toEqual([]);
  });

  it("ends with the operator's agents alone, and nothing of the manifest", async () => {
    await tool.ok(...ACCEPTED());
    expect(await agentPods()).toEqual(["calico-system", "calico-system", "calico-system"]);
    const { items: nodes } = await cluster.client.list<KubeObject>(NODES);
    expect(nodes.filter(({ metadata }) => metadata.labels?.[LABEL])).toEqual([]);
    for (const kind of [DAEMON_SETS, DEPLOYMENTS]) {
      const { items } = await cluster.client.list<KubeObject>(kind, { namespace: "kube-system" });
      expect(items.filter(({ metadata }) => metadata.name.startsWith("calico"))).toEqual([]);
    }
  });

  it("is rolled back exactly, with one agent on every node all along", async () => {
    overlaps = new Set();
    // Pods that started since have addresses: they keep them.
    const block = { apiVersion: "crd.projectcalico.org/v1", kind: "IPAMBlock", metadata: { name: "10-244-7-0-26" } };
    const blocks = await cluster.client.resourceFor(block);
    await cluster.client.create(blocks, { ...block, spec: { cidr: "10.244.7.0/26" } } as KubeObject);
    await tool.ok("rollback", "-y");
    await cluster.client.delete(blocks, block.metadata);
    expect(await untilState(cluster.client, initial)).toEqual([]);
    expect([...overlaps]).toEqual([]);
  });

  it("ends with what the operator refuses, goes on once that is repaired, and is rolled back from there", async () => {
    await patchAgents([{ name: "FELIX_LOGPREFIX", value: "net" }]);
    const before = await settledState(cluster.client);
    operator.refuses.add("FELIX_LOGPREFIX");
    const { exit, err } = await tool.run(...ACCEPTED());
    expect([exit, err]).toEqual([1, expect.stringContaining("unexpected env vars: calico-node/FELIX_LOGPREFIX")]);
    await tool.ok("rollback", "-y");
    expect(await untilState(cluster.client, before)).toEqual([]);

    expect((await tool.run(...ACCEPTED())).exit).toBe(1);
    operator.refuses.clear();
    await tool.ok("resume", "-y");
    expect(await agentPods()).toEqual(["calico-system", "calico-system", "calico-system"]);
    await tool.ok("rollback", "-y");
    expect(await untilState(cluster.client, before)).toEqual([]);
  });
});

describe("what keeps the public operator from a manifest", () => {
  let cluster: LocalCluster;
  let tool: InProcessVendorctl;
  let folder: string;
  let url: string;
  const refusal = async (...args: string[]) => {
    const { exit, err } = await tool.run("--names", "calico", "migrate", "operator", "-y", ...args);
    return `${exit} ${err}`;
  };

  beforeAll(async () => {
    cluster = await startCluster({ name: "refused", kind: "generic", nodes: 1, cni: "preinstalled" });
    tool = inProcessVendorctl(cluster.kubeconfig);
    folder = mkdtempSync(join(tmpdir(), "calico-release-"));
    url = writeCalicoRelease(folder);
  });
  afterAll(async () => {
    tool?.close();
    await cluster?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it("is that there is none", async () => {
    expect(await refusal("--manifest-url", url)).toContain("[MIGRATE_OPERATOR_NO_MANIFEST]");
  });

  it("are waves, files of another release, and no files at all", async () => {
    await applyCalicoManifest(cluster.client);
    for (const flag of [["--canary", "a"], ["--wave-size", "2"], ["--no-waves"]])
      expect(await refusal("--manifest-url", url, ...flag)).toMatch(/^2 .*MIGRATE_OPERATOR_ONE_BY_ONE/s);
    const other = writeCalicoRelease(folder, "v3.30.2");
    expect(await refusal("--manifest-url", other)).toMatch(/^3 .*of v3.30.2, .*MIGRATE_OPERATOR_OTHER_FILES/s);
    expect(await refusal()).toMatch(/^3 .*MIGRATE_OPERATOR_NO_FILES/s);
  });

  it("are variables that it does not know and fields that it has not: all are named before step 1", async () => {
    const before = await settledState(cluster.client);
    const env = [
      { name: "HTTPS_PROXY", value: "http://proxy:3128" },
      { name: "FELIX_IPINIPENABLED", value: "true" },
    ];
    const affinity = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: SOMEWHERE } };
    const patch = { spec: { template: { spec: { affinity, containers: [{ name: "calico-node", env }] } } } };
    await cluster.client.patch(DAEMON_SETS, AGENTS, { type: "strategic", patch }, { fieldManager: "kubectl-edit" });
    const pools = await cluster.client.resourceFor({ apiVersion: "crd.projectcalico.org/v1", kind: "IPPool" });
    const pool = { name: "default-ipv4-ippool" };
    await cluster.client.patch(pools, pool, { type: "merge", patch: { spec: { assignmentMode: null } } });
    const changed = await settledState(cluster.client);
    const said = await refusal("--manifest-url", url);
    expect(said).toMatch(/^3 .*UPGRADE_WOULD_LOSE/s);
    for (const name of ["HTTPS_PROXY", "FELIX_IPINIPENABLED", "affinity", "IPPool.spec.assignmentMode"])
      expect(said).toContain(name);
    expect(said).toContain(`kubectl patch ippools.crd.projectcalico.org ${pool.name}`);
    expect(changed).not.toEqual(before);
    expect(await untilState(cluster.client, changed)).toEqual([]);
  });

  it("is the overlay manifest", async () => {
    const live = await cluster.client.get<KubeObject>(DAEMON_SETS, AGENTS);
    const { resourceVersion: _, uid: __, ...metadata } = live.metadata;
    await cluster.client.delete(DAEMON_SETS, AGENTS);
    await cluster.client.create(DAEMON_SETS, { ...live, metadata: { ...metadata, name: "canal" } });
    expect(await refusal("--manifest-url", url)).toMatch(/^3 .*MIGRATE_OPERATOR_CANAL/s);
  });
});

const SOMEWHERE = { nodeSelectorTerms: [{ matchExpressions: [{ key: "pool", operator: "DoesNotExist" }] }] };

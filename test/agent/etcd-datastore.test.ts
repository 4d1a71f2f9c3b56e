import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { requestAgent } from "../../src/agent/admin.ts";
import { typeOf } from "../../src/agent/stored-kinds.ts";
import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { dataplaneConfiguration } from "../../src/api/resources/dataplane-configuration.ts";
import { networkPolicy } from "../../src/api/resources/network-policy.ts";
import { placesOf } from "../../src/api/resources/resource.ts";
import { CRDS, NETWORK_POLICIES } from "../../src/cluster/kinds.ts";
import { IPAM_BLOCKS } from "../../src/ipam/ipam-kinds.ts";
import { type RunningCopy, runCopy } from "../controllers/run-program.ts";
import { type EtcdServer, hasEtcd, NO_ETCD, startEtcd } from "../support/etcd-server.ts";
import { inside, type LabPod, type NodeLab, nodeLab, request, serve, until, whyNoNodes } from "./node-lab.ts";

const why = whyNoNodes() ?? (hasEtcd() ? undefined : NO_ETCD);
const V3_POLICIES = placesOf(networkPolicy, vendorNames).stored;
const SETTINGS = placesOf(dataplaneConfiguration, vendorNames).stored;
const PORT = 8080;

/** Everything of ours in etcd: agents, the plugin, addresses and policy; vendor-kube-controllers copy the rest there. */
describe.skipIf(why !== undefined)(`two nodes on the etcd datastore${why ? ` (${why})` : ""}`, () => {
  let etcd: EtcdServer;
  let lab: NodeLab;
  let controllers: RunningCopy;
  const pods: Record<string, LabPod> = {};
  const ends: (() => void)[] = [];
  const logs = () => lab.nodes.map((node) => node.log()).join("\n");

  beforeAll(async () => {
    etcd = await startEtcd();
    lab = await nodeLab({ bpf: false, pools: [{ cidr: "10.87.0.0/24", vxlanMode: "Always", blockSize: 28 }], etcd });
    controllers = runCopy("controllers", lab.transport(), etcd.env);
    await Promise.all(lab.nodes.map((node) => node.start()));
    for (const [name, at] of [
      ["a", 0],
      ["b", 0],
      ["c", 1],
    ] as const)
      await addPod(name, at);
  });
  afterAll(async () => {
    for (const end of ends) end();
    await controllers?.stop();
    await lab?.close();
    await etcd?.stop();
  });

  async function addPod(name: string, at: number) {
    const pod = await lab.addPod(name, lab.nodes[at]!, { app: name });
    pods[name] = pod;
    ends.push(await serve(pod, PORT, 4));
  }
  const reaches = async (from: string, to: string) =>
    (await request(pods[from]!, pods[to]!.addresses[0]!, PORT, 1)) !== undefined;
  const comesTrue = (is: () => Promise<boolean>) => until(is, logs);

  it("connects pods with addresses from etcd; the cluster has no kind of ours", async () => {
    await comesTrue(() => reaches("a", "c"));
    expect([await reaches("a", "b"), await reaches("c", "a")]).toEqual([true, true]);
    expect((await lab.client.list(CRDS)).items).toEqual([]);
    const blocks = (await lab.datastore.list<KubeObject>(IPAM_BLOCKS)).items;
    expect(blocks).toHaveLength(2);
  });

  it("enforces a policy of Kubernetes that was copied, and one that was written to etcd", async () => {
    const deny = {
      apiVersion: "networking.k8s.io/v1",
      kind: "NetworkPolicy",
      metadata: { name: "c-denies", namespace: "default" },
      spec: { podSelector: { matchLabels: { app: "c" } }, policyTypes: ["Ingress"] },
    };
    await lab.client.create<KubeObject>(NETWORK_POLICIES, deny);
    await comesTrue(async () => !(await reaches("a", "c")));
    const allow = {
      ...typeOf(V3_POLICIES),
      metadata: { name: "default.c-from-a", namespace: "default" },
      spec: {
        tier: "default",
        order: 1,
        selector: "app == 'c'",
        ingress: [{ action: "Allow", source: { selector: "app == 'a'" } }],
      },
    };
    await lab.datastore.create<KubeObject>(V3_POLICIES, allow);
    await comesTrue(() => reaches("a", "c"));
    expect(await reaches("b", "c")).toBe(false);
  });

  it("etcd is away: policy stays, also over a restart of an agent; then what changed meanwhile comes into force", async () => {
    await etcd.members[0]!.kill();
    expect([await reaches("a", "c"), await reaches("b", "c")]).toEqual([true, false]);
    await lab.client.delete(NETWORK_POLICIES, { name: "c-denies", namespace: "default" });
    await lab.nodes[1]!.kill();
    const back = lab.nodes[1]!.start();
    expect([await reaches("a", "c"), await reaches("b", "c")]).toEqual([true, false]);
    await etcd.members[0]!.start();
    await back;
    await lab.datastore.delete(V3_POLICIES, { name: "default.c-from-a", namespace: "default" });
    await comesTrue(() => reaches("b", "c"));
    await addPod("d", 1);
    await comesTrue(() => reaches("d", "a"));
  });

  it("is ready without Services, says so, and refuses eBPF with the reason", async () => {
    const { netns, directory } = lab.nodes[0]!;
    const ask = (path: string) =>
      inside(netns.name, "curl", "-s", "-w", "%{http_code}", `http://127.0.0.1:9099${path}`);
    await comesTrue(async () => (await ask("/readyz")).output === "ok200");
    expect((await ask("/readyz/services")).output).toMatch(/etcd datastore cannot watch Services; READY 1\/2.*503$/s);
    const patch = { spec: { bpfEnabled: true } };
    await lab.datastore.patch(SETTINGS, { name: "default" }, { type: "merge", patch });
    const table = async () =>
      JSON.stringify((await requestAgent(join(directory, "run"), { show: "switchover" })).table);
    await until(async () => (await table()).includes("eBPF does not work on the etcd datastore"), table);
    expect(await reaches("a", "c")).toBe(true);
  });
});

import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OVERLAY } from "../../src/agent/dataplanes.ts";
import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { dataplaneConfiguration } from "../../src/api/resources/dataplane-configuration.ts";
import { placesOf } from "../../src/api/resources/resource.ts";
import { EVENTS, PODS } from "../../src/cluster/kinds.ts";
import { isReady } from "../../src/local/controllers/pod-state.ts";
import type { Pod } from "../../src/local/controllers/workload-types.ts";
import { routerIn } from "../../src/local/runtime/netns/segment.ts";
import { storedKind } from "../../src/operator/managed-kinds.ts";
import { patientStatus, printFaults } from "../support/fault-lab.ts";
import { type InProcessVendorctl, inProcessVendorctl } from "../support/in-process-vendorctl.ts";
import { untilAvailable, untilStatus } from "../support/operator-status.ts";
import { createPod, installNetwork, type RealCluster, startReal, whyNoRealNodes } from "./real-cluster.ts";

/** What only a node finds out, and reports in its problems. Several at once, since each counts only when it has lasted for a while. */
interface NodeFault {
  what: string;
  /** As status names it: the object, its code, where. */
  says: RegExp;
  inject(cluster: RealCluster): Promise<unknown>;
  remove(cluster: RealCluster): Promise<unknown>;
}

const object = (one: KubeObject): Pick<NodeFault, "inject" | "remove"> => ({
  inject: async ({ client }) => client.create(await client.resourceFor(one), one),
  remove: async ({ client }) => client.delete(await client.resourceFor(one), one.metadata),
});

const configured = (spec: object) => (cluster: RealCluster) =>
  cluster.client.patch(
    placesOf(dataplaneConfiguration, vendorNames).stored,
    { name: "default" },
    { type: "merge", patch: { spec } },
  );

const second = (cluster: RealCluster) => cluster.nodeNames[1] as string;
const BPFFS = "/sys/fs/bpf";
const onNode = async (cluster: RealCluster, ...command: string[]) => {
  const { code, out } = await cluster.runtime.machine(second(cluster)).run(command);
  if (code !== 0) throw new Error(`${command.join(" ")}: ${out}`);
};

/** Eight addresses, for who asks for them, all of them reserved. */
const POOL = object({
  apiVersion: "crd.vendor.io/v1",
  kind: "IPPool",
  metadata: { name: "tiny" },
  spec: {
    cidr: "10.77.0.0/29",
    blockSize: 29,
    vxlanMode: "Always",
    allowedUses: ["Workload"],
    assignmentMode: "Manual",
  },
});
const RESERVATION = object({
  apiVersion: "crd.vendor.io/v1",
  kind: "IPReservation",
  metadata: { name: "tiny" },
  spec: { reservedCIDRs: ["10.77.0.0/29"] },
});

const MOUNT_BPFFS = `mount -t bpf bpf ${BPFFS}; mount --make-shared ${BPFFS}`;
const LOSE_KERNEL_STATE = [
  "nft flush ruleset",
  `for link in $(ip -o link | sed -n 's/^[0-9]*: \\(v[^:@]*\\).*/\\1/p'); do ip link delete $link 2>/dev/null || true; done`,
  `umount --lazy ${BPFFS}`,
  MOUNT_BPFFS,
  "rm -rf /run/vendor/*.sock /run/vendor/dead-man.json",
].join("\n");

const FAULTS: readonly NodeFault[] = [
  {
    what: "a value of the DataplaneConfiguration has no effect",
    says: /DataplaneConfiguration default SETTINGS_WITHOUT_EFFECT on 2 nodes/,
    inject: configured({ bpfHostConntrackBypass: true }),
    remove: configured({ bpfHostConntrackBypass: null }),
  },
  {
    what: "a Service has an SCTP port",
    says: /Service default\/sctp SCTP_SERVICE_UNSUPPORTED on 2 nodes/,
    ...object({
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "sctp", namespace: "default" },
      spec: { selector: { app: "sctp" }, ports: [{ port: 132, protocol: "SCTP" }] },
    }),
  },
  {
    what: "a policy with a selector that cannot be read",
    says: /GlobalNetworkPolicy default\.unreadable SELECTOR_UNREADABLE on 2 nodes/,
    ...object({
      apiVersion: "crd.vendor.io/v1",
      kind: "GlobalNetworkPolicy",
      metadata: { name: "default.unreadable" },
      spec: { tier: "default", selector: "app == ", types: ["Ingress"] },
    }),
  },
  {
    what: "the IP pool of a pod has no address for it",
    says: /pod default\/homeless IPAM_EXHAUSTED on \S+-worker-1/,
    async inject(cluster) {
      await RESERVATION.inject(cluster);
      await POOL.inject(cluster);
      const annotations = { "cni.vendor.io/ipv4pools": '["tiny"]' };
      await createPod(cluster, { name: "homeless", node: second(cluster), annotations });
    },
    async remove(cluster) {
      await cluster.client.delete(PODS, { name: "homeless", namespace: "default" }, { gracePeriodSeconds: 0 });
      await POOL.remove(cluster);
      await RESERVATION.remove(cluster);
    },
  },
  {
    what: "an address of the node is at an interface that no program can be attached to",
    says: /interface tun9 EBPF_INTERFACE_NOT_ETHERNET on \S+-worker-1/,
    async inject(cluster) {
      const [address = ""] = cluster.runtime.machine(second(cluster)).spec.internalIPs;
      await onNode(cluster, "ip", "tuntap", "add", "dev", "tun9", "mode", "tun");
      await onNode(cluster, "ip", "address", "add", `${address}/32`, "dev", "tun9");
      await onNode(cluster, "ip", "link", "set", "tun9", "up");
    },
    remove: (cluster) => onNode(cluster, "ip", "link", "delete", "tun9"),
  },
];

describe.skipIf(whyNoRealNodes)(
  `what a node cannot do is named in status${whyNoRealNodes ? `: ${whyNoRealNodes}` : ""}`,
  () => {
    let cluster: RealCluster;
    let tool: InProcessVendorctl;
    let injectedAt = 0;
    const seconds = new Map<string, number>();

    beforeAll(async () => {
      cluster = await startReal({ nodes: 2, subnets: 2 });
      tool = inProcessVendorctl(cluster.kubeconfig);
      await installNetwork(cluster, { dataplane: "BPF", encapsulation: "VXLAN", families: [4] });
      await untilAvailable(cluster.client, "network", 120_000);
      for (const { inject } of FAULTS) await inject(cluster);
      injectedAt = Date.now();
    });
    afterAll(async () => {
      printFaults(
        FAULTS.map(({ what }) => ({
          ...{ fault: what, component: "network", reason: "NodeProblems" },
          seconds: seconds.get(what) ?? Number.NaN,
        })),
      );
      tool?.close();
      await cluster?.close();
    });

    it.each(FAULTS)("$what", async ({ what, says }) => {
      const isNamed = ({ degraded, reason, message }: { degraded: boolean; reason: string; message: string }) =>
        degraded && reason === "NodeProblems" && says.test(message);
      const reported = await untilStatus(cluster.client, "network", isNamed, 30_000);
      seconds.set(what, Math.round((Date.now() - injectedAt) / 1000));
      expect(reported.message).toMatch(/Fix: kubectl -n vendor-system exec/);
      const { exit, out, err } = await patientStatus(tool);
      expect([exit, out.startsWith("!!")], out + err).toEqual([1, true]);
      expect(out).toMatch(says);
    });

    it("all of it passes by itself once it is taken away; an unmounted BPF file system is named until the agent's pod is replaced", async () => {
      await onNode(cluster, "umount", "--lazy", BPFFS);
      for (const { remove } of FAULTS) await remove(cluster);
      const { message } = await untilStatus(
        cluster.client,
        "network",
        (status) =>
          status.degraded && / on nodes: file system \/sys\/fs\/bpf BPF_FILE_SYSTEM_UNMOUNTED on /.test(status.message),
        60_000,
      );
      expect(message).toContain(`BPF_FILE_SYSTEM_UNMOUNTED on ${second(cluster)}.`);
      await expectDegraded(/file system \/sys\/fs\/bpf BPF_FILE_SYSTEM_UNMOUNTED on \S+-worker-1/);
      // As the init container does where a node's directories propagate.
      await onNode(cluster, "sh", "-ec", MOUNT_BPFFS);
      const before = (await agentThere()) as Pod;
      await cluster.client.delete(PODS, before.metadata, { gracePeriodSeconds: 0 });
      await expect.poll(async () => (await agentThere())?.metadata.uid).not.toBe(before.metadata.uid);
      await untilAgentWorks();
    });

    const agentThere = async () => (await agents()).find(({ spec }) => spec.nodeName === second(cluster));
    /** Why the pod is not ready, as kubectl would show it; nothing when it is. */
    const notReady = (pod: Pod | undefined): string =>
      pod === undefined ? "no pod" : isReady(pod) ? "" : JSON.stringify(pod.status?.containerStatuses ?? pod.status);
    /** By its own word, and in the kernel. */
    const untilAgentWorks = async () => {
      await expect.poll(async () => notReady(await agentThere())).toBe("");
      await untilWell();
      expect(await pinsOnNode()).toContain("vendor");
    };
    const agents = async () => (await cluster.client.list<Pod>(PODS, { labelSelector: "k8s-app=vendor-node" })).items;
    const pinsOnNode = async () => (await cluster.runtime.machine(second(cluster)).run(["ls", BPFFS])).out;
    const expectDegraded = async (says: RegExp) => {
      const { exit, out, err } = await patientStatus(tool);
      expect([exit, out.startsWith("!!")], out + err).toEqual([1, true]);
      expect(out).toMatch(says);
    };
    const untilWell = () =>
      untilStatus(cluster.client, "network", ({ available, degraded }) => available && !degraded, 60_000);

    it("our CNI configuration is deleted: it is written again while the agent runs on, and the node's events say it", async () => {
      const uids = async () => (await agents()).map(({ metadata }) => metadata.uid).sort();
      const before = await uids();
      const file = cluster.runtime.machine(second(cluster)).path("/etc/cni/net.d/10-vendor.conflist");
      const text = readFileSync(file, "utf8");
      rmSync(file);
      await expect.poll(() => existsSync(file) && readFileSync(file, "utf8")).toBe(text);
      const said = async () =>
        (await cluster.client.list(EVENTS)).items.map((event) => {
          const { reason, involvedObject } = event as KubeObject & { reason?: string; involvedObject?: object };
          return { reason, involvedObject };
        });
      await expect.poll(said).toContainEqual({
        reason: "CniConfigurationRestored",
        involvedObject: expect.objectContaining({ kind: "Node", name: second(cluster) }),
      });
      expect(await uids()).toEqual(before);
      await untilWell();
    });

    it("a CNI configuration of another plugin sorts before ours: which file, which node, what to do", async () => {
      const file = cluster.runtime.machine(second(cluster)).path("/etc/cni/net.d/05-other.conflist");
      writeFileSync(file, JSON.stringify({ name: "other", cniVersion: "1.0.0", plugins: [{ type: "other" }] }));
      const { message } = await untilStatus(
        cluster.client,
        "network",
        ({ reason }) => reason === "CniConfigurationShadowed",
        60_000,
      );
      expect(message).toContain(`/etc/cni/net.d/05-other.conflist on ${second(cluster)}`);
      expect(message).toMatch(/Fix: remove the other CNI plugin.*: rm \/etc\/cni\/net\.d\/05-other\.conflist$/);
      const { exit, out, err } = await patientStatus(tool);
      expect([exit, out.startsWith("!!")], out + err).toEqual([1, true]);
      rmSync(file);
      await untilWell();
    });

    it("the VXLAN device is deleted by hand: it is there again, and carries packets", async () => {
      await onNode(cluster, "ip", "link", "delete", OVERLAY);
      const there = async () =>
        (await cluster.runtime.machine(second(cluster)).run(["ip", "link", "show", OVERLAY])).code;
      await expect.poll(there).toBe(0);
      const fresh = async () => (await cluster.runtime.machine(second(cluster)).run(["ip", "route"])).out;
      await expect.poll(fresh).toContain(OVERLAY);
      await untilWell();
    });

    it("the uplink of a node is down, then the node reboots: the pair, then the node, and no ok before all of it works again", async () => {
      const node = cluster.runtime.machine(second(cluster));
      await onNode(cluster, "ip", "link", "set", "eth0", "down");
      await untilStatus(cluster.client, "network", ({ reason }) => reason === "OverlayUnreachable", 60_000);
      await expectDegraded(new RegExp(`lost in the overlay: .*${second(cluster)}`));

      await cluster.kubelet.powerOff(second(cluster));
      await untilStatus(cluster.client, "network", ({ reason }) => reason === "NodeNotReady", 60_000);
      await expectDegraded(new RegExp(`Node ${second(cluster)} is not ready.*Kubelet stopped posting node status`));

      // What a boot leaves of a kernel's state, and of /run.
      await onNode(cluster, "sh", "-ec", LOSE_KERNEL_STATE);
      await onNode(cluster, "ip", "link", "set", "eth0", "up");
      const [network = ""] = node.spec.networks ?? [];
      await onNode(cluster, "ip", "route", "replace", "default", "via", routerIn(network));
      await cluster.kubelet.powerOn(second(cluster));
      await untilAgentWorks();
    });

    it("a pool without encapsulation, and nodes in two subnets: the routes that cannot be", async () => {
      const pool = (encapsulation: string) => {
        const ipPools = [{ cidr: "10.244.0.0/16", encapsulation, natOutgoing: "Enabled" }];
        const patch = { spec: { vendorNetwork: { ipPools } } };
        return cluster.client.patch(storedKind("installation"), { name: "default" }, { type: "merge", patch });
      };
      await pool("None");
      const { message } = await untilStatus(
        cluster.client,
        "network",
        (status) => status.degraded && status.message.includes("no routes to each other's pods"),
        60_000,
      );
      expect(message).toMatch(/pods: \S+ in [\d.]+\/\d+ and \S+ in [\d.]+\/\d+\./);
      const { exit, out, err } = await patientStatus(tool);
      expect([exit, out.startsWith("!!")], out + err).toEqual([1, true]);
      await pool("VXLAN");
      await untilWell();
    });
  },
);

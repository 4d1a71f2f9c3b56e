import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { dataplaneConfiguration } from "../../src/api/resources/dataplane-configuration.ts";
import { placesOf } from "../../src/api/resources/resource.ts";
import { PODS } from "../../src/cluster/kinds.ts";
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

const FAULTS: readonly NodeFault[] = [
  {
    what: "a field of the DataplaneConfiguration has no effect",
    says: /DataplaneConfiguration default SETTINGS_WITHOUT_EFFECT on 2 nodes/,
    inject: configured({ bpfLogLevel: "Debug" }),
    remove: configured({ bpfLogLevel: null }),
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
      cluster = await startReal({ nodes: 2 });
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

    it("all of it passes by itself once it is taken away", async () => {
      for (const { remove } of FAULTS) await remove(cluster);
      await untilStatus(cluster.client, "network", ({ available, degraded }) => available && !degraded, 60_000);
    });
  },
);

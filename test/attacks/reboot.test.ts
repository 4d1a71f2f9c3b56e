import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { requestAgent } from "../../src/agent/admin.ts";
import { vendorNames } from "../../src/api/names.ts";
import { podInterfaceName } from "../../src/api/protocol/pod-network.ts";
import { dataplaneConfiguration } from "../../src/api/resources/dataplane-configuration.ts";
import { placesOf } from "../../src/api/resources/resource.ts";
import { SERVICES } from "../../src/cluster/kinds.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import { inside, type LabNode, type LabPod, type NodeLab, request, serve, until } from "../agent/node-lab.ts";
import {
  attackLab,
  DATAPLANES,
  ENDPOINT_SLICES,
  onlyFrom,
  POLICIES,
  sliceOf,
  whyNoAttacks,
  writeStatus,
} from "./attack-lab.ts";

const kernel = realKernel();
const CLUSTER_ADDRESS = "10.96.0.9";
const SETTINGS = placesOf(dataplaneConfiguration, vendorNames).stored;

/** A node reboots: its kernel state is gone, the Pod objects, the records on disk and one pod that never comes back are not. */
describe.skipIf(whyNoAttacks !== undefined).each(DATAPLANES)(
  `reboot of a node, $dataplane${whyNoAttacks ? ` (${whyNoAttacks})` : ""}`,
  ({ bpf }) => {
    let lab: NodeLab;
    let [one, two] = [] as unknown as [LabNode, LabNode];
    const pods: Record<string, LabPod> = {};
    let ends: (() => void)[] = [];
    beforeAll(async () => {
      lab = await attackLab({ bpf });
      [one, two] = lab.nodes as [LabNode, LabNode];
      await lab.client.create(POLICIES, onlyFrom("server", "server", { app: "client" }));
      for (const [name, node] of [
        ["server", one],
        ["client", one],
        ["stranger", one],
        ["lost", one],
        ["far", two],
      ] as const) {
        const pod = await lab.addPod(name, node, { app: name === "far" ? "client" : name });
        pods[name] = pod;
        await writeStatus(lab, pod);
      }
      ends = [await serve(pods["server"]!, 8080, 4)];
      await lab.client.create(SERVICES, {
        apiVersion: "v1",
        kind: "Service",
        metadata: { name: "web", namespace: "default" },
        spec: {
          ...{ type: "ClusterIP", clusterIP: CLUSTER_ADDRESS, clusterIPs: [CLUSTER_ADDRESS], ipFamilies: ["IPv4"] },
          ports: [{ name: "http", port: 80, protocol: "TCP", targetPort: 8080 }],
        },
      });
      const { addresses } = pods["server"]!;
      await lab.client.create(ENDPOINT_SLICES, sliceOf("web", "web", addresses, 8080));
    });
    afterAll(async () => {
      for (const end of ends) end();
      await lab?.close();
    });

    /** What a reboot leaves of a node's kernel state: nothing. */
    const reboot = async (node: LabNode, names: readonly string[]) => {
      await node.kill();
      kernel.mounts.unmount(join(node.directory, "bpf"));
      for (const name of names)
        await inside(node.netns.name, "ip", "link", "delete", podInterfaceName("default", name));
      await inside(node.netns.name, "nft", "flush", "ruleset");
      await inside(node.netns.name, "ip", "route", "flush", "proto", "80");
    };

    /** What a kubelet does with a pod whose sandbox did not survive. */
    const newSandbox = async (pod: LabPod) => {
      expect((await pod.node.cni("DEL", pod)).code).toBe(0);
      pod.containerId = randomBytes(16).toString("hex");
      const { code, output } = await pod.node.cni("ADD", pod);
      expect({ code, output }).toMatchObject({ code: 0 });
      pod.addresses = (output as { ips: { address: string }[] }).ips.map(({ address }) => address.split("/")[0]!);
      await writeStatus(lab, pod);
    };

    /** Reboots the first node; all its pods but one get a new sandbox. */
    const rebootFirst = async () => {
      const { server, client, stranger } = pods as Record<string, LabPod>;
      for (const end of ends) end();
      await reboot(one, ["server", "client", "stranger", "lost"]);
      await one.start();
      for (const pod of [server!, client!, stranger!]) await newSandbox(pod);
      ends = [await serve(server!, 8080, 4)];
      await lab.client.patch(
        ENDPOINT_SLICES,
        { namespace: "default", name: "web" },
        { type: "merge", patch: { endpoints: [{ addresses: server!.addresses, conditions: { ready: true } }] } },
      );
    };

    /** Kernel rules of a kube-proxy are not in this lab, so Services are there with eBPF alone. */
    const expectBack = async ({ services }: { services: boolean }) => {
      const { server, client, stranger, far } = pods as Record<string, LabPod>;
      const [address] = server!.addresses as [string];
      for (const from of [client!, far!])
        await until(
          async () => (await request(from, address, 8080, 1)) === `server saw ${from.addresses[0]}`,
          () => one.log(),
        );
      expect(await request(stranger!, address, 8080, 1)).toBeUndefined();
      if (!services) return;
      await until(
        async () => (await request(client!, CLUSTER_ADDRESS, 80, 1)) !== undefined,
        () => one.vendor("node", "show", "services"),
      );
      expect(await request(stranger!, CLUSTER_ADDRESS, 80, 1)).toBeUndefined();
    };

    const switchover = async () => {
      const { table, dataplane } = await requestAgent(join(one.directory, "run"), { show: "switchover" });
      return { dataplane, next: Object.fromEntries(table.rows)["next"] };
    };

    it("pods, Services and policy are back without a person, though one pod is not", async () => {
      const { server, far } = pods as Record<string, LabPod>;
      await until(
        async () => (await request(far!, server!.addresses[0]!, 8080, 1)) !== undefined,
        () => one.log(),
      );
      await rebootFirst();
      await expectBack({ services: bpf });
      if (bpf) expect(await one.vendor("node", "show", "problems")).toContain("default/lost");
    });

    it("in the middle of a switch: they are back, and the node has the data plane that is asked for", async () => {
      const wanted = bpf ? "Nftables" : "BPF";
      const patch = { spec: { bpfEnabled: !bpf } };
      await lab.client.patch(SETTINGS, { name: "default" }, { type: "merge", patch });
      await until(
        async () => (await switchover()).next !== "nothing",
        () => one.log(),
      );
      await rebootFirst();
      await until(
        async () => {
          const { dataplane, next } = await switchover();
          return dataplane === wanted && next === "nothing";
        },
        () => one.log().slice(-3_000),
        60_000,
      );
      await expectBack({ services: !bpf });
    });
  },
);

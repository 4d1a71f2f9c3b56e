import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SERVICES } from "../../src/cluster/kinds.ts";
import { type LabNode, type LabPod, type NodeLab, request, serve, until } from "../agent/node-lab.ts";
import { attackLab, ENDPOINT_SLICES, sliceOf, whyNoAttacks, writeStatus } from "./attack-lab.ts";

const CLUSTER_ADDRESS = "10.96.0.9";
const FREE_ADDRESS = "192.0.2.7";
/** Of a cloud that does not use a link-local one, so that no API server refuses it. */
const METADATA_ADDRESS = "100.100.100.200";

/** A tenant's Service claims addresses of others. On nftables Services are kube-proxy's, which does not compare; so eBPF alone. */
describe.skipIf(whyNoAttacks !== undefined)(
  `addresses of Services, eBPF${whyNoAttacks ? ` (${whyNoAttacks})` : ""}`,
  () => {
    let lab: NodeLab;
    let [one, two] = [] as unknown as [LabNode, LabNode];
    const pods: Record<string, LabPod> = {};
    const ends: (() => void)[] = [];
    beforeAll(async () => {
      lab = await attackLab({ bpf: true });
      [one, two] = lab.nodes as [LabNode, LabNode];
      for (const [name, node] of [
        ["attacker", two],
        ["victim", two],
        ["client", one],
      ] as const) {
        const pod = await lab.addPod(name, node, { app: name });
        pods[name] = pod;
        await writeStatus(lab, pod);
        ends.push(await serve(pod, 8080, 4));
      }
      ends.push(await serve(lab.outside, 8080, 4), await serve(two, 8080, 4));
      // The machine outside stands for the API server.
      await lab.client.create(ENDPOINT_SLICES, sliceOf("kubernetes", "kubernetes", [lab.outside.addresses.v4], 8080));
    });
    afterAll(async () => {
      for (const end of ends) end();
      await lab?.close();
    });

    const problems = () => one.vendor("node", "show", "problems");

    it("are served only where no node, pod or API server has them", async () => {
      const { attacker, victim, client } = pods as Record<string, LabPod>;
      const [api, node, pod] = [lab.outside.addresses.v4, two.addresses.v4, victim!.addresses[0]!];
      await lab.client.create(ENDPOINT_SLICES, sliceOf("trap", "trap", attacker!.addresses, 8080));
      const trap = (externalIPs: string[]) => ({
        apiVersion: "v1",
        kind: "Service",
        metadata: { name: "trap", namespace: "default" },
        spec: {
          ...{ type: "ClusterIP", clusterIP: CLUSTER_ADDRESS, clusterIPs: [CLUSTER_ADDRESS], ipFamilies: ["IPv4"] },
          ports: [{ name: "http", port: 8080, protocol: "TCP", targetPort: 8080 }],
          externalIPs,
        },
      });
      // The API server refuses this one by itself, as Kubernetes does.
      await expect(lab.client.create(SERVICES, trap(["169.254.169.254"]))).rejects.toThrow(/link-local/);
      await lab.client.create(SERVICES, trap([api, node, pod, METADATA_ADDRESS, FREE_ADDRESS]));
      await until(
        async () => (await request(client!, FREE_ADDRESS, 8080, 1)) !== undefined,
        async () => `${await one.vendor("node", "show", "services")}\n${await problems()}`,
      );
      expect(await request(client!, FREE_ADDRESS, 8080)).toMatch(/^attacker saw/);
      expect(await request(client!, CLUSTER_ADDRESS, 8080)).toMatch(/^attacker saw/);
      const asked = {
        api: await request(client!, api, 8080),
        node: await request(client!, node, 8080),
        pod: await request(client!, pod, 8080),
        metadata: await request(client!, METADATA_ADDRESS, 8080, 1),
      };
      expect(asked).toEqual({
        api: expect.stringMatching(/^outside saw/),
        node: expect.stringMatching(/^node-2 saw/),
        pod: expect.stringMatching(/^victim saw/),
        metadata: undefined,
      });
      expect(await problems()).toMatch(/Service default\/trap +SERVICE_ADDRESS_REFUSED/);
    });

    it("are free again when the Service is gone", async () => {
      await lab.client.delete(SERVICES, { namespace: "default", name: "trap" });
      await until(
        async () => !(await problems()).includes("SERVICE_ADDRESS_REFUSED"),
        () => problems(),
      );
      expect(await request(pods["client"]!, FREE_ADDRESS, 8080, 1)).toBeUndefined();
      expect(await request(pods["client"]!, two.addresses.v4, 8080)).toMatch(/^node-2 saw/);
    });
  },
);

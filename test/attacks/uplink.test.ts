import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SERVICES } from "../../src/cluster/kinds.ts";
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

/** Well before the next periodic resync. */
const RECOVERY_MS = 30_000;
const NODE_PORT = 30_080;

/** The interface that leads to other machines changes while the agent runs: a driver is reloaded, a network manager renames it or makes it part of a bridge. */
describe.skipIf(whyNoAttacks !== undefined).each(DATAPLANES)(
  `a node's uplink, $dataplane${whyNoAttacks ? ` (${whyNoAttacks})` : ""}`,
  ({ bpf }) => {
    let lab: NodeLab;
    let [one, two] = [] as unknown as [LabNode, LabNode];
    const pods: Record<string, LabPod> = {};
    let end = () => {};
    beforeAll(async () => {
      lab = await attackLab({ bpf, pools: [{ cidr: "10.88.0.0/24", vxlanMode: "Always", blockSize: 28 }] });
      [one, two] = lab.nodes as [LabNode, LabNode];
      await lab.client.create(POLICIES, onlyFrom("server", "server", { app: "client" }));
      for (const [name, node] of [
        ["server", one],
        ["client", two],
        ["stranger", two],
        ["web", one],
      ] as const) {
        const pod = await lab.addPod(name, node, { app: name });
        pods[name] = pod;
        await writeStatus(lab, pod);
      }
      const ends = await Promise.all([pods["server"]!, pods["web"]!].map((pod) => serve(pod, 8080, 4)));
      end = () => {
        for (const close of ends) close();
      };
      await lab.client.create(ENDPOINT_SLICES, sliceOf("web", "web", pods["web"]!.addresses, 8080));
      await lab.client.create(SERVICES, webService());
    }, 120_000);
    afterAll(async () => {
      end();
      await lab?.close();
    });

    const ip = async (...args: string[]) => {
      const { ok, output } = await inside(one.netns.name, "ip", ...args);
      expect(ok, output).toBe(true);
      return output;
    };
    const giveAddresses = async (device: string) => {
      await ip("link", "set", device, "up");
      await ip("address", "replace", `${one.addresses.v4}/24`, "dev", device);
      await ip("address", "replace", `${one.addresses.v6}/64`, "dev", device, "nodad");
    };
    const described = async () =>
      `${await ip("-d", "link")}\n${await ip("route", "show", "table", "all")}\n${one.log().slice(-3_000)}`;
    const answered = (is: () => Promise<boolean>) => until(is, described, RECOVERY_MS);
    /** Across nodes and not past policy; in eBPF a node port too: with nftables that is kube-proxy's. */
    const expectTraffic = async () => {
      const { server, client, stranger, web } = pods as Record<string, LabPod>;
      const [to] = server!.addresses as [string];
      await answered(async () => (await request(client!, to, 8080, 1)) === `server saw ${client!.addresses[0]}`);
      expect(await request(stranger!, to, 8080, 1)).toBeUndefined();
      if (!bpf) return;
      const expected = `${web!.name} saw ${lab.outside.addresses.v4}`;
      await answered(async () => (await request(lab.outside, one.addresses.v4, NODE_PORT, 1)) === expected);
    };
    const macOf = async (device: string) =>
      (/link\/ether (\S+)/.exec(await ip("link", "show", device)) as unknown as [string, string])[1];

    it("carries traffic between nodes, under policy", expectTraffic);

    it("that is deleted and created again carries it again", async () => {
      const { name: segment } = lab.outside.netns;
      // As a driver that is loaded again does: with another MAC, peers' neighbour tables would have to grow old first.
      const mac = await macOf("eth0");
      await ip("link", "delete", "eth0");
      await ip("link", "add", "eth0", "address", mac, "type", "veth", "peer", "name", "port1", "netns", segment);
      await inside(segment, "ip", "link", "set", "port1", "master", "segment", "up");
      await giveAddresses("eth0");
      await expectTraffic();
    });

    it("that gets a name no pattern expects carries it again", async () => {
      await ip("link", "set", "eth0", "down");
      await ip("link", "set", "eth0", "name", "lan0");
      await giveAddresses("lan0");
      await expectTraffic();
    });

    it("that becomes the port of a bridge carries it again, by the bridge", async () => {
      const mac = await macOf("lan0");
      await ip("link", "add", "br0", "address", mac, "type", "bridge");
      await ip("address", "flush", "dev", "lan0");
      await ip("link", "set", "lan0", "master", "br0");
      await giveAddresses("br0");
      await expectTraffic();
    });
  },
);

function webService() {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "web", namespace: "default" },
    spec: {
      ...{ type: "NodePort", clusterIP: "10.96.0.9", clusterIPs: ["10.96.0.9"], ipFamilies: ["IPv4"] },
      ports: [{ name: "http", port: 80, protocol: "TCP", targetPort: 8080, nodePort: NODE_PORT }],
    },
  };
}

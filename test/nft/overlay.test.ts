import { writeFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import type { ClusterNode, ModelDelta, Route } from "../../src/calc/model.ts";
import { ModelCopy } from "../../src/calc/model-copy.ts";
import { createNodeNetwork, type NodeNetwork } from "../../src/dataplane/net/node-network.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import { MAIN_TABLE } from "../../src/kernel/netlink/netlink-port.ts";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";
import { whyNoNftables } from "../kernel/why-not.ts";
import { LabPod } from "./lab-pod.ts";

const reason = whyNoNftables();
const OVERLAY = "vxlan.story";
const NUMBERS = [1, 2] as const;
type Underlay = 4 | 6;

describe.skipIf(reason)(`two nodes and the overlay${reason ? ` (${reason})` : ""}`, () => {
  const kernel = realKernel();
  const namespaces: Netns[] = [];
  const networks: NodeNetwork[] = [];
  const inhabitants: LabPod[] = [];
  afterEach(async () => {
    for (const one of inhabitants.splice(0)) await one.stop();
    for (const network of networks.splice(0)) network.close();
    for (const netns of namespaces.splice(0)) {
      netns.close();
      kernel.netns.delete(netns.name);
    }
  });

  function namespace(name: string): Netns {
    const netns = kernel.netns.create(`vt-${process.pid}-${name}`);
    namespaces.push(netns);
    kernel.netns.run(netns, () => {
      writeFileSync("/proc/sys/net/ipv6/conf/default/accept_dad", "0");
    });
    return netns;
  }

  const addressOf = (number: number, underlay: Underlay) => (underlay === 4 ? `172.30.0.${number}` : `fd30::${number}`);

  function clusterNode(number: number, here: number, underlay: Underlay): ClusterNode {
    const address = addressOf(number, underlay);
    return {
      ...{ name: `node-${number}`, local: number === here, subnetV4: null, subnetV6: null, dataplane: "Nftables" },
      ...{ addressV4: underlay === 4 ? address : null, addressV6: underlay === 6 ? address : null },
      addresses: [],
      vtep: { mac: `66:00:00:00:00:0${number}`, addressV4: `10.8.${number}.0`, addressV6: `fd08:0:0:${number}::` },
    };
  }

  /** A pod's process that lives behind a node, at an address of each family. */
  function addPod(node: Netns, number: number): void {
    const pod = namespace(`pod-${number}`);
    const [there, inside] = [kernel.netlink(node), kernel.netlink(pod)];
    there.addVeth({ name: "venpod", mac: "ee:ee:ee:ee:ee:ee", peer: { name: "eth0", netns: pod } });
    there.changeLink(there.link("venpod")!.index, { up: true });
    const link = inside.link("eth0")!;
    inside.changeLink(link.index, { up: true });
    const route = { type: "unicast", table: MAIN_TABLE, protocol: 3, device: link.index, onlink: true } as const;
    for (const [address, gateway, all] of [
      [`10.8.${number}.5/32`, "169.254.1.1", "0.0.0.0/0"],
      [`fd08:0:0:${number}::5/128`, "fe80::ecee:eeff:feee:eeee", "::/0"],
    ] as const) {
      inside.addAddress({ device: link.index, address });
      inside.replaceNeighbour({ device: link.index, address: gateway, mac: "ee:ee:ee:ee:ee:ee" });
      inside.replaceRoute({ ...route, destination: all, gateway });
    }
    for (const netlink of [there, inside]) netlink.close();
    inhabitants.push(new LabPod(pod.name));
  }

  function delta(number: number, underlay: Underlay): ModelDelta {
    const other = 3 - number;
    const none = { set: [], remove: [] };
    const common = {
      node: null,
      interfaceName: null,
      nextHop: null,
      encapsulation: "none",
      sameSubnet: false,
    } as const;
    const rest = { ...common, natOutgoing: false, inPool: true, tunnel: false };
    const routes: Route[] = [
      [`10.8.${number}.0/24`, `10.8.${other}.0/24`, `10.8.${number}.5/32`, `10.8.${other}.0`] as const,
      [
        `fd08:0:0:${number}::/64`,
        `fd08:0:0:${other}::/64`,
        `fd08:0:0:${number}::5/128`,
        `fd08:0:0:${other}::`,
      ] as const,
    ].flatMap(([own, others, pod, nextHop]): Route[] => [
      { ...rest, cidr: own, kind: "blackhole" },
      { ...rest, cidr: others, kind: "remote-workload", nextHop, encapsulation: "vxlan" },
      { ...rest, cidr: pod, kind: "local-workload", interfaceName: "venpod" },
    ]);
    return {
      ...{ inSync: true, ipSets: { set: [], change: [], remove: [] }, policies: none, profiles: none, endpoints: none },
      ...{ hostEndpoints: none, services: none, problems: none, routes: { set: routes, remove: [] } },
      nodes: { set: NUMBERS.map((one) => clusterNode(one, number, underlay)), remove: [] },
    };
  }

  it.each([4, 6] as const)(
    "carries pods of both families over IPv%i, through one device that a restart leaves alone",
    async (underlay) => {
      const nodes = NUMBERS.map((number) => namespace(`node-${number}`));
      const wire = kernel.netlink(nodes[0]!);
      wire.addVeth({ name: "eth0", peer: { name: "eth0", netns: nodes[1]! } });
      wire.close();
      for (const [index, netns] of nodes.entries()) {
        const netlink = kernel.netlink(netns);
        const device = netlink.link("eth0")!.index;
        netlink.changeLink(1, { up: true });
        netlink.changeLink(device, { up: true });
        netlink.addAddress({ device, address: `${addressOf(index + 1, underlay)}/${underlay === 4 ? 24 : 64}` });
        netlink.close();
        addPod(netns, index + 1);
      }
      for (const [index, netns] of nodes.entries()) {
        const network = createNodeNetwork({ kernel, overlay: OVERLAY, netns });
        networks.push(network);
        expect(network.apply(delta(index + 1, underlay)).objects.filter(({ failed }) => failed)).toEqual([]);
      }
      await Promise.all(inhabitants.map(({ ready }) => ready));
      const reached = (address: string) => inhabitants[0]!.reaches({ protocol: "tcp", address, port: 80 }, true);
      expect([await reached("10.8.2.5"), await reached("fd08:0:0:2::5")]).toEqual([true, true]);

      const netlink = kernel.netlink(nodes[0]!);
      const sources = { 4: "192.0.2.7", 6: "fd99::7" };
      for (const address of [`${sources[4]}/32`, `${sources[6]}/128`]) netlink.addAddress({ device: 1, address });
      const configuration = { deviceRouteSourceAddress: sources[4], deviceRouteSourceAddressIPv6: sources[6] };
      const asked = { ...delta(1, underlay), settings: { ...new ModelCopy().settings, configuration } };
      expect(networks[0]!.apply(asked).objects.filter(({ failed }) => failed)).toEqual([]);
      const toPods = netlink.routes({ protocol: 80, device: netlink.link("venpod")!.index });
      expect(toPods.map(({ source }) => source).sort()).toEqual(Object.values(sources));
      const before = netlink.link(OVERLAY)!;
      expect(before.mtu).toBe(underlay === 4 ? 1450 : 1430);
      expect(await inhabitants[0]!.order({ do: "hold", name: "kept", address: "10.8.2.5", port: 80 })).toBe(true);
      networks.shift()!.close();
      networks.unshift(createNodeNetwork({ kernel, overlay: OVERLAY, netns: nodes[0]! }));
      networks[0]!.apply(delta(1, underlay));
      expect(networks[0]!.sweep()).toEqual({ removed: [] });
      expect(netlink.link(OVERLAY)).toEqual(before);
      expect(await inhabitants[0]!.order({ do: "say", name: "kept", patience: 5_000 })).toBe(true);

      await networks[0]!.remove();
      expect(netlink.link(OVERLAY)).toBeUndefined();
      expect(netlink.routes({ protocol: 80 })).toEqual([]);
      netlink.close();
    },
  );
});

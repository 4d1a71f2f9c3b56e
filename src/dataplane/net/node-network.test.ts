import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { ClusterNode, ModelDelta, Route, WorkloadEndpoint } from "../../calc/model.ts";
import { ModelCopy } from "../../calc/model-copy.ts";
import { kernelError } from "../../kernel/errors.ts";
import { fakeKernel } from "../../kernel/fake/fake-kernel.ts";
import { MAIN_TABLE } from "../../kernel/netlink/netlink-port.ts";
import { fakeSysctls } from "./fake-sysctls.ts";
import { createNodeNetwork } from "./node-network.ts";

const OVERLAY = "vxlan.test";

function node(name: string, address: string, tunnel: string, local = false): ClusterNode {
  return {
    ...{ name, local, addressV4: address, addressV6: null, subnetV4: "172.16.0.0/24", subnetV6: null },
    addresses: [`${address}/32`],
    vtep: { mac: `66:00:00:00:00:0${name.slice(-1)}`, addressV4: tunnel, addressV6: `fd00::${name.slice(-1)}` },
    dataplane: "Nftables",
  };
}

function route(cidr: string, kind: Route["kind"], fields: Partial<Route> = {}): Route {
  return {
    ...{ cidr, kind, node: null, interfaceName: null, nextHop: null, encapsulation: "none", sameSubnet: false },
    ...{ natOutgoing: true, inPool: true, tunnel: false },
    ...fields,
  };
}

function delta(fields: Partial<ModelDelta>): ModelDelta {
  const none = { set: [], remove: [] };
  return {
    ...{ inSync: true, ipSets: { set: [], change: [], remove: [] }, policies: none, profiles: none, endpoints: none },
    ...{ hostEndpoints: none, nodes: none, routes: none, services: none, problems: none },
    ...fields,
  };
}

const POD: WorkloadEndpoint = {
  ...{ id: "default/web", interfaceName: "ven1", mac: null, addresses: ["10.0.0.5/32"] },
  ...{ ingress: { tiers: [], profiles: [] }, egress: { tiers: [], profiles: [] } },
};
const NODES = [node("node-1", "172.16.0.1", "10.0.0.1", true), node("node-2", "172.16.0.2", "10.0.1.1")];
const REMOTE = route("10.0.1.0/26", "remote-workload", { node: "node-2", nextHop: "10.0.1.1", encapsulation: "vxlan" });

function world() {
  const kernel = fakeKernel();
  const netlink = kernel.netlink();
  netlink.addBridge("eth0");
  const uplink = netlink.link("eth0")!.index;
  netlink.changeLink(uplink, { up: true });
  netlink.addAddress({ device: uplink, address: "172.16.0.1/24" });
  const sysctls = fakeSysctls();
  const network = createNodeNetwork({ kernel, overlay: OVERLAY, sysctls });
  const ours = () =>
    netlink
      .routes({ table: MAIN_TABLE, protocol: 80 })
      .map(({ destination, type, gateway }) => `${type} ${destination}${gateway ? ` via ${gateway}` : ""}`)
      .sort();
  const addPod = () => {
    netlink.addVeth({ name: "ven1", peer: { name: "pod" } });
    netlink.changeLink(netlink.link("ven1")!.index, { up: true });
  };
  return { kernel, netlink, network, sysctls, ours, addPod };
}

describe("the node's network", () => {
  it("touches nothing before everything was listed", () => {
    const { network, ours, netlink } = world();
    expect(
      network.apply(delta({ inSync: false, nodes: { set: NODES, remove: [] }, routes: { set: [REMOTE], remove: [] } })),
    ).toEqual({ objects: [] });
    expect(ours()).toEqual([]);
    expect(netlink.link(OVERLAY)).toBeUndefined();
  });

  it("leaves interfaces that another CNI plugin made, and routes to them, to that plugin", () => {
    const { network, ours, netlink, sysctls } = world();
    netlink.addVeth({ name: "eni1", peer: { name: "pod" } });
    netlink.changeLink(netlink.link("eni1")!.index, { up: true });
    const local = route("10.0.0.5/32", "local-workload", { node: "node-1", interfaceName: "eni1" });
    const pod = { ...POD, interfaceName: "eni1" };
    const { objects } = network.apply(
      delta({ endpoints: { set: [pod], remove: [] }, routes: { set: [local], remove: [] } }),
    );
    expect(objects.filter(({ failed }) => failed)).toEqual([]);
    expect(ours()).toEqual([]);
    expect([...sysctls.values.keys()].filter((path) => path.includes("eni1"))).toEqual([]);
  });

  it("makes the overlay once, tells it where the others are, and leads their pods through it", () => {
    const { network, ours, netlink } = world();
    network.apply(delta({ nodes: { set: NODES, remove: [] }, routes: { set: [REMOTE], remove: [] } }));
    const link = netlink.link(OVERLAY)!;
    expect(link).toMatchObject({ kind: "vxlan", mtu: 1450, up: true, mac: "66:00:00:00:00:01" });
    expect(link.vxlan).toMatchObject({ vni: 4096, port: 4789, local: "172.16.0.1", learning: false });
    expect(netlink.forwarding()).toEqual([{ device: link.index, mac: "66:00:00:00:00:02", destination: "172.16.0.2" }]);
    expect(netlink.neighbours().map(({ address }) => address)).toEqual(["10.0.1.1", "fd00::2"]);
    expect(ours()).toEqual(["unicast 10.0.1.0/26 via 10.0.1.1"]);

    network.apply(delta({ nodes: { set: [node("node-3", "172.16.0.3", "10.0.2.1")], remove: [] } }));
    expect(netlink.link(OVERLAY)!.index).toBe(link.index);
    expect(netlink.forwarding()).toHaveLength(2);
  });

  it("sends to a node of the same subnet directly, and addresses of its own blocks that no pod has nowhere", () => {
    const { network, ours } = world();
    const near = route("10.0.3.0/26", "remote-workload", { node: "node-2", nextHop: "172.16.0.2", sameSubnet: true });
    network.apply(
      delta({
        nodes: { set: NODES, remove: [] },
        routes: { set: [near, route("10.0.0.0/26", "blackhole")], remove: [] },
      }),
    );
    expect(ours()).toEqual(["blackhole 10.0.0.0/26", "unicast 10.0.3.0/26 via 172.16.0.2"]);
  });

  it("waits for a pod's interface, and writes its route when it appears, and again when it is made anew", async () => {
    const { network, ours, addPod, netlink, sysctls } = world();
    const local = route("10.0.0.5/32", "local-workload", { interfaceName: "ven1" });
    const { objects } = network.apply(
      delta({ endpoints: { set: [POD], remove: [] }, routes: { set: [local], remove: [] } }),
    );
    expect(objects).toMatchObject([{ kind: "route", id: "10.0.0.5/32", failed: { code: "NET_INTERFACE_ABSENT" } }]);
    addPod();
    await nextTurn();
    await nextTurn();
    expect(ours()).toEqual(["unicast 10.0.0.5/32"]);
    expect(network.waiting()).toEqual([]);
    expect(sysctls.values.get("ipv4/conf/ven1/rp_filter")).toBe("1");

    await netlink.deleteLink(netlink.link("ven1")!.index);
    addPod();
    await nextTurn();
    await nextTurn();
    expect(netlink.routes({ protocol: 80 })).toMatchObject([{ device: netlink.link("ven1")!.index }]);
  });

  it("gives routes to pods the address that is asked for, once the node has it", async () => {
    const { network, addPod, netlink } = world();
    addPod();
    const local = route("10.0.0.5/32", "local-workload", { interfaceName: "ven1" });
    const configuration = { deviceRouteSourceAddress: "192.0.2.7", deviceRouteSourceAddressIPv6: "FD00:0::7" };
    const settings = { ...new ModelCopy().settings, configuration };
    const { objects } = network.apply(delta({ settings, routes: { set: [local], remove: [] } }));
    const sources = () => netlink.routes({ protocol: 80 }).map(({ source }) => source);
    expect(objects.flatMap(({ id, failed }) => (failed ? [[id, failed.code]] : []))).toEqual([
      ["192.0.2.7", "NET_SOURCE_ABSENT"],
      ["fd00::7", "NET_SOURCE_ABSENT"],
    ]);
    expect(sources()).toEqual([undefined]);
    const uplink = netlink.link("eth0")!.index;
    netlink.addAddress({ device: uplink, address: "192.0.2.7/32" });
    await nextTurn();
    await nextTurn();
    expect(sources()).toEqual(["192.0.2.7"]);
    expect(network.waiting().map(({ id }) => id)).toEqual(["fd00::7"]);
  });

  it("never takes a route of somebody else, and says whose place it would need", () => {
    const { network, netlink } = world();
    const theirs = { destination: "10.0.1.0/26", type: "blackhole", table: MAIN_TABLE, protocol: 3 } as const;
    netlink.replaceRoute(theirs);
    const { objects } = network.apply(
      delta({ nodes: { set: NODES, remove: [] }, routes: { set: [REMOTE], remove: [] } }),
    );
    expect(objects).toMatchObject([{ id: "10.0.1.0/26", failed: { code: "NET_ROUTE_TAKEN" } }]);
    expect(netlink.routes({ protocol: 3 })).toEqual([theirs]);
  });

  it("takes the place of routes that the BIRD of an older release has left, and of no other daemon's with a metric", () => {
    const { network, netlink, ours } = world();
    const left = { type: "blackhole", table: MAIN_TABLE, protocol: 12 } as const;
    netlink.replaceRoute({ ...left, destination: "10.0.1.0/26" });
    netlink.replaceRoute({ ...left, destination: "10.0.0.0/26" });
    netlink.replaceRoute({ ...left, destination: "10.0.0.0/26", metric: 80 });
    const block = route("10.0.0.0/26", "blackhole");
    const { objects } = network.apply(
      delta({ nodes: { set: NODES, remove: [] }, routes: { set: [REMOTE, block], remove: [] } }),
    );
    expect(objects.filter(({ failed }) => failed)).toEqual([]);
    expect(ours()).toEqual(["blackhole 10.0.0.0/26", "unicast 10.0.1.0/26 via 10.0.1.1"]);
    expect(netlink.routes({ protocol: 12 })).toEqual([{ ...left, destination: "10.0.0.0/26", metric: 80 }]);
  });

  it("removes what it wrote itself at once, and what an earlier life left only when told to sweep", () => {
    const { kernel, network, netlink, ours } = world();
    netlink.replaceRoute({ destination: "10.9.9.0/26", type: "blackhole", table: MAIN_TABLE, protocol: 80 });
    const block = route("10.0.0.0/26", "blackhole");
    network.apply(delta({ routes: { set: [block], remove: [] } }));
    network.apply(delta({ routes: { set: [], remove: ["10.0.0.0/26"] } }));
    expect(ours()).toEqual(["blackhole 10.9.9.0/26"]);
    expect(network.sweep()).toEqual({ removed: ["route to 10.9.9.0/26"] });
    expect(ours()).toEqual([]);
    expect(kernel.netlink().routes({ protocol: 2 }).length).toBeGreaterThan(0);
  });

  it("refuses to make an overlay of another kind anew, and says so with every route that needs it", () => {
    const { network, netlink } = world();
    netlink.addVxlan({ name: OVERLAY, vni: 1, port: 8472 });
    const { objects } = network.apply(
      delta({ nodes: { set: NODES, remove: [] }, routes: { set: [REMOTE], remove: [] } }),
    );
    expect(objects).toMatchObject([{ id: "10.0.1.0/26", failed: { code: "NET_OVERLAY_DIFFERS" } }]);
    expect(netlink.link(OVERLAY)!.vxlan).toMatchObject({ vni: 1 });
  });

  it("writes nothing where nothing differs: a restart changes nothing", () => {
    const { kernel, network, netlink, sysctls, ours } = world();
    const all = delta({ nodes: { set: NODES, remove: [] }, routes: { set: [REMOTE], remove: [] } });
    network.apply(all);
    network.close();
    const before = [netlink.links(), netlink.routes(), netlink.neighbours(), netlink.forwarding(), netlink.addresses()];
    const again = createNodeNetwork({ kernel, overlay: OVERLAY, sysctls });
    again.apply(all);
    expect(again.sweep()).toEqual({ removed: [] });
    expect([
      netlink.links(),
      netlink.routes(),
      netlink.neighbours(),
      netlink.forwarding(),
      netlink.addresses(),
    ]).toEqual(before);
    expect(ours()).toHaveLength(1);
    again.close();
  });

  it("takes everything of its own off the node", async () => {
    const { network, netlink, ours } = world();
    network.apply(delta({ nodes: { set: NODES, remove: [] }, routes: { set: [REMOTE], remove: [] } }));
    await network.remove();
    expect(ours()).toEqual([]);
    expect(netlink.link(OVERLAY)).toBeUndefined();
  });

  describe("with IPIP", () => {
    const IPIP = "ipip.vendor";
    const TUNNEL = { node: "node-2", nextHop: "172.16.0.2", encapsulation: "ipip" } as const;
    const routes = [
      route("10.0.1.0/26", "remote-workload", TUNNEL),
      route("10.0.1.1/32", "remote-host", { ...TUNNEL, tunnel: true }),
    ];
    const settings = { ...new ModelCopy().settings, tunnels: ["ipip" as const] };
    const needed = delta({ settings, nodes: { set: NODES, remove: [] }, routes: { set: routes, remove: [] } });

    it("sends to nodes through one device, and both tunnels have the node's address", async () => {
      const { network, netlink, ours, sysctls } = world();
      const { objects } = network.apply(needed);
      expect(objects.filter(({ failed }) => failed)).toEqual([]);
      const device = netlink.link(IPIP)!;
      expect(device).toMatchObject({
        kind: "ipip",
        mtu: 1480,
        up: true,
        ipip: { local: "172.16.0.1", remote: undefined },
      });
      expect(netlink.link(OVERLAY)).toBeUndefined();
      expect(ours()).toEqual(["unicast 10.0.1.0/26 via 172.16.0.2", "unicast 10.0.1.1/32 via 172.16.0.2"]);
      expect(netlink.routes({ protocol: 80 }).every((one) => one.device === device.index && one.onlink)).toBe(true);
      expect(sysctls.values.get(`ipv4/conf/${IPIP}/rp_filter`)).toBeUndefined();
      // Where the node checks reverse paths strictly, the tunnels do not.
      sysctls.write("ipv4/conf/all/rp_filter", "1");
      network.resync();
      expect(sysctls.read(`ipv4/conf/${IPIP}/rp_filter`)).toBe("2");

      network.apply(delta({ settings: { ...settings, tunnels: ["ipip", "vxlan"] } }));
      const addressesOf = (name: string) =>
        netlink.addresses().flatMap((one) => (one.device === netlink.link(name)?.index ? [one.address] : []));
      expect(addressesOf(OVERLAY)).toEqual(expect.arrayContaining(addressesOf(IPIP)));
      expect(addressesOf(IPIP)).toEqual(["10.0.0.1/32"]);
      await network.remove();
      expect([netlink.link(IPIP), netlink.link(OVERLAY), ours()]).toEqual([undefined, undefined, []]);
    });

    it("has no device where no pool needs it, and with eBPF", async () => {
      const { network, netlink } = world();
      network.apply(needed);
      network.apply(
        delta({ settings: { ...settings, tunnels: [] }, routes: { set: [], remove: routes.map(({ cidr }) => cidr) } }),
      );
      await expect.poll(() => netlink.link(IPIP)).toBeUndefined();
      network.apply(delta({ settings: { ...settings, dataplane: "BPF" } }));
      expect(netlink.link(IPIP)).toBeUndefined();
    });

    it("reports a kernel without it at each route", () => {
      const { kernel } = world();
      const netlink = kernel.netlink();
      const without = {
        ...kernel,
        netlink: () => ({
          ...netlink,
          addIpip: () => {
            throw kernelError("adding link", "EOPNOTSUPP");
          },
        }),
      };
      const network = createNodeNetwork({ kernel: without, overlay: OVERLAY, sysctls: fakeSysctls() });
      const { objects } = network.apply(needed);
      expect(objects.map(({ id, failed }) => `${id} ${failed?.code}`)).toEqual([
        "10.0.1.0/26 NET_IPIP_ABSENT",
        "10.0.1.1/32 NET_IPIP_ABSENT",
      ]);
    });
  });

  it("takes the MTU that is set, and finds it otherwise", () => {
    const { network, netlink } = world();
    const settings = { ...new ModelCopy().settings, vxlan: { vni: 4096, port: 4789, mtuV4: 1400, mtuV6: 0 } };
    network.apply(delta({ settings, nodes: { set: NODES, remove: [] }, routes: { set: [REMOTE], remove: [] } }));
    expect(netlink.link(OVERLAY)!.mtu).toBe(1400);
  });
});

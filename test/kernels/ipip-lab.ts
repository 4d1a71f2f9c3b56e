import { readFileSync, writeFileSync } from "node:fs";
import { vendorNames } from "../../src/api/names.ts";
import { groupVersion, type KubeObject } from "../../src/api/object.ts";
import { podInterfaceName } from "../../src/api/protocol/pod-network.ts";
import { READY_TUNNELS } from "../../src/api/protocol/pool-tunnels.ts";
import { type Calculator, createCalculator } from "../../src/calc/calculator.ts";
import { createNodeNetwork, type NodeNetwork } from "../../src/dataplane/net/node-network.ts";
import { createNftDataplane } from "../../src/dataplane/nft/nft-dataplane.ts";
import type { Kernel } from "../../src/kernel/kernel.ts";
import { MAIN_TABLE, type NetlinkPort } from "../../src/kernel/netlink/netlink-port.ts";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";
import { CLOSED, OPEN, OVERLAY } from "./lab.ts";
import { Speaker } from "./pod.ts";

/** `near` and `beside` share a subnet; two routers and a third subnet are between them and `far`. */
export const NODES = {
  near: { at: 1, address: "192.0.2.2", length: 24, gateway: "192.0.2.1" },
  beside: { at: 2, address: "192.0.2.3", length: 24, gateway: "192.0.2.1" },
  far: { at: 3, address: "203.0.113.2", length: 24, gateway: "203.0.113.1" },
} as const;
export type NodeName = keyof typeof NODES;
const POOL = "10.65.0.0/16";
const MAC = "ee:ee:ee:ee:ee:ee";
const GATEWAY = "169.254.1.1";
const STORED = groupVersion(vendorNames.groups.stored);
/** Of IPIP in a fabric of 1500. */
const POD_MTU = 1480;

export const podAddress = (name: NodeName) => `10.65.${NODES[name].at}.5`;
const tunnelAddress = (name: NodeName) => `10.65.${NODES[name].at}.0`;

interface Node {
  netns: Netns;
  calculator: Calculator;
  plane: Awaited<ReturnType<typeof createNftDataplane>>;
  network: NodeNetwork;
}

/** Three nodes with a pod each, programmed from API objects by the nftables data plane. */
export class IpipLab {
  readonly speakers = {} as Record<NodeName | "node" | "router", Speaker>;
  private readonly kernel: Kernel;
  private readonly namespaces: Netns[] = [];
  private readonly nodes = {} as Record<NodeName, Node>;
  private readonly routers: Netns[];

  static async open(kernel: Kernel): Promise<IpipLab> {
    const lab = new IpipLab(kernel);
    try {
      await lab.build();
    } catch (error) {
      await lab.close();
      throw error;
    }
    return lab;
  }

  private constructor(kernel: Kernel) {
    this.kernel = kernel;
    this.routers = ["r1", "r2"].map((name) => this.namespace(name));
  }

  /** The pool as it is now, on this node or on all of them, and what its kernel then lacks. */
  async setPool(spec: object, readyTunnels: string | undefined, on: readonly NodeName[] = names()): Promise<void> {
    const annotations = readyTunnels === undefined ? {} : { annotations: { [READY_TUNNELS]: readyTunnels } };
    const pool = stored("IPPool", { name: "pool", ...annotations }, { cidr: POOL, natOutgoing: true, ...spec });
    for (const name of on) {
      this.nodes[name].calculator.set(pool);
      await this.program(name);
    }
  }

  /** By which device the node sends to the pod of another. */
  device(from: NodeName, to: NodeName): string | undefined {
    return this.inside(this.nodes[from].netns, (netlink) => {
      const found = netlink
        .routes({ protocol: 80 })
        .find(({ destination }) => destination === `10.65.${NODES[to].at}.0/26`);
      return netlink.links().find(({ index }) => index === found?.device)?.name;
    });
  }

  devices(of: NodeName): string[] {
    return this.inside(this.nodes[of].netns, (netlink) => netlink.links().map(({ name }) => name));
  }

  /** Packets that nodes or routers had to cut, or could not, since they were made. */
  cutPackets(): number {
    const all = [...this.routers, ...names().map((name) => this.nodes[name].netns)];
    return all.reduce((sum, netns) => sum + this.fragments(netns), 0);
  }

  async counter(of: NodeName, reason: string): Promise<number> {
    const { columns, rows } = await this.nodes[of].plane.show("counters");
    const row = rows.find((cells) => cells.some((cell) => cell.includes(reason)));
    return Number(row?.[columns.indexOf("packets")] ?? 0);
  }

  /** What a router sends to this prefix, it sends in IPIP to that node, as if it were one. */
  forge(prefix: string, to: NodeName): void {
    this.inside(this.routers[0]!, (netlink) => {
      netlink.addIpip({ name: "forged", local: NODES.near.gateway, mtu: POD_MTU });
      const device = netlink.link("forged")!.index;
      netlink.changeLink(device, { up: true });
      netlink.addAddress({ device, address: `${tunnelAddress("near")}/32` });
      const route = { type: "unicast", table: MAIN_TABLE, protocol: 3, device } as const;
      netlink.replaceRoute({ ...route, destination: prefix, gateway: NODES[to].address, onlink: true });
    });
  }

  /** Everything of ours off the node; gives what is left. */
  async remove(name: NodeName): Promise<string[]> {
    const { plane, network, netns } = this.nodes[name];
    await plane.remove();
    await network.remove();
    return this.inside(netns, (netlink) => [
      ...netlink.links().flatMap((link) => (link.kind === "vxlan" || link.name.startsWith("ipip.") ? [link.name] : [])),
      ...netlink.routes({ protocol: 80 }).map(({ destination }) => destination),
    ]);
  }

  async close(): Promise<void> {
    for (const speaker of Object.values(this.speakers)) await speaker.close();
    for (const { plane, network } of Object.values(this.nodes)) {
      network.close();
      await plane.close();
    }
    for (const netns of this.namespaces) {
      netns.close();
      this.kernel.netns.delete(netns.name);
    }
  }

  private async build(): Promise<void> {
    const pods = {} as Record<NodeName, Netns>;
    for (const name of names()) {
      const netns = this.namespace(name);
      const network = createNodeNetwork({ kernel: this.kernel, overlay: OVERLAY, netns });
      const plane = await createNftDataplane({ kernel: this.kernel, table: "story", netns });
      this.nodes[name] = { netns, calculator: createCalculator(name, vendorNames), plane, network };
      pods[name] = this.namespace(`pod-${name}`);
    }
    this.fabric();
    for (const name of names()) {
      this.pod(name, pods[name]);
      const { calculator } = this.nodes[name];
      for (const object of objects()) calculator.set(object);
      calculator.setLocalPod(`default/${name}`, { addresses: [podAddress(name)], mac: MAC, connected: true });
      calculator.inSync();
    }
    for (const name of names()) this.speakers[name] = new Speaker(pods[name]);
    this.speakers.node = new Speaker(this.nodes.near.netns);
    this.speakers.router = new Speaker(this.routers[0]!);
    for (const name of names()) for (const port of [OPEN, CLOSED]) await this.speakers[name].listen(port);
  }

  /** A subnet is a bridge in its router. */
  private fabric(): void {
    const [first, second] = this.routers as [Netns, Netns];
    this.inside(first, (netlink) => {
      netlink.addBridge("br0");
      netlink.addVeth({ name: "mid", peer: { name: "mid", netns: second } });
    });
    this.inside(second, (netlink) => netlink.addBridge("br0"));
    for (const name of names()) {
      const { address, length, gateway } = NODES[name];
      const { netns } = this.nodes[name];
      this.inside(name === "far" ? second : first, (netlink) => {
        netlink.addVeth({ name: `to-${name}`, peer: { name: "eth0", netns } });
        up(netlink, `to-${name}`);
        netlink.changeLink(netlink.link(`to-${name}`)!.index, { master: netlink.link("br0")!.index });
      });
      this.inside(netns, (netlink) => {
        const device = up(netlink, "eth0", `${address}/${length}`);
        route(netlink, { destination: "0.0.0.0/0", device, gateway });
      });
      this.kernel.netns.run(netns, () => writeFileSync("/proc/sys/net/ipv4/conf/eth0/rp_filter", "0"));
    }
    for (const [netns, own, mid, other, through] of [
      [first, "192.0.2.1/24", "198.51.100.1/24", "203.0.113.0/24", "198.51.100.2"],
      [second, "203.0.113.1/24", "198.51.100.2/24", "192.0.2.0/24", "198.51.100.1"],
    ] as const) {
      this.inside(netns, (netlink) => {
        up(netlink, "br0", own);
        const device = up(netlink, "mid", mid);
        route(netlink, { destination: other, device, gateway: through });
      });
    }
  }

  private pod(name: NodeName, netns: Netns): void {
    const host = podInterfaceName("default", name);
    this.inside(this.nodes[name].netns, (netlink) => {
      netlink.addVeth({ name: host, mac: MAC, mtu: POD_MTU, peer: { name: "eth0", mtu: POD_MTU, netns } });
      up(netlink, host);
    });
    this.inside(netns, (netlink) => {
      const device = up(netlink, "eth0", `${podAddress(name)}/32`);
      netlink.replaceNeighbour({ device, address: GATEWAY, mac: MAC });
      route(netlink, { destination: `${GATEWAY}/32`, device });
      route(netlink, { destination: "0.0.0.0/0", device, gateway: GATEWAY });
    });
  }

  private async program(name: NodeName): Promise<void> {
    const { calculator, plane, network } = this.nodes[name];
    const delta = calculator.takeDelta();
    if (!delta) return;
    const { objects: inFilter } = await plane.apply(delta);
    const { objects: inNetwork } = network.apply(delta);
    for (const { id, failed } of [...inFilter, ...inNetwork])
      if (failed) throw new Error(`${name} ${id}: ${failed.message}`);
  }

  private fragments(netns: Netns): number {
    let text = "";
    this.kernel.netns.run(netns, () => {
      text = readFileSync("/proc/thread-self/net/snmp", "utf8");
    });
    const [titles = [], values = []] = text
      .split("\n")
      .filter((line) => line.startsWith("Ip:"))
      .map((line) => line.split(" "));
    return ["FragFails", "FragCreates"].reduce((sum, title) => sum + Number(values[titles.indexOf(title)]), 0);
  }

  private inside<T>(netns: Netns, act: (netlink: NetlinkPort) => T): T {
    const netlink = this.kernel.netlink(netns);
    try {
      return act(netlink);
    } finally {
      netlink.close();
    }
  }

  private namespace(role: string): Netns {
    const netns = this.kernel.netns.create(`vt-ipip-${process.pid}-${role}`);
    this.namespaces.push(netns);
    this.kernel.netns.run(netns, () => {
      writeFileSync("/proc/sys/net/ipv4/ip_forward", role.startsWith("pod-") ? "0" : "1");
      writeFileSync("/proc/sys/net/ipv6/conf/default/accept_dad", "0");
      // As some distributions have it for new devices: the tunnels' must be more lenient.
      writeFileSync("/proc/sys/net/ipv4/conf/default/rp_filter", role in NODES ? "1" : "0");
    });
    this.inside(netns, (netlink) => up(netlink, "lo"));
    return netns;
  }
}

function names(): NodeName[] {
  return Object.keys(NODES) as NodeName[];
}

function up(netlink: NetlinkPort, name: string, address?: string): number {
  const device = netlink.link(name)!.index;
  netlink.changeLink(device, { up: true });
  if (address !== undefined) netlink.addAddress({ device, address });
  return device;
}

function route(netlink: NetlinkPort, given: { destination: string; device: number; gateway?: string }): void {
  netlink.replaceRoute({ ...given, type: "unicast", table: MAIN_TABLE, protocol: 3 });
}

function stored(kind: string, metadata: object, spec: object): KubeObject {
  return { apiVersion: STORED, kind, metadata, spec } as KubeObject;
}

/** Pods may be asked at one port by all, and at another by nobody. */
function objects(): KubeObject[] {
  const policy = {
    ...{ apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy", metadata: { name: "open", namespace: "default" } },
    spec: { podSelector: {}, policyTypes: ["Ingress"], ingress: [{ ports: [{ protocol: "TCP", port: OPEN }] }] },
  };
  return [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: "default" } },
    policy,
    ...names().flatMap((name): KubeObject[] => {
      const { at, address, length } = NODES[name];
      const allocations: (number | null)[] = Array.from({ length: 64 }, () => null);
      [allocations[0], allocations[5]] = [0, 1];
      const attributes = [
        { handle_id: `tunnel-${name}`, secondary: { node: name, type: "vxlanTunnelAddress" } },
        { handle_id: `pod-${name}`, secondary: { namespace: "default", pod: name, node: name } },
      ];
      const block = { cidr: `10.65.${at}.0/26`, affinity: `host:${name}`, allocations, attributes, unallocated: [] };
      const annotations = {
        "vendor.io/ipv4-address": `${address}/${length}`,
        "vendor.io/ipv4-vxlan-address": tunnelAddress(name),
      };
      return [
        { apiVersion: "v1", kind: "Node", metadata: { name, annotations } },
        stored("IPAMBlock", { name: `block-${at}` }, block),
        {
          ...{ apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "default" } },
          ...{ spec: { nodeName: name }, status: { podIP: podAddress(name), podIPs: [{ ip: podAddress(name) }] } },
        } as KubeObject,
      ];
    }),
  ];
}

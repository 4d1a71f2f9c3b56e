import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Kernel } from "../../src/kernel/kernel.ts";
import { MAIN_TABLE, type NetlinkPort } from "../../src/kernel/netlink/netlink-port.ts";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";
import { MAC } from "../ebpf/frames.ts";
import { NODE, POD_A, POD_B, REMOTE } from "../ebpf/packet-lab.ts";
import { Speaker } from "./pod.ts";

export const OVERLAY = "vxlan.vendor";
/** What everybody listens on: one port that policy opens, one that it does not. */
export const [OPEN, CLOSED] = [8080, 8081];
export const OUTSIDE = { v4: "192.0.2.2", v6: "2001:db8::2" };
const GATEWAY = { v4: "169.254.1.1", v6: "fe80::ecee:eeff:feee:eeee" };
const PODS = {
  a: { ...POD_A, host: "venaaaaaaaaaaa", mac: MAC.pod },
  b: { ...POD_B, host: "venbbbbbbbbbbb", mac: "02:00:00:00:00:0b" },
} as const;

/** A node with two pods and an uplink to a machine outside, which has a pod of its own; each is a network namespace somebody speaks from. */
export class Lab {
  readonly kernel: Kernel;
  readonly node: Netns;
  /** A BPF file system of the scene's own. */
  readonly directory: string;
  readonly ends = {} as Record<"a" | "b" | "outside", Netns>;
  readonly speakers = {} as Record<"a" | "b" | "outside", Speaker>;
  private readonly namespaces: Netns[] = [];

  /** Without speakers the caller makes sockets of its own in `ends`. */
  static async open(kernel: Kernel, speaks = true): Promise<Lab> {
    const scene = new Lab(kernel);
    try {
      scene.build();
      if (speaks) scene.makeSpeakers();
      for (const speaker of Object.values(scene.speakers))
        for (const port of [OPEN, CLOSED]) await speaker.listen(port);
      return scene;
    } catch (error) {
      await scene.close();
      throw error;
    }
  }

  private constructor(kernel: Kernel) {
    this.kernel = kernel;
    this.directory = mkdtempSync(join(tmpdir(), "vt-kernels-"));
    kernel.mounts.ensure("bpf", this.directory);
    this.node = this.namespace("node");
  }

  private build(): void {
    const [a, b, outside] = [this.namespace("a"), this.namespace("b"), this.namespace("outside")];
    this.pod("a", a);
    this.pod("b", b);
    this.uplink(outside);
    this.inside(this.node, (netlink) => netlink.addVxlan({ name: OVERLAY, vni: 4096, port: 4789, learning: false }));
    Object.assign(this.ends, { a, b, outside });
  }

  private makeSpeakers(): void {
    const { a, b, outside } = this.ends;
    Object.assign(this.speakers, { a: new Speaker(a), b: new Speaker(b), outside: new Speaker(outside) });
  }

  inside<T>(netns: Netns, act: (netlink: NetlinkPort) => T): T {
    const netlink = this.kernel.netlink(netns);
    try {
      return act(netlink);
    } finally {
      netlink.close();
    }
  }

  async close(): Promise<void> {
    for (const speaker of Object.values(this.speakers)) await speaker.close();
    for (const netns of this.namespaces) {
      netns.close();
      this.kernel.netns.delete(netns.name);
    }
    this.kernel.mounts.unmount(this.directory);
    rmSync(this.directory, { recursive: true, force: true });
  }

  private namespace(role: string): Netns {
    const netns = this.kernel.netns.create(`vt-kernels-${process.pid}-${role}`);
    this.namespaces.push(netns);
    this.kernel.netns.run(netns, () => {
      // Nobody else is on these links: addresses need no second look before they are used.
      set("ipv6/conf/default/accept_dad", "0");
      set("ipv4/ip_forward", role === "node" ? "1" : "0");
      set("ipv6/conf/all/forwarding", role === "node" ? "1" : "0");
      set("ipv4/conf/default/proxy_arp", role === "node" ? "1" : "0");
    });
    this.inside(netns, (netlink) => netlink.changeLink(netlink.link("lo")!.index, { up: true }));
    return netns;
  }

  private pod(name: "a" | "b", netns: Netns): void {
    const { host, mac, v4, v6 } = PODS[name];
    this.inside(this.node, (netlink) => {
      netlink.addVeth({ name: host, mac: MAC.host, peer: { name: "eth0", mac, netns } });
      const device = netlink.link(host)!.index;
      netlink.changeLink(device, { up: true });
      this.kernel.netns.run(this.node, () => set(`ipv4/neigh/${host}/proxy_delay`, "0"));
      for (const destination of [`${v4}/32`, `${v6}/128`]) route(netlink, { destination, device });
    });
    this.inside(netns, (netlink) => {
      const device = netlink.link("eth0")!.index;
      netlink.changeLink(device, { up: true });
      netlink.addAddress({ device, address: `${v4}/32` });
      netlink.addAddress({ device, address: `${v6}/128` });
      route(netlink, { destination: `${GATEWAY.v4}/32`, device });
      route(netlink, { destination: "0.0.0.0/0", device, gateway: GATEWAY.v4 });
      route(netlink, { destination: "::/0", device, gateway: GATEWAY.v6 });
    });
  }

  private uplink(outside: Netns): void {
    this.inside(this.node, (netlink) => {
      netlink.addVeth({ name: "eth0", mac: "02:00:00:00:01:01", peer: { name: "eth0", netns: outside } });
      const device = netlink.link("eth0")!.index;
      netlink.changeLink(device, { up: true });
      netlink.addAddress({ device, address: `${NODE.v4}/24` });
      netlink.addAddress({ device, address: `${NODE.v6}/64` });
    });
    this.inside(outside, (netlink) => {
      const device = netlink.link("eth0")!.index;
      netlink.changeLink(device, { up: true });
      netlink.addAddress({ device, address: `${OUTSIDE.v4}/24` });
      netlink.addAddress({ device, address: `${OUTSIDE.v6}/64` });
      const loopback = netlink.link("lo")!.index;
      netlink.addAddress({ device: loopback, address: `${REMOTE.v4}/32` });
      netlink.addAddress({ device: loopback, address: `${REMOTE.v6}/128` });
      route(netlink, { destination: "10.65.0.0/24", device, gateway: NODE.v4 });
      route(netlink, { destination: "fd65::/64", device, gateway: NODE.v6 });
    });
    this.inside(this.node, (netlink) => {
      const device = netlink.link("eth0")!.index;
      // A node answers for the pods' gateway only while it would know where to send what is for it.
      route(netlink, { destination: "0.0.0.0/0", device, gateway: OUTSIDE.v4 });
      route(netlink, { destination: "10.65.9.0/24", device, gateway: OUTSIDE.v4 });
      route(netlink, { destination: "fd65:9::/64", device, gateway: OUTSIDE.v6 });
    });
  }
}

function route(netlink: NetlinkPort, given: { destination: string; device: number; gateway?: string }): void {
  netlink.replaceRoute({ ...given, type: "unicast", table: MAIN_TABLE, protocol: 80 });
}

function set(path: string, value: string): void {
  writeFileSync(`/proc/sys/net/${path}`, value);
}

/** A node with eight pods and an outside, whose interfaces are named anew for each random world. */

import { writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { DataplaneModel } from "../../src/calc/model.ts";
import { type Kernel, realKernel } from "../../src/kernel/kernel.ts";
import { MAIN_TABLE, type NetlinkPort } from "../../src/kernel/netlink/netlink-port.ts";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";
import type { NftPort } from "../../src/kernel/nft/nft-port.ts";
import { patience } from "../../src/kit/testing/patience.ts";
import { NODE_ADDRESSES } from "../calc/random-names.ts";
import { LabPod } from "./lab-pod.ts";

const PODS = 8;
/** Every port random packets go to. */
const PORTS = [80, 53, 8080, 1234, 99];
const ELSEWHERE = ["198.51.100.7", "198.51.100.8", "203.0.113.1", "2001:db8::7", "2001:db8::8", "2001:db9::1"];
const PATIENCE = 5_000;
/** How long after the last packet that should come one that should not may still come. */
const LATE = 100;
const MAC = "ee:ee:ee:ee:ee:ee";

export class RandomLab {
  readonly kernel: Kernel = realKernel();
  readonly node: Netns;
  readonly nft: NftPort;
  readonly labPods = new Map<string, LabPod>();
  private readonly namespaces: Netns[] = [];
  private readonly name = `vt-${process.pid}-random`;
  private readonly netlink: NetlinkPort;
  private readonly podLinks: number[] = [];
  private readonly uplink: number;
  private outside: NetlinkPort | undefined;

  constructor() {
    this.node = this.namespace("node");
    this.nft = this.kernel.nft(this.node);
    this.netlink = this.kernel.netlink(this.node);
    this.uplink = this.makeOutside();
    for (let number = 1; number <= PODS; number++) this.makePod(number);
    for (const setting of ["ipv4/ip_forward", "ipv6/conf/all/forwarding"]) this.sysctl(this.node, setting, "1");
    this.labPods.set("host", new LabPod(this.node.name, PORTS));
  }

  /** Pods of this node get their interfaces, all others are outside. */
  async become({ endpoints }: DataplaneModel): Promise<void> {
    await Promise.all([...this.labPods.values()].map(({ ready }) => ready));
    const own = new Map([...endpoints.values()].flatMap((pod) => pod.addresses.map((net) => [net, pod.interfaceName])));
    for (const [index, device] of this.podLinks.entries()) {
      this.netlink.changeLink(device, { up: false });
      const name = own.get(`10.0.0.${index + 1}/32`) ?? `idle${index}`;
      if (this.netlink.links().find((link) => link.index === device)!.name !== name) {
        this.netlink.changeLink(device, { name });
      }
      this.netlink.changeLink(device, { up: true });
      for (const [address, net] of addressesOf(index + 1)) {
        const route = { destination: net, type: "unicast", table: MAIN_TABLE, protocol: 3 } as const;
        const gateway = net.includes(":") ? NODE_ADDRESSES["node-b"][1]! : NODE_ADDRESSES["node-b"][0]!;
        const here = own.has(net);
        // What led there before must not lead there still.
        for (const old of this.netlink.routes({ table: MAIN_TABLE, protocol: 3 })) {
          if (old.destination === net) this.netlink.deleteRoute(old);
        }
        this.netlink.replaceRoute(here ? { ...route, device } : { ...route, device: this.uplink, gateway });
        if (here) this.outside!.deleteAddress({ device: 1, address: net });
        else this.outside!.addAddress({ device: 1, address: net });
        if (here) this.netlink.replaceNeighbour({ device, address, mac: podMac(index + 1) });
      }
    }
  }

  /** Everything said so far is forgotten: the next packet of any flow is a first one. */
  async forget(): Promise<void> {
    const conntrack = this.kernel.conntrack(this.node);
    for (const { original } of await conntrack.list()) conntrack.delete(original);
    conntrack.close();
  }

  /** What arrived: waits for what should, and then a little for what should not. */
  async received(expected: readonly string[]): Promise<string[]> {
    const heard: string[] = [];
    const listen = async () => {
      const all = [...this.labPods.values()].map((one) => one.order({ do: "heard" }) as Promise<string[]>);
      heard.push(...(await Promise.all(all)).flat());
      return expected.every((id) => heard.includes(id));
    };
    const began = performance.now();
    while (!(await listen()) && performance.now() - began < patience(PATIENCE));
    await sleep(LATE);
    await listen();
    return heard;
  }

  async stop(): Promise<void> {
    for (const one of this.labPods.values()) await one.stop();
    this.nft.close();
    this.netlink.close();
    this.outside?.close();
    for (const netns of this.namespaces) {
      netns.close();
      this.kernel.netns.delete(netns.name);
    }
  }

  private makeOutside(): number {
    const outside = this.namespace("outside");
    const there = this.kernel.netlink(outside);
    this.netlink.addVeth({ name: "eth0", peer: { name: "eth0", netns: outside } });
    const [near, far] = [this.netlink.link("eth0")!.index, there.link("eth0")!.index];
    for (const [netlink, device, addresses] of [
      [this.netlink, near, NODE_ADDRESSES["node-a"]],
      [there, far, NODE_ADDRESSES["node-b"]],
    ] as const) {
      netlink.changeLink(1, { up: true });
      netlink.changeLink(device, { up: true });
      for (const address of addresses) netlink.addAddress({ device, address: `${address}/${isV6(address) ? 64 : 24}` });
    }
    for (const address of ELSEWHERE) {
      there.addAddress({ device: 1, address: `${address}/${isV6(address) ? 128 : 32}` });
    }
    const route = { type: "unicast", table: MAIN_TABLE, protocol: 3 } as const;
    for (const [all, index] of [
      ["0.0.0.0/0", 0],
      ["::/0", 1],
    ] as const) {
      const [here, gateway] = [NODE_ADDRESSES["node-a"][index]!, NODE_ADDRESSES["node-b"][index]!];
      this.netlink.replaceRoute({ ...route, destination: all, device: near, gateway });
      there.replaceRoute({ ...route, destination: all, device: far, gateway: here });
    }
    this.outside = there;
    this.labPods.set("uplink", new LabPod(outside.name, PORTS));
    return near;
  }

  private makePod(number: number): void {
    const netns = this.namespace(`p${number}`);
    const inside = this.kernel.netlink(netns);
    const peer = { name: "eth0", netns, mac: podMac(number) };
    this.netlink.addVeth({ name: `idle${number - 1}`, mac: MAC, peer });
    this.podLinks.push(this.netlink.link(`idle${number - 1}`)!.index);
    const device = inside.link("eth0")!.index;
    inside.changeLink(device, { up: true });
    const route = { type: "unicast", table: MAIN_TABLE, protocol: 3, device, onlink: true } as const;
    for (const [address, net] of addressesOf(number)) {
      const gateway = isV6(address) ? "fe80::1" : "169.254.1.1";
      inside.addAddress({ device, address: net });
      inside.replaceNeighbour({ device, address: gateway, mac: MAC });
      inside.replaceRoute({ ...route, destination: isV6(address) ? "::/0" : "0.0.0.0/0", gateway });
    }
    inside.close();
    this.labPods.set(`10.0.0.${number}/32`, new LabPod(netns.name, PORTS));
  }

  private namespace(name: string): Netns {
    const netns = this.kernel.netns.create(`${this.name}-${name}`);
    this.namespaces.push(netns);
    this.sysctl(netns, "ipv6/conf/default/accept_dad", "0");
    return netns;
  }

  private sysctl(netns: Netns, path: string, value: string): void {
    this.kernel.netns.run(netns, () => {
      writeFileSync(`/proc/sys/net/${path}`, value);
    });
  }
}

function addressesOf(number: number): [address: string, net: string][] {
  return [
    [`10.0.0.${number}`, `10.0.0.${number}/32`],
    [`fd00::${number}`, `fd00::${number}/128`],
  ];
}

function podMac(number: number): string {
  return `02:00:00:00:00:0${number}`;
}

function isV6(address: string): boolean {
  return address.includes(":");
}

/** A node in a namespace of its own, with pods and a neighbour outside, under the nftables data plane; told in objects, as a cluster would. */
import { writeFileSync } from "node:fs";
import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { podInterfaceName } from "../../src/api/protocol/pod-network.ts";
import { createCalculator } from "../../src/calc/calculator.ts";
import { ModelCopy } from "../../src/calc/model-copy.ts";
import type { ApplyReport, DataplaneDriver } from "../../src/dataplane/contract.ts";
import { createNodeNetwork, type NodeNetwork } from "../../src/dataplane/net/node-network.ts";
import type { FlowLogOptions } from "../../src/dataplane/nft/flows/flow-accounting.ts";
import { createNftDataplane } from "../../src/dataplane/nft/nft-dataplane.ts";
import { type Kernel, realKernel } from "../../src/kernel/kernel.ts";
import { MAIN_TABLE, type NetlinkPort } from "../../src/kernel/netlink/netlink-port.ts";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";
import type { NftPort } from "../../src/kernel/nft/nft-port.ts";
import { LabPod } from "./lab-pod.ts";

export const TABLE = "story";
const NODE = "node-1";
const GATEWAY = { 4: "169.254.1.1", 6: "fe80::ecee:eeff:feee:eeee" } as const;
const OUTSIDE = { 4: "172.31.0.2", 6: "fd31::2" } as const;
const HOST = { 4: "172.31.0.1", 6: "fd31::1" } as const;
const STORED = `${vendorNames.groups.stored.group}/${vendorNames.groups.stored.version}`;

let labs = 0;

export class Lab {
  readonly kernel: Kernel = realKernel();
  readonly node: Netns;
  readonly nft: NftPort;
  readonly labPods = new Map<string, LabPod>();
  dataplane: DataplaneDriver;
  network: NodeNetwork;
  private readonly name = `vt-${process.pid}-${++labs}`;
  private readonly namespaces: Netns[] = [];
  private calculator = createCalculator(NODE, vendorNames);
  private readonly objects = new Map<string, KubeObject>();
  private pods = 0;

  private readonly flowLogs: FlowLogOptions | undefined;

  constructor({ flowLogs }: { flowLogs?: FlowLogOptions } = {}) {
    this.flowLogs = flowLogs;
    this.node = this.namespace("node");
    this.nft = this.kernel.nft(this.node);
    this.makeUplink();
    this.network = this.newNetwork();
    this.dataplane = this.newDataplane();
    this.set(
      { apiVersion: "v1", kind: "Namespace", metadata: { name: "default" } },
      {
        ...{ apiVersion: "v1", kind: "Node", metadata: { name: NODE } },
        status: { addresses: Object.values(HOST).map((address) => ({ type: "InternalIP", address })) },
      },
    );
    this.move(this.node, "host");
  }

  /** Somebody who lives at `address`; a pod's is told by its name. */
  who(name: string): LabPod {
    return this.labPods.get(name)!;
  }

  addressOf(name: string, family: 4 | 6 = 4): string {
    if (name === "host") return HOST[family];
    if (name === "outside") return OUTSIDE[family];
    const pod = this.objects.get(`Pod default/${name}`) as unknown as { status: { podIPs: { ip: string }[] } };
    return pod.status.podIPs[family === 4 ? 0 : 1]!.ip;
  }

  /** A pod with its interface, as the plugin would make it. */
  addPod(name: string, labels: Record<string, string> = {}, ports: object[] = []): void {
    const number = 10 + ++this.pods;
    const addresses = [`10.9.0.${number}`, `fd09::${number}`];
    const netns = this.namespace(name);
    const there = this.kernel.netlink(this.node);
    const inside = this.kernel.netlink(netns);
    const hostSide = podInterfaceName("default", name);
    there.addVeth({ name: hostSide, mac: "ee:ee:ee:ee:ee:ee", peer: { name: "eth0", netns } });
    there.changeLink(there.link(hostSide)!.index, { up: true });
    const device = inside.link("eth0")!.index;
    inside.changeLink(device, { up: true });
    inside.changeLink(1, { up: true });
    this.sysctl(netns, "ipv6/conf/eth0/accept_dad", "0");
    const route = { type: "unicast", table: MAIN_TABLE, protocol: 3, device } as const;
    inside.addAddress({ device, address: `${addresses[0]}/32` });
    inside.addAddress({ device, address: `${addresses[1]}/128` });
    inside.replaceRoute({ ...route, destination: `${GATEWAY[4]}/32` });
    inside.replaceRoute({ ...route, destination: "0.0.0.0/0", gateway: GATEWAY[4], onlink: true });
    inside.replaceRoute({ ...route, destination: "::/0", gateway: GATEWAY[6], onlink: true });
    inside.replaceNeighbour({ device, address: GATEWAY[6], mac: "ee:ee:ee:ee:ee:ee" });
    there.replaceNeighbour({
      device: there.link(hostSide)!.index,
      address: addresses[1]!,
      mac: inside.link("eth0")!.mac!,
    });
    for (const netlink of [there, inside]) netlink.close();
    this.set({
      ...{ apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "default", labels } },
      spec: { nodeName: NODE, containers: [{ name: "main", ports }] },
      status: { phase: "Running", podIPs: addresses.map((ip) => ({ ip })) },
    });
    this.move(netns, name);
  }

  set(...objects: KubeObject[]): void {
    for (const object of objects) {
      const { name, namespace } = object.metadata;
      this.objects.set(`${object.kind} ${namespace ? `${namespace}/` : ""}${name}`, object);
      this.calculator.set(object);
    }
  }

  remove(kind: string, name: string, namespace?: string): void {
    const key = `${kind} ${namespace ? `${namespace}/` : ""}${name}`;
    const { apiVersion } = this.objects.get(key)!;
    this.objects.delete(key);
    const group = apiVersion.includes("/") ? apiVersion.slice(0, apiVersion.indexOf("/")) : "";
    this.calculator.remove({ group, kind }, { name, ...(namespace ? { namespace } : {}) });
  }

  /** Stored objects of ours, by kind and spec. */
  setStored(kind: string, name: string, spec: object, namespace?: string): void {
    this.set({ apiVersion: STORED, kind, metadata: { name, ...(namespace ? { namespace } : {}) }, spec } as KubeObject);
  }

  /** Calculates and applies what changed; everybody listens then. */
  async settle(): Promise<ApplyReport> {
    await Promise.all([...this.labPods.values()].map(({ ready }) => ready));
    this.calculator.inSync();
    const delta = this.calculator.takeDelta();
    if (!delta) return { objects: [] };
    const report = await this.dataplane.apply(delta);
    return { objects: [...report.objects, ...this.network.apply(delta).objects] };
  }

  /** The agent dies, and another comes: it knows nothing, and is told everything. */
  async restart(): Promise<void> {
    await this.dataplane.close();
    this.network.close();
    this.calculator = createCalculator(NODE, vendorNames);
    for (const object of this.objects.values()) this.calculator.set(object);
    this.network = this.newNetwork();
    this.dataplane = this.newDataplane();
    await this.settle();
  }

  model(): ModelCopy {
    const calculator = createCalculator(NODE, vendorNames);
    for (const object of this.objects.values()) calculator.set(object);
    const model = new ModelCopy();
    model.apply(calculator.takeDelta()!);
    return model;
  }

  netlink(): NetlinkPort {
    return this.kernel.netlink(this.node);
  }

  async stop(): Promise<void> {
    for (const one of this.labPods.values()) await one.stop();
    await this.dataplane.close();
    this.network.close();
    this.nft.close();
    for (const netns of this.namespaces) {
      netns.close();
      this.kernel.netns.delete(netns.name);
    }
  }

  /** In which namespace, by its name on this machine. */
  placeOf(name: string): string {
    return `${this.name}-${name === "host" ? "node" : name}`;
  }

  private newDataplane(): DataplaneDriver {
    const { flowLogs } = this;
    return createNftDataplane({
      ...{ kernel: this.kernel, table: TABLE, netns: this.node },
      ...(flowLogs ? { flowLogs } : {}),
    });
  }

  private newNetwork(): NodeNetwork {
    return createNodeNetwork({ kernel: this.kernel, overlay: "vxlan.story", netns: this.node });
  }

  private namespace(name: string): Netns {
    const netns = this.kernel.netns.create(`${this.name}-${name}`);
    this.namespaces.push(netns);
    return netns;
  }

  private makeUplink(): void {
    const outside = this.namespace("outside");
    const [here, there] = [this.kernel.netlink(this.node), this.kernel.netlink(outside)];
    here.addVeth({ name: "eth0", peer: { name: "eth0", netns: outside } });
    for (const [netns, netlink, addresses] of [
      [this.node, here, HOST],
      [outside, there, OUTSIDE],
    ] as const) {
      const device = netlink.link("eth0")!.index;
      netlink.changeLink(1, { up: true });
      netlink.changeLink(device, { up: true });
      this.sysctl(netns, "ipv6/conf/eth0/accept_dad", "0");
      netlink.addAddress({ device, address: `${addresses[4]}/24` });
      netlink.addAddress({ device, address: `${addresses[6]}/64` });
    }
    const device = there.link("eth0")!.index;
    const route = { type: "unicast", table: MAIN_TABLE, protocol: 3, device } as const;
    // A node answers for the pods' gateway only where it could send such a packet on itself.
    here.replaceRoute({ ...route, device: here.link("eth0")!.index, destination: "0.0.0.0/0", gateway: OUTSIDE[4] });
    there.replaceRoute({ ...route, destination: "10.9.0.0/24", gateway: HOST[4] });
    there.replaceRoute({ ...route, destination: "fd09::/64", gateway: HOST[6] });
    for (const netlink of [here, there]) netlink.close();
    this.move(outside, "outside");
  }

  private move(netns: Netns, name: string): void {
    this.labPods.set(name, new LabPod(netns.name));
  }

  setNodeSysctl(path: string, value: string): void {
    this.sysctl(this.node, path, value);
  }

  private sysctl(netns: Netns, path: string, value: string): void {
    this.kernel.netns.run(netns, () => {
      writeFileSync(`/proc/sys/net/${path}`, value);
    });
  }
}

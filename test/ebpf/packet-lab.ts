import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ModelDelta, Policy, Rule, Settings, WorkloadEndpoint } from "../../src/calc/model.ts";
import { settingsOf } from "../../src/calc/settings.ts";
import { createEbpfDataplane, type EbpfDataplane } from "../../src/dataplane/ebpf/ebpf-dataplane.ts";
import { mapDirectory } from "../../src/dataplane/ebpf/programs/programs.ts";
import { counterLayout, HOOK, REASON } from "../../src/gen/bpf/layout.gen.ts";
import type { BpfMap, BpfProgram, Direction } from "../../src/kernel/bpf/bpf-port.ts";
import { type Kernel, realKernel } from "../../src/kernel/kernel.ts";
import { MAIN_TABLE } from "../../src/kernel/netlink/netlink-port.ts";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";
import { MAC } from "./frames.ts";

export const VERDICTS: Record<number, string> = { [-1]: "next", 2: "drop", 7: "redirect" };
export const POD_A = { v4: "10.65.0.1", v6: "fd65::1" };
export const POD_B = { v4: "10.65.0.2", v6: "fd65::2" };
export const REMOTE = { v4: "10.65.9.9", v6: "fd65:9::9" };
export const NODE = { v4: "192.0.2.1", v6: "2001:db8::1" };
export const OUTSIDE = { v4: "198.51.100.7", v6: "2001:db8:f::7" };

export type Interface = "a" | "b" | "uplink" | "overlay";
const OVERLAY = "vxlan.vendor";
const NAMES: Record<Interface, string> = {
  ...{ a: "venaaaaaaaaaaa", b: "venbbbbbbbbbbb", uplink: "eth0" },
  overlay: OVERLAY,
};
/** Those every lab has; the overlay is there where a story asks for it. */
const ALWAYS: readonly Interface[] = ["a", "b", "uplink"];
export const OVERLAY_MAC = "66:00:00:00:00:01";

const HOOKS = {
  pod: { ingress: HOOK.HOOK_FROM_WORKLOAD, egress: HOOK.HOOK_TO_WORKLOAD },
  uplink: { ingress: HOOK.HOOK_FROM_HOST, egress: HOOK.HOOK_TO_HOST },
};

const DIRECTIONS = ["ingress", "egress"] as const;
const SKB = { size: 192, mark: 8, ifindex: 40, ingressIfindex: 36, segment: 176 };

export interface Seen {
  verdict: string;
  /** In the words of the counters; more than one only when something is counted twice. */
  reason: string;
  packet: Buffer;
  mark: number;
}

/** A node's network namespace with two pods and an uplink, the real data plane in it, and packets put to its programs one by one. */
export class PacketLab {
  dataplane!: EbpfDataplane;
  readonly kernel: Kernel;
  readonly netns: Netns;
  readonly directory: string;
  private readonly name: string;
  /** Of maps: smaller than on a node, so that a lab is quickly made. */
  private sizes: Record<string, number> = { flows: 4096 };
  private readonly links = new Map<Interface, number>();
  private readonly opened = new Map<string, BpfProgram>();
  private counters: BpfMap | undefined;
  private dropsBefore = new Map<string, bigint>();
  /** In place of the sysctl of the whole machine. */
  disabledUnprivileged = false;

  private constructor(kernel: Kernel, name: string) {
    this.kernel = kernel;
    this.name = name;
    this.directory = mkdtempSync(join(tmpdir(), "vt-bpf-"));
    kernel.mounts.ensure("bpf", this.directory);
    this.netns = kernel.netns.create(name);
  }

  /** `clsact`: as on a kernel that has no links at interfaces; `no iterators`: nor programs over maps. */
  static async open(
    configuration: Record<string, number> = {},
    by: "what there is" | "clsact" | "no iterators" = "what there is",
    has: { overlay?: boolean; sizes?: Record<string, number> } = {},
  ): Promise<PacketLab> {
    const real = realKernel();
    const lacks = { "what there is": {}, clsact: { tcx: false }, "no iterators": { mapIterators: false } }[by];
    const kernel = { ...real, features: async () => ({ ...(await real.features()), ...lacks }) };
    const lab = new PacketLab(
      by === "what there is" ? real : kernel,
      `vt-ebpf-${process.pid}-${Math.random().toString(36).slice(2, 8)}`,
    );
    lab.sizes = { ...lab.sizes, ...has.sizes };
    try {
      await lab.silence();
      lab.build();
      if (has.overlay) lab.addOverlay();
      await lab.start(configuration);
    } catch (error) {
      await lab.close();
      throw error;
    }
    return lab;
  }

  /** A life of the agent: opens the plane again over what is there. */
  async start(configuration: Record<string, number> = {}): Promise<void> {
    // Most stories are told without a route to the outside.
    this.dataplane = await this.open({ reverse_path: 0, ...configuration });
  }

  /** The plane with these constants of the programs, and all others as its settings say. */
  open(configuration: Record<string, number>): Promise<EbpfDataplane> {
    return createEbpfDataplane({
      ...{ kernel: this.kernel, netns: this.netns, pinDirectory: `${this.directory}/ours`, overlay: OVERLAY },
      maxEntries: this.sizes,
      flowNames: `${this.directory}.names/flow-names`,
      configuration,
      disableUnprivileged: () => {
        this.disabledUnprivileged = true;
      },
    });
  }

  async restart(configuration: Record<string, number> = {}): Promise<void> {
    await this.dataplane.close();
    this.forgetPrograms();
    await this.start(configuration);
  }

  /** Gives the pods these rules, and everything else a node has. */
  async apply(rules: PodRules = {}, change: Partial<ModelDelta> = {}): Promise<void> {
    const report = await this.dataplane.apply({ ...deltaOf(rules), ...change });
    const failed = report.objects.filter((object) => object.failed);
    if (failed.length > 0) throw new Error(failed.map(({ id, failed: why }) => `${id}: ${why?.message}`).join("; "));
  }

  ifindex(name: Interface): number {
    return this.links.get(name)!;
  }

  /**
   * What the interface's program says to a frame. `from`: the interface it was forwarded from, for those that leave. `segment`: how much of
   * it a device would put into each of several packets.
   */
  send(at: Interface, direction: Direction, packet: Buffer, from?: Interface, segment = 0): Seen {
    const hook = HOOKS[at === "uplink" || at === "overlay" ? "uplink" : "pod"][direction];
    const before = this.counts(hook);
    const { verdict, packet: after, mark } = this.run(at, direction, packet, from, segment);
    const counted = [...this.counts(hook)].filter(([name, value]) => value !== (before.get(name) ?? 0n));
    return {
      verdict: VERDICTS[verdict] ?? String(verdict),
      reason: counted.map(([name]) => name).join(),
      packet: after,
      mark,
    };
  }

  run(
    at: Interface,
    direction: Direction,
    packet: Buffer,
    from?: Interface,
    segment = 0,
  ): { verdict: number; packet: Buffer; mark: number } {
    const context = packetContext({ ifindex: this.ifindex(at), from: from && this.ifindex(from), segment });
    const program = this.programAt(at, direction);
    const seen = this.kernel.netns.run(this.netns, () => program.testRun({ packet, context }));
    return { ...seen, mark: seen.context?.readUInt32LE(SKB.mark) ?? 0 };
  }

  map(name: string): BpfMap {
    return this.kernel.bpf.openMap(`${mapDirectory(`${this.directory}/ours`)}/${name}`);
  }

  /** Ends every flow, so that a story begins with none. */
  clearConntrack(): void {
    for (const name of ["flows", "fragments"]) {
      const map = this.map(name);
      for (const [key] of map.entries()) map.delete(key);
      map.close();
    }
  }

  /** Our programs at the interfaces there are, in the kernel's own words. */
  attached(): string[] {
    const places = [...this.links.keys()].flatMap((at) => DIRECTIONS.map((direction) => [at, direction] as const));
    return places
      .filter(([at, direction]) => this.programId(at, direction) !== undefined)
      .map((place) => place.join(" "));
  }

  /** Packets per reason, at one hook or at all. */
  counts(hook?: number): Map<string, bigint> {
    this.counters ??= this.map("counters");
    const names = Object.entries(REASON).filter(([name]) => /^(?:PASS|DROP|REJECT)_/.test(name));
    const sums = new Map<string, bigint>();
    for (const [key, value] of this.counters.entries()) {
      const index = key.readUInt32LE();
      if (hook !== undefined && Math.floor(index / REASON.REASONS) !== hook) continue;
      const reason = names.find(([, number]) => number === index % REASON.REASONS)?.[0];
      for (let at = 0; at < value.length; at += counterLayout.size) {
        const name = reason ?? `unnamed ${index}`;
        sums.set(name, (sums.get(name) ?? 0n) + value.readBigUInt64LE(at));
      }
    }
    return sums;
  }

  /** From here on the flow logs are on; `drops` says what they have. */
  async logFlows(): Promise<void> {
    await this.dataplane.flows!().begin(1);
    this.dropsBefore = this.drops();
  }

  /** Packets dropped or rejected since then, by reason: as the programs counted them, and as the flow logs have them. */
  async droppedAndLogged(): Promise<[dropped: Record<string, number>, logged: Record<string, number>]> {
    const flows = this.dataplane.flows!();
    const dropped: Record<string, number> = {};
    // Of what the kernel itself sends, and is dropped, too.
    await flows.begin((await flows.intervals()).at(-1)! + 1);
    for (const [name, count] of this.drops()) {
      const since = Number(count - (this.dropsBefore.get(name) ?? 0n));
      if (since > 0) dropped[name] = since;
    }
    const logged: Record<string, number> = {};
    for (const interval of (await flows.intervals()).slice(0, -1)) {
      for (const { verdict, reason = "", packets, replyPackets } of await flows.read(interval)) {
        if (verdict === "Deny") logged[reason] = (logged[reason] ?? 0) + packets + replyPackets;
      }
    }
    return [sorted(dropped), sorted(logged)];
  }

  private drops(): Map<string, bigint> {
    const drops = [...this.counts()].filter(([name]) => /^(?:DROP|REJECT)_/.test(name));
    return new Map(drops.map(([name, count]) => [name.replace(/^[A-Z]+_/, "").toLowerCase(), count]));
  }

  async close(): Promise<void> {
    this.forgetPrograms();
    await this.dataplane?.remove().catch(() => undefined);
    await this.dataplane?.close().catch(() => undefined);
    this.netns.close();
    this.kernel.netns.delete(this.name);
    this.kernel.mounts.unmount(this.directory);
    rmSync(this.directory, { recursive: true, force: true });
    rmSync(`${this.directory}.names`, { recursive: true, force: true });
  }

  forgetPrograms(): void {
    for (const program of this.opened.values()) program.close();
    this.opened.clear();
    this.counters?.close();
    this.counters = undefined;
  }

  private programAt(at: Interface, direction: Direction): BpfProgram {
    const place = `${this.ifindex(at)}_${direction}`;
    let program = this.opened.get(place);
    if (!program) {
      program = this.kernel.bpf.openProgramById(this.programId(at, direction)!);
      this.opened.set(place, program);
    }
    return program;
  }

  private programId(at: Interface, direction: Direction): number | undefined {
    const device = this.ifindex(at);
    const [directory, pin] = [`${this.directory}/ours/links`, `${device}_${direction}`];
    if (this.kernel.bpf.pins(directory).includes(pin)) {
      const link = this.kernel.bpf.openLink(`${directory}/${pin}`);
      const { ifindex, programId } = link.info();
      void link.close();
      return ifindex === device ? programId : undefined;
    }
    const netlink = this.kernel.netlink(this.netns);
    try {
      return netlink.filters(device, direction)[0]?.programId;
    } finally {
      netlink.close();
    }
  }

  private inside(act: () => void): void {
    this.kernel.netns.run(this.netns, act);
  }

  /** The kernel of the node announces its groups and addresses whenever it likes: none of that leaves, so only our packets are counted. */
  private async silence(): Promise<void> {
    const nft = this.kernel.nft(this.netns);
    await nft.run(
      "add table inet silence\nadd chain inet silence output { type filter hook output priority 0; policy drop; }",
    );
    nft.close();
  }

  private build(): void {
    const netlink = this.kernel.netlink(this.netns);
    for (const key of ALWAYS) {
      const name = NAMES[key];
      const hostMac = key === "uplink" ? "02:00:00:00:01:01" : MAC.host;
      netlink.addVeth({ name, mac: hostMac, peer: { name: `peer-${key}`, mac: podMac(key) } });
      const { index } = netlink.link(name)!;
      this.links.set(key, index);
    }
    // Pods' interfaces stay down, and nobody speaks at the other end of the uplink.
    this.inside(() => writeFileSync("/proc/sys/net/ipv6/conf/peer-uplink/disable_ipv6", "1"));
    netlink.changeLink(netlink.link("peer-uplink")!.index, { up: true });
    netlink.changeLink(this.ifindex("uplink"), { up: true });
    const uplink = this.ifindex("uplink");
    netlink.addAddress({ device: uplink, address: `${NODE.v4}/24` });
    netlink.addAddress({ device: uplink, address: `${NODE.v6}/64` });
    this.inside(() => {
      writeFileSync("/proc/sys/net/ipv4/ip_forward", "1");
      writeFileSync("/proc/sys/net/ipv6/conf/all/forwarding", "1");
    });
    netlink.replaceNeighbour({ device: uplink, address: "2001:db8::2", mac: "02:00:00:00:02:02" });
    netlink.replaceNeighbour({ device: uplink, address: "192.0.2.2", mac: "02:00:00:00:02:02" });
    const route = { destination: "10.65.9.0/24", gateway: "192.0.2.2", device: uplink };
    netlink.replaceRoute({ ...route, type: "unicast", table: MAIN_TABLE, protocol: 80 });
    netlink.close();
  }

  /** The node's end of the overlay, and a way out for answers to clients. */
  private addOverlay(): void {
    const netlink = this.kernel.netlink(this.netns);
    const device = { name: OVERLAY, vni: 4096, port: 4789, local: NODE.v4, mac: OVERLAY_MAC, mtu: 1450 };
    netlink.addVxlan({ ...device, learning: false });
    const { index } = netlink.link(OVERLAY)!;
    netlink.changeLink(index, { up: true });
    this.links.set("overlay", index);
    const common = { device: this.ifindex("uplink"), type: "unicast", table: MAIN_TABLE, protocol: 80 } as const;
    netlink.replaceRoute({ ...common, destination: "0.0.0.0/0", gateway: "192.0.2.2" });
    netlink.replaceRoute({ ...common, destination: "::/0", gateway: "2001:db8::2" });
    netlink.close();
  }
}

/** The `struct __sk_buff` of a packet at an interface. */
export function packetContext({
  ifindex,
  from = 0,
  segment = 0,
}: {
  ifindex: number;
  from?: number;
  segment?: number;
}) {
  const context = Buffer.alloc(SKB.size);
  context.writeUInt32LE(ifindex, SKB.ifindex);
  context.writeUInt32LE(from, SKB.ingressIfindex);
  context.writeUInt32LE(segment, SKB.segment);
  return context;
}

function sorted(counts: Record<string, number>): Record<string, number> {
  return Object.fromEntries(Object.entries(counts).sort());
}

function podMac(key: Interface): string {
  return { overlay: OVERLAY_MAC, a: MAC.pod, b: "02:00:00:00:00:0b", uplink: "02:00:00:00:01:02" }[key];
}

export interface PodRules {
  aEgress?: Rule[];
  aIngress?: Rule[];
  bEgress?: Rule[];
  bIngress?: Rule[];
  host?: { ingress?: Rule[]; egress?: Rule[]; forwardIngress?: Rule[] };
  settings?: Partial<Settings>;
}

export function allow(match: Omit<Rule, "id" | "action"> = {}): Rule {
  return { id: `rule-${JSON.stringify(match)}`, action: "allow", ...match };
}

/** A whole model as its first delta. A pod without rules has none that allow. */
export function deltaOf(rules: PodRules): ModelDelta {
  const policies: Policy[] = [
    policy("a", rules.aIngress ?? [], rules.aEgress ?? []),
    policy("b", rules.bIngress ?? [], rules.bEgress ?? []),
    policy("host", rules.host?.ingress ?? [], rules.host?.egress ?? []),
    policy("forward", rules.host?.forwardIngress ?? [], []),
  ];
  const empty = { set: [], remove: [] };
  const tier = (id: string) => [{ name: "default", endAction: "deny" as const, policies: [id] }];
  const host = {
    ...{ id: "node", interfaceName: NAMES.uplink, expectedIPs: [], preDNAT: [], profiles: [] },
    forward: { ingress: rules.host?.forwardIngress ? tier("forward") : [], egress: [] },
    normal: { ingress: tier("host"), egress: tier("host") },
  };
  return {
    inSync: true,
    ipSets: { set: [], change: [], remove: [] },
    policies: { set: policies, remove: [] },
    profiles: empty,
    endpoints: { set: [endpoint("a", POD_A), endpoint("b", POD_B)], remove: [] },
    hostEndpoints: rules.host ? { set: [host], remove: [] } : { set: [], remove: ["node"] },
    nodes: empty,
    routes: { set: [remote("10.65.9.0/24"), remote("fd65:9::/64")], remove: [] },
    services: empty,
    problems: empty,
    // Tables of a lab are small, and two pods open every connection: what a pod's share of them does has tests of its own.
    settings: { ...settingsOf({ workloadConntrackPercent: 100 }, undefined, []), ...rules.settings },
  };
}

function policy(id: string, ingress: Rule[], egress: Rule[]): Policy {
  return { id, tier: "default", order: 1, ingress, egress };
}

function endpoint(id: "a" | "b", addresses: { v4: string; v6: string }): WorkloadEndpoint {
  const decided = { tiers: [{ name: "default", endAction: "deny" as const, policies: [id] }], profiles: [] };
  return {
    ...{ id: `default/${id}`, interfaceName: NAMES[id], mac: podMac(id) },
    addresses: [`${addresses.v4}/32`, `${addresses.v6}/128`],
    ...{ ingress: decided, egress: decided },
  };
}

function remote(cidr: string) {
  return {
    ...{ cidr, kind: "remote-workload" as const, node: "other", interfaceName: null, nextHop: "192.0.2.2" },
    ...{ encapsulation: "none" as const, sameSubnet: true, natOutgoing: false, inPool: true, tunnel: false },
  };
}

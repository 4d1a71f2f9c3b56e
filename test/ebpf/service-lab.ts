import type { Dataplane } from "../../src/api/dataplane.ts";
import type { DataplaneConfiguration } from "../../src/api/resources/dataplane-configuration.ts";
import type { ClusterNode, ModelDelta, Route, ServiceBackend, ServicePort } from "../../src/calc/model.ts";
import { settingsOf } from "../../src/calc/settings.ts";
import { plainServicePort } from "../../src/calc/testing/service-port.ts";
import { addressText } from "../../src/dataplane/ebpf/net-bytes.ts";
import { CONNTRACK_FLAG, conntrackEntryLayout, FORWARD_PATH, fiveTupleLayout } from "../../src/gen/bpf/layout.gen.ts";
import type { Direction } from "../../src/kernel/bpf/bpf-port.ts";
import { frame, spoken, summed, wrongChecksums } from "./frames.ts";
import { allow, deltaOf, type Interface, NODE, OVERLAY_MAC, PacketLab, type PodRules } from "./packet-lab.ts";

export const PEER = { v4: "192.0.2.2", v6: "2001:db8::2", mac: "66:00:00:00:00:02" };
export const ANY_CLIENT: PodRules = {
  aEgress: [allow()],
  aIngress: [allow()],
  bEgress: [allow()],
  bIngress: [allow()],
};

export interface ServiceLabOptions {
  /** Of the DataplaneConfiguration; some of it the programs take when they start. */
  configuration?: DataplaneConfiguration["spec"];
  rules?: PodRules;
  peer?: Dataplane;
  direct?: boolean;
  /** Clients that are not answered directly all the same. */
  neverDirect?: string[];
  /** Nobody forgets the flows there are. */
  keepConntrack?: boolean;
  change?: Partial<ModelDelta>;
}

/** What became of a packet, in one line: verdict, reason, and what it is now. `wrong`: checksums that are. */
export interface Became {
  line: string;
  packet: Buffer;
  wrong: string[];
  mark: number;
  toMac: string;
  fromMac: string;
  hops: number;
  /** Through the tunnel, to the node of this backend, which translates. */
  leftTo?: string;
}

/** A node with services: packets are put to its programs with right checksums, and told how they come out. */
export class ServiceLab {
  readonly packets: PacketLab;

  private constructor(packets: PacketLab) {
    this.packets = packets;
  }

  static async open(
    configuration: Record<string, number> = {},
    sizes: Record<string, number> = {},
  ): Promise<ServiceLab> {
    return new ServiceLab(await PacketLab.open(configuration, "what there is", { overlay: true, sizes }));
  }

  /** Exactly these services, and nobody who remembers others unless told. */
  async serve(services: readonly ServicePort[], world: ServiceLabOptions = {}): Promise<void> {
    const {
      rules = ANY_CLIENT,
      peer = "BPF",
      direct = false,
      neverDirect = [],
      change = {},
      configuration: more = {},
    } = world;
    const gone = this.known.filter((id) => !services.some((one) => one.id === id));
    this.known = services.map(({ id }) => id);
    const settings = settingsOf(undefined, undefined, []);
    const mode = direct ? ("DSR" as const) : ("Tunnel" as const);
    const configuration = {
      ...settings.configuration,
      ...{ bpfExternalServiceMode: mode, bpfDSROptoutCIDRs: neverDirect },
      ...more,
    };
    const delta = deltaOf({ ...rules, settings: { ...rules.settings, configuration } });
    await this.packets.apply(rules, {
      settings: delta.settings,
      nodes: { set: [nodeOf("here", true, "BPF"), nodeOf("other", false, peer)], remove: [] },
      routes: { set: ROUTES, remove: [] },
      services: { set: [...services], remove: gone },
      ...change,
    });
    if (!world.keepConntrack) this.forget();
  }

  forget(): void {
    this.packets.clearConntrack();
    const affinities = this.packets.map("affinities");
    for (const [key] of affinities.entries()) affinities.delete(key);
    affinities.close();
  }

  /** A packet that arrives, unless told that it leaves. */
  put(at: Interface, packet: { type: number; bytes: Buffer }, options: PutOptions = {}): Became {
    const whole = frame(options.unsummed ? packet : summed(packet), { source: options.fromMac });
    const {
      verdict,
      reason,
      packet: after,
      mark,
    } = this.packets.send(at, options.direction ?? "ingress", whole, options.from, options.segment);
    const toMac = macText(after, 0);
    return {
      ...(toMac === PEER.mac ? this.leftTo(after) : {}),
      line: `${verdict} ${reason} | ${spoken(after)}`,
      packet: after,
      wrong: wrongChecksums(after),
      mark,
      toMac,
      fromMac: macText(after, 6),
      hops: after[after[14]! >> 4 === 4 ? 22 : 21]!,
    };
  }

  /** As the flow has it, which is what policy was asked about. */
  private leftTo(packet: Buffer): { leftTo?: string } {
    const flows = this.packets.map("flows");
    const found = flows.entries().find(([key, value]) => {
      const { src, dst, sport, dport, protocol } = fiveTupleLayout.read(key);
      const { flags, path } = conntrackEntryLayout.read(value);
      const words = `${protocol === 6 ? "tcp" : "udp"} ${socket(src, sport)} > ${socket(dst, dport)}`;
      return path === FORWARD_PATH.PATH_OVERLAY && !(flags & CONNTRACK_FLAG.CT_NAT) && words === spoken(packet);
    });
    flows.close();
    if (!found) return {};
    const { dst, dport } = conntrackEntryLayout.read(found[1]).to;
    return { leftTo: socket(dst, dport) };
  }

  close(): Promise<void> {
    return this.packets.close();
  }

  private known: string[] = [];
}

interface PutOptions {
  direction?: Direction;
  from?: Interface;
  fromMac?: string;
  /** The packet's checksums are as they are. */
  unsummed?: boolean;
  /** How much of it a device would put into each of several packets. */
  segment?: number;
}

/** A port of a service with an address of the cluster, and what a story says is different. Backends are `ADDRESS:PORT`; `*` in front: of this node. */
export function servicePort(id: string, backends: readonly string[], change: Partial<ServicePort> = {}): ServicePort {
  const clusterBackends = backends.map(backendOf);
  const isLocal = change.internalLocal || change.externalLocal;
  return plainServicePort({
    ...{ id, clusterAddress: null, clusterBackends },
    localBackends: isLocal ? clusterBackends.filter(({ local }) => local) : [],
    ...change,
  });
}

function backendOf(text: string): ServiceBackend {
  const [, star, address, port] = /^(\*?)\[?([^\]]*?)\]?:(\d+)$/.exec(text)!;
  return { address: address!, port: Number(port), local: star === "*", node: star === "*" ? "here" : "other" };
}

function nodeOf(name: string, local: boolean, dataplane: Dataplane): ClusterNode {
  const { v4, v6 } = local ? NODE : PEER;
  return {
    ...{ name, local, addressV4: v4, addressV6: v6, subnetV4: null, subnetV6: null, dataplane },
    addresses: [`${v4}/32`, `${v6}/128`],
    vtep: { mac: local ? OVERLAY_MAC : PEER.mac, addressV4: v4, addressV6: v6 },
  };
}

export function routeTo(cidr: string, kind: Route["kind"], node: string | null): Route {
  return {
    ...{ cidr, kind, node, interfaceName: null, nextHop: null, encapsulation: "none", sameSubnet: true },
    ...{ natOutgoing: false, inPool: false, tunnel: false },
  };
}

const ROUTES: Route[] = [
  ...["10.65.9.0/24", "fd65:9::/64"].map((cidr) => routeTo(cidr, "remote-workload", "other")),
  ...["10.65.0.0/16", "fd65::/32"].map((cidr) => routeTo(cidr, "pool", null)),
  ...[`${PEER.v4}/32`, `${PEER.v6}/128`].map((cidr) => routeTo(cidr, "remote-host", "other")),
  ...[`${NODE.v4}/32`, `${NODE.v6}/128`].map((cidr) => routeTo(cidr, "local-host", "here")),
];

function socket(address: Uint8Array, port: number): string {
  const text = addressText(address);
  return text.includes(":") ? `[${text}]:${port}` : `${text}:${port}`;
}

function macText(packet: Buffer, at: number): string {
  return packet
    .subarray(at, at + 6)
    .toString("hex")
    .replace(/..(?=.)/g, "$&:");
}

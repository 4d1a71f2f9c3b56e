import { tunnelOf } from "../../api/protocol/pool-tunnels.ts";
import type { IPPool } from "../../api/resources/ip-pool.ts";
import type { IPAMBlock } from "../../api/resources/ipam.ts";
import { affineNode, allocationsOf } from "../../api/resources/ipam-allocation.ts";
import { type Cidr, contains, parseAddress, parseCidr } from "../../kit/ip.ts";
import type { ClusterNode, Net, Route } from "../model.ts";
import { isV4, NetTable, toNet } from "../nets.ts";
import { orMake } from "../or-make.ts";
import type { TableDiff } from "../table-diff.ts";

/** One source of a prefix. Its route depends on pools and nodes, so it is kept and calculated again when those change. */
export type RouteFact =
  | { is: "pool"; net: Net }
  | { is: "pods"; net: Net; node: string }
  | { is: "workload"; net: Net; interfaceName: string }
  | { is: "host"; net: Net; node: string; tunnel: boolean };

/** Who is believed where several speak of the same prefix. */
const RANK: readonly Route["kind"][] = [
  "local-workload",
  "local-host",
  "remote-host",
  "remote-workload",
  "blackhole",
  "pool",
];

export class Routes {
  readonly #node: string;
  readonly #toNodes: boolean;
  readonly #bgp: boolean;
  readonly #table: TableDiff<Route>;
  readonly #facts = new Map<string, RouteFact[]>();
  readonly #byNet = new Map<Net, Map<string, RouteFact>>();
  readonly #dirty = new Set<Net>();
  #pools = new NetTable<IPPool>();
  #nodes: { get(name: string): ClusterNode | undefined } = new Map();

  /**
   * `toNodes` false: other nodes are reached without routes of ours, so none has a next hop. `bgp`: those of other subnets that no tunnel leads to
   * are reached by what BGP learns.
   */
  constructor(node: string, table: TableDiff<Route>, { toNodes = true, bgp = false } = {}) {
    this.#node = node;
    this.#toNodes = toNodes;
    this.#bgp = bgp;
    this.#table = table;
  }

  /** What one source says now, in place of what it said before. */
  problems(source: string, facts: readonly RouteFact[]): void {
    const before = this.#facts.get(source) ?? [];
    if (before.length === facts.length && JSON.stringify(before) === JSON.stringify(facts)) return;
    for (const { net } of before) {
      const sources = this.#byNet.get(net);
      sources?.delete(source);
      if (sources?.size === 0) this.#byNet.delete(net);
    }
    if (facts.length > 0) this.#facts.set(source, [...facts]);
    else this.#facts.delete(source);
    for (const fact of facts) orMake(this.#byNet, fact.net, () => new Map<string, RouteFact>()).set(source, fact);
    for (const { net } of [...before, ...facts]) this.#dirty.add(net);
  }

  /** Pools and nodes are few and change seldom: every route is worked out again. */
  know(pools: Iterable<IPPool>, nodes: { get(name: string): ClusterNode | undefined }): void {
    this.#pools = new NetTable();
    for (const pool of pools) {
      const net = toNet(pool.spec.cidr);
      if (net !== undefined) this.#pools.add(net, pool);
    }
    this.#nodes = nodes;
    for (const net of this.#byNet.keys()) this.#dirty.add(net);
  }

  settle(): void {
    for (const net of this.#dirty) this.#choose(net);
    this.#dirty.clear();
  }

  #choose(net: Net): void {
    const routes = [...(this.#byNet.get(net) ?? [])]
      .map(([source, fact]) => ({ source, route: this.#routeOf(fact) }))
      .sort((a, b) => RANK.indexOf(a.route.kind) - RANK.indexOf(b.route.kind) || (a.source < b.source ? -1 : 1));
    this.#table.set(net, routes[0]?.route);
  }

  #routeOf(fact: RouteFact): Route {
    const cidr = parseCidr(fact.net)!;
    const pool = this.#poolOf(cidr);
    const common: Route = {
      cidr: fact.net,
      kind: "pool",
      node: null,
      interfaceName: null,
      nextHop: null,
      encapsulation: "none",
      sameSubnet: false,
      natOutgoing: pool?.spec.natOutgoing ?? false,
      inPool: pool !== undefined,
      tunnel: false,
    };
    switch (fact.is) {
      case "pool":
        return common;
      case "workload":
        return { ...common, kind: "local-workload", node: this.#node, interfaceName: fact.interfaceName };
      case "host": {
        const local = fact.node === this.#node;
        const sameSubnet = !local && this.#sameSubnet(fact.node, isV4(fact.net));
        const kind = local ? "local-host" : "remote-host";
        const encapsulation = fact.tunnel && !local ? (tunnelOf(pool?.spec)?.tunnel ?? "vxlan") : "none";
        const nextHop = encapsulation === "ipip" ? (this.#nodes.get(fact.node)?.addressV4 ?? null) : null;
        return { ...common, kind, node: fact.node, tunnel: fact.tunnel, sameSubnet, encapsulation, nextHop };
      }
      case "pods":
        if (fact.node === this.#node) return { ...common, kind: "blackhole", node: fact.node };
        return { ...common, kind: "remote-workload", node: fact.node, ...this.#wayTo(fact.node, isV4(fact.net), pool) };
    }
  }

  #wayTo(node: string, v4: boolean, pool: IPPool | undefined): Pick<Route, "nextHop" | "encapsulation" | "sameSubnet"> {
    const known = this.#nodes.get(node);
    const sameSubnet = this.#sameSubnet(node, v4);
    if (!this.#toNodes) return { nextHop: null, encapsulation: "none", sameSubnet };
    const used = tunnelOf(pool?.spec);
    const isDirect = used === undefined || (used.mode === "CrossSubnet" && sameSubnet);
    const encapsulation = isDirect ? "none" : used.tunnel;
    if (this.#bgp && encapsulation === "none" && !sameSubnet) return { nextHop: null, encapsulation, sameSubnet };
    const direct = v4 ? known?.addressV4 : known?.addressV6;
    const tunnel = v4 ? known?.vtep.addressV4 : known?.vtep.addressV6;
    return { nextHop: (encapsulation === "vxlan" ? tunnel : direct) ?? null, encapsulation, sameSubnet };
  }

  /** What is not known to be near is far: the tunnel works in both cases. */
  #sameSubnet(node: string, v4: boolean): boolean {
    const [here, there] = [this.#nodes.get(this.#node), this.#nodes.get(node)];
    const subnet = parseCidr((v4 ? here?.subnetV4 : here?.subnetV6) ?? "");
    const address = parseAddress((v4 ? there?.addressV4 : there?.addressV6) ?? "");
    return subnet !== undefined && address !== undefined && contains(subnet, address);
  }

  #poolOf(cidr: Cidr): IPPool | undefined {
    const pool = this.#pools.find({ family: cidr.family, value: cidr.base });
    return pool && parseCidr(pool.spec.cidr)!.length <= cidr.length ? pool : undefined;
  }
}

/** Where a block's addresses are, and which of them are ends of the overlay. */
export function blockFacts(block: IPAMBlock): RouteFact[] {
  const net = toNet(block.spec.cidr);
  if (net === undefined || block.spec.deleted) return [];
  const home = affineNode(block);
  const facts: RouteFact[] = home === undefined ? [] : [{ is: "pods", net, node: home }];
  // Most blocks are lived in by pods of their own node alone, and need no look at each address.
  if (!block.spec.attributes.some(({ secondary }) => secondary?.["node"] !== home || !secondary?.["pod"])) return facts;
  for (const { address, owner } of allocationsOf(block)) {
    const single = toNet(address)!;
    if (owner.kind === "tunnel") facts.push({ is: "host", net: single, node: owner.node, tunnel: true });
    else if (owner.kind === "node") facts.push({ is: "host", net: single, node: owner.node, tunnel: false });
    else if (owner.kind === "pod" && owner.node !== undefined && owner.node !== home) {
      facts.push({ is: "pods", net: single, node: owner.node });
    }
  }
  return facts;
}

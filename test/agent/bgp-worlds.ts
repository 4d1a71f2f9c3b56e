import { NODE_BGP } from "../../src/api/protocol/node-bgp.ts";
import type { BGPFilter } from "../../src/api/resources/bgp-filter.ts";
import type { BGPPeer } from "../../src/api/resources/bgp-peer.ts";
import type { BgpInputs } from "../../src/calc/bgp/bgp-inputs.ts";
import type { ClusterNode, Route, ServicePort } from "../../src/calc/model.ts";
import { plainServicePort } from "../../src/calc/testing/service-port.ts";
import { contains, overlaps, parseAddress, parseCidr } from "../../src/kit/ip.ts";
import { Random } from "../calc/random.ts";

type Rule = NonNullable<BGPFilter["spec"]["exportV4"]>[number];

const META = { apiVersion: "crd.vendor.io/v1" };
const RULE_NETS = ["10.244.0.0/16", "10.244.1.0/26", "10.245.0.0/16", "10.96.0.0/16", "10.96.0.7/32", "0.0.0.0/0"];
const RULE_NETS_V6 = ["fd10::/48", "fd10::40/122", "fd96::/112", "::/0"];
const OPERATORS = ["Equal", "NotEqual", "In", "NotIn"] as const;

function dice(seed: number) {
  const random = new Random(seed);
  const chance = (share: number) => random.chance(share * 100);
  return {
    chance,
    int: (least: number, most: number) => least + random.below(most - least + 1),
    pick: <T>(choices: readonly T[]) => random.of(choices),
    some: <T>(choices: readonly T[], share: number) => choices.filter(() => chance(share)),
  };
}

/** A cluster of some nodes, as one of them sees it. The same seed is the same cluster. */
export function randomBgp(seed: number): BgpInputs {
  const { some, chance, int, pick } = dice(seed);
  const count = int(1, 5);
  const names = Array.from({ length: count }, (_, at) => `n${at + 1}`);
  const dual = chance(0.5);
  const nodes = names.map((name) => ({
    ...{ apiVersion: "v1", kind: "Node" },
    metadata: {
      name,
      labels: { rack: pick(["a", "b"]), ...(chance(0.2) ? { role: "reflector" } : {}) },
      annotations: {
        ...(chance(0.3) ? { [NODE_BGP.asNumber]: String(int(64_600, 64_700)) } : {}),
        ...(chance(0.2) ? { [NODE_BGP.routeReflectorClusterId]: `244.0.0.${int(1, 2)}` } : {}),
      },
    },
    spec: chance(0.15) ? { unschedulable: true } : {},
  }));
  const network = new Map(names.map((name, at) => [name, clusterNode(name, at + 1, dual, name === "n1")]));
  const pool = (cidr: string) => ({
    ...{ ...META, kind: "IPPool", metadata: { name: cidr.replaceAll(/[.:/]/g, "-") } },
    spec: {
      cidr,
      ...(chance(0.2) ? { disableBGPExport: true } : {}),
      ...(chance(0.3) ? { vxlanMode: pick(["Always", "CrossSubnet"] as const) } : {}),
    },
  });
  const ranges = (texts: readonly string[]) => some(texts, 0.6).map((cidr) => ({ cidr }));
  const rule = (nets: readonly string[]): Rule => ({
    action: pick(["Accept", "Reject"] as const),
    ...(chance(0.8) ? inside(pick(nets), pick(OPERATORS)) : {}),
    ...(chance(0.15) ? { source: "RemotePeers" as const } : {}),
  });
  const inside = (cidr: string, matchOperator: (typeof OPERATORS)[number]) => ({
    ...{ cidr, matchOperator },
    ...(matchOperator.endsWith("In") && chance(0.4)
      ? { prefixLength: { ...(chance(0.7) ? { min: int(8, 32) } : {}), ...(chance(0.7) ? { max: int(8, 32) } : {}) } }
      : {}),
  });
  const rules = (nets: readonly string[]) => Array.from({ length: int(0, 3) }, () => rule(nets));
  const filters = ["f1", "f2"].map((name) => ({
    ...{ ...META, kind: "BGPFilter", metadata: { name } },
    spec: {
      exportV4: rules(RULE_NETS),
      importV4: rules(RULE_NETS),
      exportV6: rules(RULE_NETS_V6),
      importV6: rules(RULE_NETS_V6),
    },
  }));
  const peers = Array.from({ length: int(0, 4) }, (_, at) => ({
    ...{ ...META, kind: "BGPPeer", metadata: { name: `p${at}` } },
    spec: {
      ...(chance(0.3)
        ? { peerSelector: 'role == "reflector"' }
        : routerAt(at, dual && chance(0.3), int(64_512, 64_515))),
      ...(chance(0.3) ? { node: pick(names) } : chance(0.3) ? { nodeSelector: 'rack == "a"' } : {}),
      ...(chance(0.4) ? { filters: some(["f1", "f2"], 0.7) } : {}),
      ...(chance(0.2) ? { password: { secretKeyRef: { name: "s", key: "k" } } } : {}),
      ...(chance(0.2) ? { ttlSecurity: int(1, 254) } : {}),
      ...(chance(0.2) ? { nextHopMode: pick(["Auto", "Self", "Keep"] as const) } : {}),
      ...(chance(0.2) ? { numAllowedLocalASNumbers: int(0, 5) } : {}),
      ...(chance(0.2) ? { maxRestartTime: pick(["90s", "1m30s", "2h"]) } : {}),
      ...(chance(0.2) ? { sourceAddress: pick(["UseNodeIP", "None"] as const) } : {}),
      ...(chance(0.1) ? { localASNumber: 65_100 } : {}),
    },
  })) as BGPPeer[];
  return {
    ...{ node: "n1", nodes, peers, filters, switching: chance(0.1), password: () => "pass word" },
    pools: [pool("10.244.0.0/16"), pool("10.245.0.0/16"), ...(dual ? [pool("fd10::/48")] : [])],
    configurations: [
      {
        ...{ ...META, kind: "BGPConfiguration", metadata: { name: "default" } },
        spec: {
          ...(chance(0.3) ? { nodeToNodeMeshEnabled: chance(0.5) } : {}),
          ...(chance(0.3) ? { asNumber: 64_513 } : {}),
          ...(chance(0.3) ? { bindMode: "NodeIP" as const } : {}),
          ...(chance(0.3) ? { listenPort: 1_790 } : {}),
          ...(chance(0.3) ? { logSeverityScreen: pick(["Debug", "Info", "Fatal"] as const) } : {}),
          ...(chance(0.2) ? { ignoredInterfaces: ["docker0", "kube-*"] } : {}),
          serviceClusterIPs: ranges(["10.96.0.0/16", "fd96::/112"]),
          serviceLoadBalancerIPs: ranges(["203.0.113.0/24"]),
          communities: [{ name: "pods", value: "64512:10" }],
          prefixAdvertisements: some(["10.244.0.0/16", "10.96.0.0/12", "fd10::/32"], 0.5).map((cidr) => ({
            cidr,
            communities: some(["pods", "64512:20", "64512:1:2"], 0.6),
          })),
        },
      },
    ],
    model: {
      nodes: network,
      routes: new Map(randomRoutes(names, dual, { chance, int, pick }).map((route) => [route.cidr, route])),
      services: new Map(randomServices(names, { chance, int, pick }).map((service) => [service.id, service])),
    },
  };
}

function routerAt(at: number, v6: boolean, asNumber: number) {
  return v6
    ? { peerIP: `fd99::${200 + at}`, asNumber }
    : { peerIP: `10.0.1.${200 + at}${at % 2 ? ":1179" : ""}`, asNumber };
}

function clusterNode(name: string, at: number, dual: boolean, local: boolean): ClusterNode {
  return {
    ...{ name, local, addressV4: `10.0.0.${at}`, addressV6: dual ? `fd00::${at}` : null },
    ...{ subnetV4: "10.0.0.0/24", subnetV6: dual ? "fd00::/64" : null, addresses: [], dataplane: null },
    vtep: { mac: "", addressV4: null, addressV6: null },
  };
}

type Dice = Pick<ReturnType<typeof dice>, "chance" | "int" | "pick">;

function randomRoutes(names: readonly string[], dual: boolean, { chance, int, pick }: Dice): Route[] {
  const common = { interfaceName: null, nextHop: null, encapsulation: "none" as const, sameSubnet: true };
  const more = { natOutgoing: true, inPool: true, tunnel: false };
  const block = (cidr: string): Route => {
    const node = pick(names);
    return { ...common, ...more, cidr, node, kind: node === "n1" ? "blackhole" : "remote-workload" };
  };
  const blocks = Array.from({ length: 8 }, (_, at) => block(`10.${244 + (at % 2)}.${at}.0/26`));
  const alone = chance(0.5)
    ? [{ ...block(`10.244.${int(0, 7)}.${int(0, 200)}/32`), node: "n1", kind: "local-workload" as const }]
    : [];
  return [...blocks, ...(dual ? [block("fd10::/122"), block("fd10::40/122")] : []), ...alone];
}

function randomServices(names: readonly string[], { chance, int, pick }: Dice): ServicePort[] {
  return Array.from({ length: int(0, 4) }, (_, at) => {
    const local = chance(0.6);
    const clusterBackends = Array.from({ length: int(0, 3) }, (_, i) => {
      const node = pick(names);
      return { address: `10.244.9.${i}`, port: 80, node, local: node === "n1" };
    });
    const readyHere = local && clusterBackends.some((backend) => backend.local);
    return plainServicePort({
      id: `default/s${at}:/tcp/4`,
      clusterAddress: `10.96.0.${at + 5}`,
      loadBalancerAddresses: chance(0.5) ? [`203.0.113.${at}`] : [],
      ...(local ? { externalLocal: true } : {}),
      ...(readyHere ? { readyHere: true as const } : {}),
      clusterBackends,
    });
  });
}

/** By session, the routes that node n1 announces, each with its communities: written straight from the objects. */
export function meaningOf(world: BgpInputs): Map<string, string[]> {
  const announced = announcedBy(world);
  const sessions = new Map<string, string[]>();
  for (const { name, family, filters } of sessionsIn(world)) {
    const rules = filters.flatMap((filter) => {
      const spec = world.filters.find(({ metadata }) => metadata.name === filter)!.spec;
      return (family === 4 ? spec.exportV4 : spec.exportV6) ?? [];
    });
    const passes = (net: string) => (rules.find((rule) => matches(rule, net))?.action ?? "Accept") === "Accept";
    const routes = announced.filter((net) => net.includes(":") === (family === 6) && passes(net));
    sessions.set(name, routes.map((net) => [net, ...communitiesAt(world, net)].join(" ")).sort());
  }
  return sessions;
}

interface MeantSession {
  name: string;
  family: 4 | 6;
  filters: readonly string[];
}

function sessionsIn(world: BgpInputs): MeantSession[] {
  const { spec } = world.configurations[0]!;
  const found = new Map<string, MeantSession & { address: string }>();
  const own = world.nodes[0]!;
  const isReflector = (name: string) =>
    world.nodes.find(({ metadata }) => metadata.name === name)!.metadata.annotations?.[
      NODE_BGP.routeReflectorClusterId
    ] !== undefined;
  const listen = spec.listenPort ?? 179;
  const add = (prefix: string, address: string, port: number, filters: readonly string[]) => {
    const name = `${prefix}_${address.replaceAll(/[.:]/g, "_")}${port === 179 ? "" : `_${port}`}`;
    const family = address.includes(":") ? 6 : 4;
    if (!found.has(`${address} ${port}`)) found.set(`${address} ${port}`, { name, family, filters, address });
  };
  const addresses = (name: string) => {
    const { addressV4, addressV6 } = world.model.nodes.get(name)!;
    return [addressV4, addressV6].flatMap((address) => address ?? []);
  };
  for (const { spec: peer } of world.peers) {
    const here = (name: string) => {
      const labels = world.nodes.find(({ metadata }) => metadata.name === name)!.metadata.labels!;
      return peer.node === undefined ? peer.nodeSelector === undefined || labels["rack"] === "a" : peer.node === name;
    };
    const there = ({ metadata }: (typeof world.nodes)[number]) => metadata.labels?.["role"] === "reflector";
    if (peer.peerIP !== undefined) {
      const [, address = "", port = "179"] = /^(.*?\.\d+)(?::(\d+))?$/.exec(peer.peerIP) ?? ["", peer.peerIP];
      if (here("n1")) add("peer", address, Number(port), peer.filters ?? []);
      continue;
    }
    for (const other of world.nodes.slice(1)) {
      const { name } = other.metadata;
      if (!((here("n1") && there(other)) || (there(own) && here(name)))) continue;
      for (const address of addresses(name)) add("node", address, listen, peer.filters ?? []);
    }
  }
  if (spec.nodeToNodeMeshEnabled !== false && !isReflector("n1")) {
    for (const { metadata } of world.nodes.slice(1)) {
      if (isReflector(metadata.name)) continue;
      for (const address of addresses(metadata.name)) {
        if (![...found.values()].some((one) => one.address === address)) add("mesh", address, listen, []);
      }
    }
  }
  return [...found.values()];
}

function announcedBy(world: BgpInputs): string[] {
  const { spec } = world.configurations[0]!;
  const within = (net: string, around: string) => {
    const [a, b] = [parseCidr(around)!, parseCidr(net)!];
    return a.length <= b.length && overlaps(a, b);
  };
  const exported = world.pools.filter((pool) => !pool.spec.disableBGPExport).map((pool) => pool.spec.cidr);
  const own = [...world.model.routes.values()].filter(({ node }) => node === "n1");
  const blocks = own.filter(({ kind }) => kind === "blackhole").map(({ cidr }) => cidr);
  const borrowed = own
    .filter(({ kind, cidr }) => kind === "local-workload" && !blocks.some((block) => within(cidr, block)))
    .map(({ cidr }) => cidr);
  const pods = [...blocks, ...borrowed].filter((net) => exported.some((pool) => within(net, pool)));
  const ranges = [...(spec.serviceClusterIPs ?? []), ...(spec.serviceLoadBalancerIPs ?? [])].map(({ cidr }) => cidr);
  const isGone = (name: string) =>
    (world.nodes.find(({ metadata }) => metadata.name === name) as unknown as { spec: { unschedulable?: boolean } })
      .spec.unschedulable === true;
  const leaves = world.switching || isGone("n1");
  const stays = (names: readonly (string | null)[]) =>
    names.some((name) => name !== null && name !== "n1" && !isGone(name));
  const whole = leaves && stays(world.nodes.map(({ metadata }) => metadata.name)) ? [] : ranges;
  const alone = [...world.model.services.values()].flatMap((service) => {
    if (!service.readyHere || (leaves && stays(service.clusterBackends.map(({ node }) => node)))) return [];
    const inRange = (address: string | null, of: readonly { cidr: string }[] | undefined) =>
      address !== null && (of ?? []).some(({ cidr }) => contains(parseCidr(cidr)!, parseAddress(address)!))
        ? [`${address}/32`]
        : [];
    return [
      ...inRange(service.clusterAddress, spec.serviceClusterIPs),
      ...service.loadBalancerAddresses.flatMap((address) => inRange(address, spec.serviceLoadBalancerIPs)),
    ];
  });
  return [...new Set([...pods, ...whole, ...alone])];
}

/** What a node announces itself was not learned, so no rule for RemotePeers matches it. */
function matches(rule: Rule, net: string): boolean {
  if (rule.source !== undefined) return false;
  if (rule.cidr === undefined) return true;
  const [around, route] = [parseCidr(rule.cidr)!, parseCidr(net)!];
  const equal = around.base === route.base && around.length === route.length && around.family === route.family;
  const { min = 0, max = 128 } = rule.prefixLength ?? {};
  const inside = overlaps(around, route) && route.length >= around.length && route.length >= min && route.length <= max;
  return { Equal: equal, NotEqual: !equal, In: inside, NotIn: !inside }[rule.matchOperator!];
}

function communitiesAt(world: BgpInputs, net: string): string[] {
  const { communities = [], prefixAdvertisements = [] } = world.configurations[0]!.spec;
  const values = prefixAdvertisements
    .filter(
      ({ cidr }) => overlaps(parseCidr(cidr)!, parseCidr(net)!) && parseCidr(cidr)!.length <= parseCidr(net)!.length,
    )
    .flatMap((one) => one.communities.map((text) => communities.find(({ name }) => name === text)?.value ?? text));
  return [...new Set(values)].sort();
}

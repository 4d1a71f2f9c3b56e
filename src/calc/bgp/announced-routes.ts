import type { KubeObject } from "../../api/object.ts";
import type { BGPConfiguration } from "../../api/resources/bgp-configuration.ts";
import type { IPPool } from "../../api/resources/ip-pool.ts";
import { type Cidr, contains, formatCidr, overlaps, parseAddress, parseCidr } from "../../kit/ip.ts";
import type { Net, ServicePort } from "../model.ts";
import { hostNet, toNet } from "../nets.ts";
import type { BgpInputs } from "./bgp-inputs.ts";
import type { BgpModel, BgpPool, ClusterBlock } from "./bgp-model.ts";

type Configuration = BGPConfiguration["spec"];

/** What of the cluster the node announces, and what it knows of the other nodes' part. */
export function routesOfNode(
  inputs: BgpInputs,
  configuration: Configuration,
): Pick<BgpModel, "announced" | "passedOn" | "pools" | "blocks" | "serviceRanges"> {
  const pools = inputs.pools.flatMap(poolOf).sort((a, b) => (a.net < b.net ? -1 : 1));
  const exported = inputs.pools
    .filter(({ spec }) => !spec.disableBGPExport)
    .flatMap((pool) => toNet(pool.spec.cidr) ?? []);
  const ranges = rangesOf(configuration);
  const serviceRanges = [...new Set(Object.values(ranges).flat())].sort();
  const announced = new Set([...ownBlocks(inputs, exported.map(cidrOf)), ...servicesOf(inputs, ranges)]);
  return {
    announced: [...announced].sort(),
    passedOn: [...new Set([...exported, ...serviceRanges])].sort(),
    pools,
    blocks: blocksOfOthers(inputs, pools),
    serviceRanges,
  };
}

/** Its blocks whole, and each address that a pod of it has out of another node's block. */
function ownBlocks({ model, node }: BgpInputs, exported: readonly Cidr[]): Net[] {
  const isExported = (net: Cidr) => exported.some((pool) => pool.length <= net.length && overlaps(pool, net));
  const routes = [...model.routes.values()].filter((route) => route.node === node);
  const blocks = routes.filter(({ kind }) => kind === "blackhole").map(({ cidr }) => cidrOf(cidr));
  const alone = routes
    .filter(({ kind }) => kind === "local-workload")
    .map(({ cidr }) => cidrOf(cidr))
    .filter((net) => !blocks.some((block) => overlaps(block, net)));
  return [...blocks, ...alone].filter(isExported).map(formatCidr);
}

function blocksOfOthers({ model, node }: BgpInputs, pools: readonly BgpPool[]): ClusterBlock[] {
  const direct = pools.filter(({ tunnelled }) => !tunnelled).map(({ net }) => cidrOf(net));
  return [...model.routes.values()]
    .filter((route) => route.kind === "remote-workload" && route.node !== null && route.node !== node)
    .filter(({ cidr }) => direct.some((pool) => overlaps(pool, cidrOf(cidr))))
    .flatMap(({ cidr, node: owner }) => {
      const known = model.nodes.get(owner as string);
      const nextHop = cidr.includes(":") ? known?.addressV6 : known?.addressV4;
      return nextHop ? [{ net: cidr, nextHop }] : [];
    })
    .sort((a, b) => (a.net < b.net ? -1 : 1));
}

type Ranges = Record<"cluster" | "external" | "loadBalancer", Net[]>;

function rangesOf(configuration: Configuration): Ranges {
  const nets = (entries: readonly { cidr: string }[] | undefined) =>
    (entries ?? []).flatMap(({ cidr }) => toNet(cidr) ?? []);
  return {
    cluster: nets(configuration.serviceClusterIPs),
    external: nets(configuration.serviceExternalIPs),
    loadBalancer: nets(configuration.serviceLoadBalancerIPs),
  };
}

/**
 * The ranges whole, from every node; addresses whose traffic stays local by themselves, where there is a ready backend. A node that is drained or
 * switched announces none of it while another node does.
 */
function servicesOf(inputs: BgpInputs, ranges: Ranges): Net[] {
  const leaving = new Set(inputs.nodes.filter(isLeaving).map(({ metadata }) => metadata.name));
  const isLeft = inputs.switching || leaving.has(inputs.node);
  const others = inputs.nodes.filter(({ metadata }) => metadata.name !== inputs.node && !leaving.has(metadata.name));
  const whole = isLeft && others.length > 0 ? [] : Object.values(ranges).flat();
  const cidrs = {
    cluster: ranges.cluster.map(cidrOf),
    external: ranges.external.map(cidrOf),
    loadBalancer: ranges.loadBalancer.map(cidrOf),
  };
  const alone = [...inputs.model.services.values()].flatMap((service) => {
    if (!service.readyHere) return [];
    const elsewhere = service.clusterBackends.some(
      ({ node }) => node !== null && node !== inputs.node && !leaving.has(node),
    );
    return isLeft && elsewhere ? [] : localAddresses(service, cidrs);
  });
  return [...whole, ...alone];
}

function localAddresses(service: ServicePort, ranges: Record<keyof Ranges, readonly Cidr[]>): Net[] {
  const inside = (addresses: readonly string[], of: readonly Cidr[]) =>
    addresses.flatMap((text) => {
      const address = parseAddress(text);
      return address && of.some((range) => contains(range, address)) ? [hostNet(address)] : [];
    });
  const cluster = service.clusterAddress === null ? [] : [service.clusterAddress];
  return [
    ...inside(cluster, ranges.cluster),
    ...(service.externalLocal ? inside(service.externalAddresses, ranges.external) : []),
    ...(service.externalLocal ? inside(service.loadBalancerAddresses, ranges.loadBalancer) : []),
  ];
}

const EXCLUDED = "node.kubernetes.io/exclude-from-external-load-balancers";

/** Drained, or about to go, or kept out of balancing. */
function isLeaving({ metadata, spec }: KubeObject & { spec?: unknown }): boolean {
  const { unschedulable = false } = (spec ?? {}) as { unschedulable?: boolean };
  return unschedulable || metadata.deletionTimestamp !== undefined || metadata.labels?.[EXCLUDED] !== undefined;
}

function poolOf({ spec }: IPPool): BgpPool[] {
  const net = toNet(spec.cidr);
  if (net === undefined) return [];
  const blockSize = spec.blockSize ?? (net.includes(":") ? 122 : 26);
  return [{ net, blockSize, tunnelled: [spec.vxlanMode, spec.ipipMode].some((mode) => (mode ?? "Never") !== "Never") }];
}

function cidrOf(net: Net): Cidr {
  return parseCidr(net)!;
}

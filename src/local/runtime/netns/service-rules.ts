import type { EndpointSlice, Service } from "../../controllers/workload-types.ts";

/** The table of the stand-in for the service proxy, one for both families. */
const SERVICE_TABLE = "inet kube-proxy";

interface Backend {
  address: string;
  port: number;
}

/**
 * What a service proxy makes of services, as one transaction for nftables: cluster IPs and node ports of TCP and UDP, to a ready endpoint at
 * random. Connections from outside to an endpoint elsewhere look as if they came from the node, or the answers would take another way back.
 */
export function serviceRules(services: readonly Service[], slices: readonly EndpointSlice[]): string {
  const byService = new Map<string, EndpointSlice[]>();
  for (const slice of slices) byService.set(serviceOf(slice), [...(byService.get(serviceOf(slice)) ?? []), slice]);
  const lines = services.flatMap((service) => {
    const key = `${service.metadata.namespace}/${service.metadata.name}`;
    return linesOf(service, byService.get(key) ?? []);
  });
  return [
    `table ${SERVICE_TABLE}`,
    `delete table ${SERVICE_TABLE}`,
    `table ${SERVICE_TABLE} {`,
    "chain services {",
    ...lines,
    "}",
    "chain prerouting { type nat hook prerouting priority dstnat; jump services; }",
    "chain output { type nat hook output priority -100; jump services; }",
    "chain postrouting { type nat hook postrouting priority srcnat; meta mark & 0x4000 == 0x4000 masquerade; }",
    "}",
    "",
  ].join("\n");
}

function serviceOf({ metadata }: EndpointSlice): string {
  return `${metadata.namespace}/${metadata.labels?.["kubernetes.io/service-name"]}`;
}

function linesOf({ spec }: Service, slices: readonly EndpointSlice[]): string[] {
  const clusterIPs = (spec.clusterIPs ?? [spec.clusterIP]).filter((ip) => ip && ip !== "None") as string[];
  return (spec.ports ?? []).flatMap(({ name = "", port, protocol = "TCP", nodePort }) => {
    const l4 = protocol.toLowerCase();
    if (l4 !== "tcp" && l4 !== "udp") return [];
    return clusterIPs.flatMap((ip) => {
      const family = ip.includes(":") ? "ip6" : "ip";
      const to = target(family, backendsOf(slices, family, name));
      if (to === undefined) return [];
      const mark = "meta mark set meta mark | 0x4000";
      const local = `meta nfproto ${family === "ip" ? "ipv4" : "ipv6"} fib daddr type local`;
      return [
        `${family} daddr ${ip} ${l4} dport ${port} ${to}`,
        ...(nodePort ? [`${local} ${l4} dport ${nodePort} ${mark} ${to}`] : []),
      ];
    });
  });
}

function backendsOf(slices: readonly EndpointSlice[], family: "ip" | "ip6", portName: string): Backend[] {
  const type = family === "ip" ? "IPv4" : "IPv6";
  return slices
    .filter(({ addressType }) => addressType === type)
    .flatMap(({ ports, endpoints }) => {
      const port = ports?.find(({ name = "" }) => name === portName)?.port;
      if (port === undefined) return [];
      const ready = (endpoints ?? []).filter(({ conditions }) => conditions?.ready !== false);
      return ready.flatMap(({ addresses }) => addresses.slice(0, 1).map((address) => ({ address, port })));
    });
}

/** Undefined where nobody answers: the packet goes on to the router, which knows no way. */
function target(family: "ip" | "ip6", backends: readonly Backend[]): string | undefined {
  const [first, ...others] = backends;
  if (!first) return undefined;
  const shown = ({ address, port }: Backend) => `${address} . ${port}`;
  if (others.length === 0) {
    const address = family === "ip6" ? `[${first.address}]` : first.address;
    return `dnat ${family} to ${address}:${first.port}`;
  }
  const choices = backends.map((backend, i) => `${i} : ${shown(backend)}`).join(", ");
  return `dnat ${family} addr . port to numgen random mod ${backends.length} map { ${choices} }`;
}

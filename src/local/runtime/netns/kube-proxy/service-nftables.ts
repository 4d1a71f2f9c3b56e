import type { ServiceBackend, ServicePort } from "../../../../calc/model.ts";
import {
  allBackends,
  backendObject,
  type ServiceName,
  serviceName,
  serviceObject,
  socketText,
} from "../../../../dataplane/kube-proxy/proxy-names.ts";
import { MASQUERADE_MARK, type ProxyNode } from "./proxy-node.ts";
import { type Policy, type ServiceChoice, serviceChoice } from "./service-choice.ts";

/** What one service port is in the table of its family, in the shape of the orchestrator's own proxy in its nftables mode. */
export interface ServiceObjects {
  family: "ip" | "ip6";
  /** Sets of clients that stay with a backend, by name: how long. */
  affinities: ReadonlyMap<string, number>;
  chains: ReadonlyMap<string, readonly string[]>;
  /** Elements of the table's sets and maps, by `SET KEY`: as nft reads it, with what it leads to. */
  elements: ReadonlyMap<string, Element>;
}

interface Element {
  set: string;
  key: string;
  text: string;
}

export const SERVICE_TABLE = "kube-proxy";

export function serviceObjects(row: ServicePort, node: ProxyNode): ServiceObjects {
  return new ServiceRenderer(row, node).render();
}

/** The table of one family without any service. */
export function emptyTable(family: "ip" | "ip6", node: ProxyNode): string {
  const address = family === "ip" ? "ipv4_addr" : "ipv6_addr";
  const place = `${address} . inet_proto . inet_service`;
  const nodePortAddresses = node.addresses.filter((one) => one.includes(":") === (family === "ip6"));
  const elements = nodePortAddresses.length > 0 ? `elements = { ${nodePortAddresses.join(", ")} }` : "";
  const to = `${family} daddr . meta l4proto . th dport`;
  return `table ${family} ${SERVICE_TABLE} {
comment "rules for kube-proxy"
set cluster-ips { type ${address}; comment "Active ClusterIPs"; }
set nodeport-ips { type ${address}; comment "IPs that accept NodePort traffic"; ${elements} }
map no-endpoint-services { type ${place} : verdict; comment "vmap to drop or reject packets to services with no endpoints"; }
map no-endpoint-nodeports { type inet_proto . inet_service : verdict; comment "vmap to drop or reject packets to service nodeports with no endpoints"; }
map firewall-ips { type ${place} : verdict; comment "destinations that are subject to LoadBalancerSourceRanges"; }
map service-ips { type ${place} : verdict; comment "ClusterIP, ExternalIP and LoadBalancer IP traffic"; }
map service-nodeports { type inet_proto . inet_service : verdict; comment "NodePort traffic"; }
chain reject-chain { reject; }
chain mark-for-masquerade { meta mark set meta mark | ${MASQUERADE_MARK}; }
chain masquerading {
meta mark & ${MASQUERADE_MARK} == 0 return
meta mark set meta mark ^ ${MASQUERADE_MARK}
masquerade fully-random
}
chain services {
${to} vmap @service-ips
${family} daddr @nodeport-ips meta l4proto . th dport vmap @service-nodeports
}
chain service-endpoints-check { ${to} vmap @no-endpoint-services; }
chain nodeport-endpoints-check { ${family} daddr @nodeport-ips meta l4proto . th dport vmap @no-endpoint-nodeports; }
chain firewall-check { ${to} vmap @firewall-ips; }
chain cluster-ips-check { ${family} daddr @cluster-ips reject comment "Reject traffic to invalid ports of ClusterIPs"; }
chain filter-prerouting { type filter hook prerouting priority -110; ct state new jump firewall-check; }
chain filter-input { type filter hook input priority -110; ct state new jump nodeport-endpoints-check; ct state new jump service-endpoints-check; }
chain filter-forward { type filter hook forward priority -110; ct state new jump service-endpoints-check; ct state new jump cluster-ips-check; }
chain filter-output { type filter hook output priority -110; ct state new jump service-endpoints-check; ct state new jump firewall-check; }
chain filter-output-post-dnat { type filter hook output priority -90; ct state new jump cluster-ips-check; }
chain nat-prerouting { type nat hook prerouting priority -100; jump services; }
chain nat-output { type nat hook output priority -100; jump services; }
chain nat-postrouting { type nat hook postrouting priority 100; jump masquerading; }
}
`;
}

class ServiceRenderer {
  readonly #row: ServicePort;
  readonly #name: ServiceName;
  readonly #ip: "ip" | "ip6";
  readonly #clusterCidr: string | undefined;
  readonly #choice: ServiceChoice;
  readonly #affinities = new Map<string, number>();
  readonly #chains = new Map<string, string[]>();
  readonly #elements = new Map<string, Element>();

  constructor(row: ServicePort, node: ProxyNode) {
    this.#row = row;
    this.#name = serviceName(row);
    this.#ip = row.family === 4 ? "ip" : "ip6";
    this.#clusterCidr = node.clusterCidrs.find((cidr) => cidr.includes(":") === (row.family === 6));
    this.#choice = serviceChoice(row);
  }

  render(): ServiceObjects {
    this.#places();
    this.#firewall();
    this.#outsideChain();
    this.#policyChains();
    this.#backends();
    return { family: this.#ip, affinities: this.#affinities, chains: this.#chains, elements: this.#elements };
  }

  #backendName(kind: "endpoint" | "affinity", backend: ServiceBackend): string {
    return backendObject(kind, this.#row, backend);
  }

  get #outsideBackends(): readonly ServiceBackend[] {
    return this.#choice.backends[this.#choice.outside];
  }

  #chainOf(policy: Policy): string {
    return serviceObject(policy === "Local" ? "local" : "service", this.#row);
  }

  #element(set: string, key: string, leadsTo: string): void {
    const text = `${key} comment "${this.#name.shown}" : ${leadsTo}`;
    this.#elements.set(`${set} ${key}`, { set, key, text });
  }

  #at(address: string): string {
    return `${address} . ${this.#name.protocol} . ${this.#row.port}`;
  }

  /** Without any backend the client is refused at once; without a local one the packet is dropped, and the load balancer stops sending here. */
  get #nobody(): string {
    return this.#row.anyBackends ? "drop" : "goto reject-chain";
  }

  #places(): void {
    const { clusterAddress, externalAddresses, loadBalancerAddresses, nodePort } = this.#row;
    const { inside, backends } = this.#choice;
    if (clusterAddress !== null) {
      const chain = this.#chainOf(inside);
      if (backends[inside].length > 0) this.#element("service-ips", this.#at(clusterAddress), `goto ${chain}`);
      else this.#element("no-endpoint-services", this.#at(clusterAddress), this.#nobody);
    }
    const outside = serviceObject("external", this.#row);
    for (const address of [...externalAddresses, ...loadBalancerAddresses]) {
      if (this.#choice.reachable) this.#element("service-ips", this.#at(address), `goto ${outside}`);
      if (this.#outsideBackends.length === 0) {
        this.#element("no-endpoint-services", this.#at(address), this.#nobody);
      }
    }
    if (nodePort === null) return;
    const key = `${this.#name.protocol} . ${nodePort}`;
    if (this.#choice.reachable) this.#element("service-nodeports", key, `goto ${outside}`);
    if (this.#outsideBackends.length === 0) this.#element("no-endpoint-nodeports", key, this.#nobody);
  }

  #firewall(): void {
    const { sourceRanges, loadBalancerAddresses } = this.#row;
    if (sourceRanges === null || loadBalancerAddresses.length === 0) return;
    const chain = serviceObject("firewall", this.#row);
    const others = sourceRanges.length === 0 ? "" : `${this.#ip} saddr != { ${sourceRanges.join(", ")} } `;
    this.#chains.set(chain, [`${others}drop`]);
    for (const address of loadBalancerAddresses) this.#element("firewall-ips", this.#at(address), `goto ${chain}`);
  }

  #outsideChain(): void {
    if (!this.#choice.isExternal || !this.#choice.reachable) return;
    const rules: string[] = [];
    if (!this.#row.externalLocal) rules.push("jump mark-for-masquerade");
    else if (this.#row.clusterBackends.length > 0) {
      // Pods and the node itself need no address kept: they reach every backend.
      const everybody = serviceObject("service", this.#row);
      if (this.#clusterCidr) {
        rules.push(`${this.#ip} saddr ${this.#clusterCidr} goto ${everybody} comment "short-circuit pod traffic"`);
      }
      const local = "fib saddr type local";
      rules.push(`${local} jump mark-for-masquerade comment "masquerade local traffic"`);
      rules.push(`${local} goto ${everybody} comment "short-circuit local traffic"`);
    }
    if (this.#outsideBackends.length > 0) rules.push(`goto ${this.#chainOf(this.#choice.outside)}`);
    this.#chains.set(serviceObject("external", this.#row), rules);
  }

  #policyChains(): void {
    const { clusterAddress } = this.#row;
    const { inside, inUse, backends } = this.#choice;
    if (clusterAddress !== null) {
      // Of the service, not the port: its other ports claim the same.
      const { namespace, name } = this.#name;
      const text = `${clusterAddress} comment "${namespace}/${name}"`;
      this.#elements.set(`cluster-ips ${clusterAddress}`, { set: "cluster-ips", key: clusterAddress, text });
    }
    for (const policy of inUse) {
      const rules: string[] = [];
      if (clusterAddress !== null && this.#clusterCidr && policy === inside) {
        const to = `${this.#ip} daddr ${clusterAddress} ${this.#name.protocol} dport ${this.#row.port}`;
        rules.push(`${to} ${this.#ip} saddr != ${this.#clusterCidr} jump mark-for-masquerade`);
      }
      this.#chains.set(this.#chainOf(policy), [...rules, ...this.#choose(backends[policy])]);
    }
  }

  #choose(backends: readonly ServiceBackend[]): string[] {
    const remembered =
      this.#row.affinitySeconds === 0
        ? []
        : backends.map((one) => {
            const clients = `@${this.#backendName("affinity", one)}`;
            return `${this.#ip} saddr ${clients} goto ${this.#backendName("endpoint", one)}`;
          });
    const all = backends.map((one, i) => `${i} : goto ${this.#backendName("endpoint", one)}`);
    return [...remembered, `numgen random mod ${backends.length} vmap { ${all.join(", ")} }`];
  }

  #backends(): void {
    const { affinitySeconds } = this.#row;
    for (const backend of allBackends(this.#row)) {
      const affinity = this.#backendName("affinity", backend);
      if (affinitySeconds > 0) this.#affinities.set(affinity, affinitySeconds);
      this.#chains.set(this.#backendName("endpoint", backend), [
        `${this.#ip} saddr ${backend.address} jump mark-for-masquerade`,
        ...(affinitySeconds > 0 ? [`update @${affinity} { ${this.#ip} saddr }`] : []),
        `meta l4proto ${this.#name.protocol} dnat to ${socketText(backend)}`,
      ]);
    }
  }
}

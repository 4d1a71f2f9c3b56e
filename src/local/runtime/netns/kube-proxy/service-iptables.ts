import type { ServiceBackend, ServicePort } from "../../../../calc/model.ts";
import {
  allBackends,
  backendChain,
  type ServiceName,
  serviceName,
  shortHash,
  socketText,
} from "../../../../dataplane/kube-proxy/proxy-names.ts";
import { MASQUERADE_MARK, type ProxyNode } from "./proxy-node.ts";
import { type Policy, type ServiceChoice, serviceChoice } from "./service-choice.ts";

/**
 * Services as chains and rules of iptables, in the shape of the orchestrator's own proxy: the same chains, names, marks, matches and order,
 * so that code that detects kube-proxy's rules, or runs next to them, meets here what it meets on a cluster.
 */
export interface RestoreQuestion {
  family: 4 | 6;
  rows: readonly ServicePort[];
  node: ProxyNode;
  /** What `iptables-save` says there is. */
  saved: string;
}

const { svc, svl, fw, ext } = {
  svc: "KUBE-SVC-",
  svl: "KUBE-SVL-",
  fw: "KUBE-FW-",
  ext: "KUBE-EXT-",
};
const OF_A_SERVICE = /^:(KUBE-(?:SVC|SVL|SEP|FW|EXT)-\S+) /gm;
const MASQUERADE_BITS = `${MASQUERADE_MARK}/${MASQUERADE_MARK}`;
const CHAINS = {
  filter: [
    ...["KUBE-SERVICES", "KUBE-EXTERNAL-SERVICES", "KUBE-FORWARD", "KUBE-NODEPORTS"],
    ...["KUBE-PROXY-FIREWALL", "KUBE-FIREWALL", "KUBE-PROXY-CANARY"],
  ],
  nat: ["KUBE-SERVICES", "KUBE-POSTROUTING", "KUBE-NODEPORTS", "KUBE-MARK-MASQ", "KUBE-PROXY-CANARY"],
  mangle: ["KUBE-PROXY-CANARY"],
} as const;
const NEW = "-m conntrack --ctstate NEW";
const PORTALS = "kubernetes service portals";
const OUTSIDE_PORTALS = "kubernetes externally-visible service portals";
const FIREWALL = "kubernetes load balancer firewall";

/** From the kernel's own chains into the proxy's; each is put first where it is missing. */
const JUMPS = {
  filter: [
    ["INPUT", "KUBE-EXTERNAL-SERVICES", OUTSIDE_PORTALS, NEW],
    ["FORWARD", "KUBE-EXTERNAL-SERVICES", OUTSIDE_PORTALS, NEW],
    ["INPUT", "KUBE-NODEPORTS", "kubernetes health check service ports", ""],
    ["FORWARD", "KUBE-SERVICES", PORTALS, NEW],
    ["OUTPUT", "KUBE-SERVICES", PORTALS, NEW],
    ["FORWARD", "KUBE-FORWARD", "kubernetes forwarding rules", ""],
    ["INPUT", "KUBE-PROXY-FIREWALL", FIREWALL, NEW],
    ["OUTPUT", "KUBE-PROXY-FIREWALL", FIREWALL, NEW],
    ["FORWARD", "KUBE-PROXY-FIREWALL", FIREWALL, NEW],
    ["INPUT", "KUBE-FIREWALL", "", ""],
    ["OUTPUT", "KUBE-FIREWALL", "", ""],
  ],
  nat: [
    ["OUTPUT", "KUBE-SERVICES", PORTALS, ""],
    ["PREROUTING", "KUBE-SERVICES", PORTALS, ""],
    ["POSTROUTING", "KUBE-POSTROUTING", "kubernetes postrouting rules", ""],
  ],
} as const;

/** Whether the rules are all there still: kube-proxy checks for a chain that only a flush would remove, in every table. */
export function hasCanaries(saved: string): boolean {
  return (saved.match(/^:KUBE-PROXY-CANARY /gm) ?? []).length === Object.keys(CHAINS).length;
}

/** Text for `iptables-restore --noflush`, before the other: jumps that are missing, with their chains. kube-proxy adds them apart from its rules. */
export function jumpsText(saved: string): string | undefined {
  const savedTables = tablesOf(saved);
  const lines = (["filter", "nat"] as const).flatMap((table) => {
    const there = savedTables.get(table) ?? "";
    const jumps = jumpLines(table, there);
    // A chain that is declared is emptied.
    const chains = CHAINS[table].filter((name) => !there.includes(`:${name} `)).map((name) => `:${name} - [0:0]`);
    return jumps.length === 0 ? [] : [`*${table}`, ...chains, ...jumps, "COMMIT"];
  });
  return lines.length === 0 ? undefined : [...lines, ""].join("\n");
}

/** Text for `iptables-restore --noflush`: all rules of Services, also those that did not change. */
export function restoreText({ family, rows, node, saved }: RestoreQuestion): string {
  const own = rows.filter((row) => row.family === family).map((row) => serviceRules(row, node));
  const chains = new Set(own.flatMap((one) => one.chains));
  const gone = [...saved.matchAll(OF_A_SERVICE)].flatMap(([, name = ""]) => (chains.has(name) ? [] : [name]));
  const filter = [
    ...own.flatMap((one) => one.filter),
    "-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP",
    `-A KUBE-FORWARD -m comment --comment "kubernetes forwarding rules" -m mark --mark ${MASQUERADE_BITS} -j ACCEPT`,
    '-A KUBE-FORWARD -m comment --comment "kubernetes forwarding conntrack rule" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT',
    ...(family === 4
      ? [
          '-A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment "block incoming localnet connections" -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP',
        ]
      : []),
  ];
  const nat = [
    `-A KUBE-POSTROUTING -m mark ! --mark ${MASQUERADE_BITS} -j RETURN`,
    `-A KUBE-POSTROUTING -j MARK --xor-mark ${MASQUERADE_MARK}`,
    '-A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully',
    `-A KUBE-MARK-MASQ -j MARK --or-mark ${MASQUERADE_MARK}`,
    ...own.flatMap((one) => one.nat),
    '-A KUBE-SERVICES -m comment --comment "kubernetes service nodeports; NOTE: this must be the last rule in this chain" -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS',
    ...gone.map((name) => `-X ${name}`),
  ];
  return [
    ...section("mangle", [], []),
    ...section("filter", [], filter),
    ...section("nat", [...chains, ...gone], nat),
    "",
  ].join("\n");
}

function section(table: keyof typeof CHAINS, chains: readonly string[], lines: readonly string[]): string[] {
  return [`*${table}`, ...[...CHAINS[table], ...chains].map((name) => `:${name} - [0:0]`), ...lines, "COMMIT"];
}

function tablesOf(saved: string): Map<string, string> {
  return new Map([...saved.matchAll(/^\*(\w+)\n([\s\S]*?)^COMMIT/gm)].map(([, name = "", body = ""]) => [name, body]));
}

function jumpLines(table: keyof typeof JUMPS, saved: string): string[] {
  return JUMPS[table].flatMap(([from, to, comment, match]) => {
    const isThere = saved.split("\n").some((line) => line.startsWith(`-A ${from} `) && line.endsWith(`-j ${to}`));
    const words = comment === "" ? [] : [`-m comment --comment "${comment}"`];
    return isThere ? [] : [["-I", from, "1", match, ...words, "-j", to].filter(Boolean).join(" ")];
  });
}

interface ServiceRules {
  chains: string[];
  filter: string[];
  nat: string[];
}

function serviceRules(row: ServicePort, node: ProxyNode): ServiceRules {
  const name = serviceName(row);
  const hash = shortHash(`${name.shown}${name.protocol}`, 16);
  const names = { svc: svc + hash, svl: svl + hash, fw: fw + hash, ext: ext + hash };
  const writer = new ServiceWriter(row, name, names, node);
  return writer.write();
}

interface ChainNames {
  svc: string;
  svl: string;
  fw: string;
  ext: string;
}

/** The rules of one service port; in the order the proxy writes them. */
class ServiceWriter {
  readonly #row: ServicePort;
  readonly #name: ServiceName;
  readonly #chain: ChainNames;
  readonly #clusterCidr: string | undefined;
  readonly #choice: ServiceChoice;
  readonly #rules: ServiceRules = { chains: [], filter: [], nat: [] };

  constructor(row: ServicePort, name: ServiceName, chain: ChainNames, node: ProxyNode) {
    this.#row = row;
    this.#name = name;
    this.#chain = chain;
    this.#clusterCidr = node.clusterCidrs.find((cidr) => cidr.includes(":") === (row.family === 6));
    this.#choice = serviceChoice(row);
  }

  write(): ServiceRules {
    this.#clusterAddress();
    this.#outsideAddresses();
    this.#nodePort();
    this.#healthCheck();
    this.#outsideChain();
    this.#policyChains();
    this.#backends();
    return this.#rules;
  }

  get #outsideBackends(): readonly ServiceBackend[] {
    return this.#choice.backends[this.#choice.outside];
  }

  #chainOf(policy: Policy): string {
    return policy === "Local" ? this.#chain.svl : this.#chain.svc;
  }

  #to(address: string): string {
    const { protocol } = this.#name;
    return `-m ${protocol} -p ${protocol} -d ${address} --dport ${this.#row.port}`;
  }

  /** Without any backend the client is refused at once; without a local one the packet is dropped, and the load balancer stops sending here. */
  #nobody(policy: Policy): string {
    const { shown } = this.#name;
    if (this.#row.anyBackends && policy === "Local") return `${comment(`${shown} has no local endpoints`)} -j DROP`;
    return `${comment(`${shown} has no endpoints`)} -j ${this.#row.anyBackends ? "DROP" : "REJECT"}`;
  }

  #clusterAddress(): void {
    const { clusterAddress } = this.#row;
    if (clusterAddress === null) return;
    const { inside, backends } = this.#choice;
    if (backends[inside].length === 0) {
      const nobody = this.#nobody(inside);
      this.#rules.filter.push(`-A KUBE-SERVICES ${this.#to(clusterAddress)} ${nobody}`);
      return;
    }
    const words = comment(`${this.#name.shown} cluster IP`);
    this.#rules.nat.push(`-A KUBE-SERVICES ${words} ${this.#to(clusterAddress)} -j ${this.#chainOf(inside)}`);
  }

  #outsideAddresses(): void {
    const { externalAddresses, loadBalancerAddresses, sourceRanges } = this.#row;
    const reached = (address: string, kind: string, chain: string) => {
      const words = comment(`${this.#name.shown} ${kind}`);
      if (this.#choice.reachable) this.#rules.nat.push(`-A KUBE-SERVICES ${words} ${this.#to(address)} -j ${chain}`);
      if (this.#outsideBackends.length === 0) this.#refuseOutside(this.#to(address));
    };
    for (const address of externalAddresses) reached(address, "external IP", this.#chain.ext);
    const checked = sourceRanges !== null && this.#choice.reachable;
    for (const address of loadBalancerAddresses) {
      reached(address, "loadbalancer IP", checked ? this.#chain.fw : this.#chain.ext);
      if (!checked) continue;
      const words = comment(`${this.#name.shown} traffic not accepted by ${this.#chain.fw}`);
      this.#rules.filter.push(`-A KUBE-PROXY-FIREWALL ${words} ${this.#to(address)} -j DROP`);
    }
    if (!checked || loadBalancerAddresses.length === 0) return;
    this.#rules.chains.push(this.#chain.fw);
    for (const range of sourceRanges) {
      const words = comment(`${this.#name.shown} loadbalancer IP`);
      this.#rules.nat.push(`-A ${this.#chain.fw} ${words} -s ${range} -j ${this.#chain.ext}`);
    }
    const rest = comment(`other traffic to ${this.#name.shown} will be dropped by KUBE-PROXY-FIREWALL`);
    this.#rules.nat.push(`-A ${this.#chain.fw} ${rest}`);
  }

  #refuseOutside(match: string): void {
    this.#rules.filter.push(`-A KUBE-EXTERNAL-SERVICES ${match} ${this.#nobody(this.#choice.outside)}`);
  }

  #nodePort(): void {
    const { nodePort } = this.#row;
    if (nodePort === null) return;
    const { protocol, shown } = this.#name;
    const match = `-m ${protocol} -p ${protocol} --dport ${nodePort}`;
    if (this.#choice.reachable) {
      this.#rules.nat.push(`-A KUBE-NODEPORTS ${comment(shown)} ${match} -j ${this.#chain.ext}`);
    }
    if (this.#outsideBackends.length === 0) this.#refuseOutside(`-m addrtype --dst-type LOCAL ${match}`);
  }

  #healthCheck(): void {
    const { healthCheckNodePort } = this.#row;
    if (healthCheckNodePort === null) return;
    const words = comment(`${this.#name.shown} health check node port`);
    this.#rules.filter.push(`-A KUBE-NODEPORTS ${words} -m tcp -p tcp --dport ${healthCheckNodePort} -j ACCEPT`);
  }

  #outsideChain(): void {
    if (!this.#choice.isExternal || !this.#choice.reachable) return;
    const { ext: chain, svc: cluster } = this.#chain;
    const { shown } = this.#name;
    const add = (rule: string) => this.#rules.nat.push(`-A ${chain} ${rule}`);
    this.#rules.chains.push(chain);
    if (!this.#row.externalLocal) {
      add(`${comment(`masquerade traffic for ${shown} external destinations`)} -j KUBE-MARK-MASQ`);
    } else if (this.#row.clusterBackends.length > 0) {
      // Pods and the node itself need no address kept: they reach every backend.
      if (this.#clusterCidr) {
        add(`${comment(`pod traffic for ${shown} external destinations`)} -s ${this.#clusterCidr} -j ${cluster}`);
      }
      const local = "-m addrtype --src-type LOCAL";
      add(`${comment(`masquerade LOCAL traffic for ${shown} external destinations`)} ${local} -j KUBE-MARK-MASQ`);
      add(`${comment(`route LOCAL traffic for ${shown} external destinations`)} ${local} -j ${cluster}`);
    }
    if (this.#outsideBackends.length > 0) add(`-j ${this.#chainOf(this.#choice.outside)}`);
  }

  #policyChains(): void {
    const { clusterAddress } = this.#row;
    const { inside, inUse, backends } = this.#choice;
    for (const policy of inUse) {
      const chain = this.#chainOf(policy);
      this.#rules.chains.push(chain);
      if (clusterAddress !== null && this.#clusterCidr && policy === inside) {
        const words = comment(`${this.#name.shown} cluster IP`);
        const from = `! -s ${this.#clusterCidr}`;
        this.#rules.nat.push(`-A ${chain} ${words} ${this.#to(clusterAddress)} ${from} -j KUBE-MARK-MASQ`);
      }
      this.#choose(chain, backends[policy]);
    }
  }

  #choose(chain: string, backends: readonly ServiceBackend[]): void {
    const { affinitySeconds } = this.#row;
    const add = (backend: ServiceBackend, match: string) => {
      const words = comment(`${this.#name.shown} -> ${socketText(backend)}`);
      this.#rules.nat.push(`-A ${chain} ${words} ${match}-j ${this.#backendChain(backend)}`);
    };
    if (affinitySeconds > 0) {
      for (const backend of backends) {
        const list = `--name ${this.#backendChain(backend)} --rcheck --seconds ${affinitySeconds} --reap`;
        add(backend, `-m recent ${list} `);
      }
    }
    for (const [i, backend] of backends.entries()) {
      const left = backends.length - i;
      const share = (1 / left).toFixed(10);
      add(backend, left === 1 ? "" : `-m statistic --mode random --probability ${share} `);
    }
  }

  #backendChain(backend: ServiceBackend): string {
    return backendChain(this.#row, backend);
  }

  #backends(): void {
    const { protocol, shown } = this.#name;
    for (const backend of allBackends(this.#row)) {
      const chain = this.#backendChain(backend);
      const recent = this.#row.affinitySeconds > 0 ? `-m recent --name ${chain} --set ` : "";
      this.#rules.chains.push(chain);
      this.#rules.nat.push(
        `-A ${chain} ${comment(shown)} -s ${backend.address} -j KUBE-MARK-MASQ`,
        `-A ${chain} ${comment(shown)} ${recent}-m ${protocol} -p ${protocol} -j DNAT --to-destination ${socketText(backend)}`,
      );
    }
  }
}

function comment(text: string): string {
  return `-m comment --comment "${text}"`;
}

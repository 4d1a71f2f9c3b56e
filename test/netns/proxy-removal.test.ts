import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { removeProxyRules } from "../../src/dataplane/kube-proxy/remove-proxy-rules.ts";
import {
  iptablesWriter,
  nftablesWriter,
  type ServiceRulesWriter,
} from "../../src/local/runtime/netns/kube-proxy/service-writers.ts";
import { whyNoPacketFilters } from "../kernel/why-not.ts";
import {
  backend,
  CLUSTER_CIDRS,
  kernel,
  NODE_ADDRESSES,
  rowsOf,
  type ServiceLab,
  servicePort,
  startServiceLab,
} from "./service-lab.ts";

const why = whyNoPacketFilters();
const node = { clusterCidrs: CLUSTER_CIDRS, addresses: NODE_ADDRESSES };

/** The mode, whose iptables it uses, and how many tables it writes to. */
const SHAPES: [string, (lab: ServiceLab) => ServiceRulesWriter, string[]][] = [
  ["iptables-nft", ({ run }) => iptablesWriter(run, node, "iptables-nft"), tables("iptables-nft")],
  ["iptables-legacy", ({ run }) => iptablesWriter(run, node, "iptables-legacy"), tables("iptables-legacy")],
  [
    "nftables",
    ({ node: netns }) => nftablesWriter(kernel.nft(netns), node),
    ["ip kube-proxy (nftables)", "ip6 kube-proxy (nftables)"],
  ],
];

function tables(how: string): string[] {
  return ["ip", "ip6"].flatMap((ip) => ["filter", "mangle", "nat"].map((table) => `${ip} ${table} (${how})`));
}

/** One of everything: addresses, ports, policies, ranges, affinity, nobody. */
const SERVICES = rowsOf(
  servicePort({ nodePort: 30080, affinitySeconds: 60 }),
  servicePort({ family: 6, nodePort: 30080, affinitySeconds: 60 }),
  servicePort({
    id: "shop/balanced:/tcp/4",
    clusterAddress: "10.96.0.11",
    loadBalancerAddresses: ["203.0.113.10"],
    sourceRanges: ["192.0.2.0/24"],
    externalLocal: true,
    localBackends: [backend("here", 4)],
    healthCheckNodePort: 32000,
  }),
  servicePort({ id: "shop/dns:/udp/4", protocol: 17, clusterAddress: "10.96.0.12", internalLocal: true }),
  servicePort({ id: "shop/empty:/tcp/4", clusterAddress: "10.96.0.13", clusterBackends: [], anyBackends: false }),
);

/** What others have beside the proxy: the kubelet's chains, a container engine's, an administrator's. */
const FOREIGN = (loopback: string) => `*mangle
:KUBE-KUBELET-CANARY - [0:0]
:KUBE-IPTABLES-HINT - [0:0]
COMMIT
*filter
:FORWARD DROP [0:0]
:KUBE-FIREWALL - [0:0]
:KUBE-KUBELET-CANARY - [0:0]
:DOCKER-USER - [0:0]
-A INPUT -j KUBE-FIREWALL
-A INPUT -p tcp -m tcp --dport 22 -m comment --comment "never -j KUBE-SERVICES here" -j ACCEPT
-A FORWARD -j DOCKER-USER
-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A OUTPUT -j KUBE-FIREWALL
${loopback}
-A DOCKER-USER -j RETURN
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:KUBE-MARK-MASQ - [0:0]
:KUBE-MARK-DROP - [0:0]
:KUBE-KUBELET-CANARY - [0:0]
:DOCKER - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
-A KUBE-MARK-MASQ -j MARK --or-mark 0x4000
-A KUBE-MARK-DROP -j MARK --or-mark 0x8000
COMMIT
`;
const LOOPBACK =
  '-A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment "block incoming localnet connections" -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP';

describe.skipIf(why)(`removing the service proxy's rules${why ? `: ${why}` : ""}`, () => {
  let lab: ServiceLab;
  const place = () => ({ kernel, netns: lab.node });
  const foreign = async (how: string) => {
    for (const [program, text] of [
      ["iptables", FOREIGN(LOOPBACK)],
      ["ip6tables", FOREIGN("")],
    ]) {
      expect(await lab.run([`${program}-${how}-restore`], text)).toMatchObject({ code: 0, err: "" });
    }
  };

  beforeEach(async () => {
    lab = await startServiceLab();
    await foreign("nft");
    await foreign("legacy");
    await lab.run(["nft", "-f", "-"], "table inet mine { chain KUBE-SERVICES { type filter hook input priority 5; } }");
  });
  afterEach(() => lab.close());

  it.each(SHAPES)("written with %s they go, and every other rule stays byte for byte", async (_, open, where) => {
    const before = await allRules(lab);
    const writer = open(lab);
    try {
      await writer.write(SERVICES);
      expect(await allRules(lab)).not.toEqual(before);
      const removed = await removeProxyRules(place());
      expect(removed.places.map((one) => one.where).sort()).toEqual(where);
      expect(removed.chains).toBeGreaterThan(20);
      const nat = removed.places.find((one) => one.where.startsWith("ip nat"));
      if (nat) expect(nat).toMatchObject({ jumps: 3, held: [] });
      expect(removed.left).toEqual([]);
      expect(await allRules(lab)).toEqual(before);
      expect(await removeProxyRules(place())).toEqual({ places: [], jumps: 0, chains: 0, left: [] });
    } finally {
      writer.close();
    }
  });

  it("of several proxies at once, and twice at the same time, nothing is left", async () => {
    const before = await allRules(lab);
    const writers = SHAPES.map(([, open]) => open(lab));
    for (const writer of writers) await writer.write(SERVICES);
    await Promise.all([removeProxyRules(place()), removeProxyRules(place())]);
    expect(await allRules(lab)).toEqual(before);
    for (const writer of writers) writer.close();
  });

  it.each(["iptables-nft", "iptables-legacy"] as const)(
    "a chain that somebody else's %s rule leads into is emptied and stays, and that rule too",
    async (variant) => {
      await iptablesWriter(lab.run, node, variant).write(SERVICES);
      await lab.run([variant, "-t", "nat", "-A", "DOCKER", "-j", "KUBE-SERVICES"]);
      const { places } = await removeProxyRules(place());
      expect(places.find(({ held }) => held.length > 0)).toMatchObject({
        where: `ip nat (${variant})`,
        held: ["KUBE-SERVICES"],
      });
      const { out } = await lab.run([`${variant}-save`, "-t", "nat"]);
      expect(out).toContain("-A DOCKER -j KUBE-SERVICES");
      expect(out).not.toContain("-A KUBE-SERVICES");
      expect(out).not.toContain("KUBE-SVC-");
      expect(await removeProxyRules(place())).toMatchObject({ places: [] });
    },
  );
});

async function allRules({ run }: ServiceLab): Promise<string[]> {
  const commands = ["iptables-legacy-save", "ip6tables-legacy-save", "iptables-nft-save", "ip6tables-nft-save"];
  const texts = await Promise.all([...commands.map((one) => run([one])), run(["nft", "list", "ruleset"])]);
  return texts.map(({ code, out }) => {
    expect(code).toBe(0);
    return out
      .replace(/^#.*$/gm, "")
      .replace(/\[\d+:\d+\]/g, "[]")
      .replace(/packets \d+ bytes \d+/g, "");
  });
}

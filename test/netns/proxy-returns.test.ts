import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type ProxyRulesState, ServiceProxyRules } from "../../src/dataplane/kube-proxy/proxy-rules.ts";
import { openRuleSummary } from "../../src/kernel/nft/rule-summary.ts";
import { type FakeClock, fakeClock } from "../../src/kit/fake-clock.ts";
import { silentLog } from "../../src/kit/log.ts";
import {
  iptablesWriter,
  nftablesWriter,
  type ServiceRulesWriter,
} from "../../src/local/runtime/netns/kube-proxy/service-writers.ts";
import { whyNoPacketFilters } from "../kernel/why-not.ts";
import {
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
const SERVICES = rowsOf(servicePort({ nodePort: 30080 }));
const SHAPES: [string, (lab: ServiceLab) => ServiceRulesWriter][] = [
  ["iptables-nft", ({ run }) => iptablesWriter(run, node, "iptables-nft")],
  ["iptables-legacy", ({ run }) => iptablesWriter(run, node, "iptables-legacy")],
  ["nftables", ({ node: netns }) => nftablesWriter(kernel.nft(netns), node)],
];

describe.skipIf(why).each(SHAPES)(`a service proxy that comes back, with %s${why ? `: ${why}` : ""}`, (_, open) => {
  let lab: ServiceLab;
  let proxy: ServiceRulesWriter;
  let clock: FakeClock;
  let cleanup: boolean;
  let rules: ServiceProxyRules;
  /** As a living proxy: it looks whether its rules are there, and writes them again. */
  const proxyLooks = async () => {
    if (await proxy.areRemoved()) await proxy.write(SERVICES);
  };

  beforeEach(async () => {
    lab = await startServiceLab();
    proxy = open(lab);
    clock = fakeClock(1_000_000);
    cleanup = true;
    rules = new ServiceProxyRules({ kernel, netns: lab.node, clock, log: silentLog });
  });
  afterEach(() => {
    rules.close();
    proxy.close();
    lab.close();
  });

  it("has its rules removed again; the second time that is called a conflict, with the fix, until it has been quiet", async () => {
    await proxyLooks();
    await rules.observe(cleanup);
    expect(await proxy.areRemoved()).toBe(true);
    expect(rules.state()).toMatchObject({ present: false, returns: 0, conflict: undefined });
    await proxyLooks();
    await rules.observe(cleanup);
    expect(rules.state()).toMatchObject({ returns: 1, conflict: undefined });
    await proxyLooks();
    await rules.observe(cleanup);
    expect(rules.state()).toMatchObject({ returns: 2, conflict: { code: "SERVICE_PROXY_WRITES_AGAIN" } });
    expect(rules.state().conflict?.fix).toContain("bpfServiceProxyIptablesCleanupEnabled");
    expect(await proxy.areRemoved()).toBe(true);
    await clock.advance(600_000);
    await rules.observe(cleanup);
    expect(rules.state()).toMatchObject({ returns: 2, conflict: undefined });
  });

  it("is left alone where its rules are not to be removed, and seen", async () => {
    cleanup = false;
    await proxyLooks();
    await rules.observe(cleanup);
    expect(rules.state()).toEqual({ present: true, returns: 0, conflict: undefined });
    expect(await proxy.areRemoved()).toBe(false);
    cleanup = true;
    await rules.observe(cleanup);
    expect(await proxy.areRemoved()).toBe(true);
    expect(rules.state()).toEqual({ present: false, returns: 0, conflict: undefined });
  });

  it("serves when its rules are written and packets are led into them, not before", async () => {
    expect(await rules.serves([4])).toBe(false);
    await proxyLooks();
    expect(await rules.serves([4, 6])).toBe(true);
  });

  it("is noticed within two seconds, and told", async () => {
    const told: ProxyRulesState[] = [];
    const stopping = new AbortController();
    const { signal } = stopping;
    const following = rules.follow({ removes: () => cleanup, onChange: (state) => told.push(state), signal });
    await rules.present();
    await proxyLooks();
    await expect
      .poll(async () => {
        await clock.advance(2_000);
        return told.at(-1)?.returns;
      })
      .toBe(1);
    expect(await proxy.areRemoved()).toBe(true);
    stopping.abort();
    await following;
  });
});

/** kube-proxy adds chains and jumps one by one, then all rules of a table at once; removed in between, the jumps are missing until it checks them again. */
describe.skipIf(why).each(["iptables-nft", "iptables-legacy"] as const)(
  `half-written rules, with %s${why ? `: ${why}` : ""}`,
  (variant) => {
    let lab: ServiceLab;
    let rules: ServiceProxyRules;
    const iptables = (line: string) => lab.run([variant, "--wait", ...line.split(" ")]);
    beforeEach(async () => {
      lab = await startServiceLab();
      rules = new ServiceProxyRules({ kernel, netns: lab.node, clock: fakeClock(1_000_000), log: silentLog });
    });
    afterEach(() => {
      rules.close();
      lab.close();
    });

    it("chains and jumps without the rules of Services serve nothing", async () => {
      for (const line of ["-t filter -N KUBE-FORWARD", "-t nat -N KUBE-SERVICES", "-t nat -N KUBE-POSTROUTING"]) {
        await iptables(line);
      }
      await iptables("-t filter -A FORWARD -j KUBE-FORWARD");
      for (const from of ["PREROUTING", "OUTPUT"]) await iptables(`-t nat -A ${from} -j KUBE-SERVICES`);
      await iptables("-t nat -A POSTROUTING -j KUBE-POSTROUTING");
      expect(await rules.present()).toBe(true);
      expect(await rules.serves([4])).toBe(false);
    });

    it.each([
      ["nat", "PREROUTING", "KUBE-SERVICES"],
      ["nat", "OUTPUT", "KUBE-SERVICES"],
      ["nat", "POSTROUTING", "KUBE-POSTROUTING"],
      ["filter", "FORWARD", "KUBE-FORWARD"],
    ])("rules of Services without the jump in %s from %s to %s do not serve", async (table, from, to) => {
      await iptablesWriter(lab.run, node, variant).write(SERVICES);
      expect(await rules.serves([4])).toBe(true);
      const { out } = await lab.run([`${variant}-save`, "-t", table]);
      const jump = out.split("\n").find((line) => line.startsWith(`-A ${from} `) && line.endsWith(`-j ${to}`)) ?? "";
      await lab.run([`${variant}-restore`, "--noflush"], `*${table}\n${jump.replace("-A", "-D")}\nCOMMIT\n`);
      expect(await rules.serves([4])).toBe(false);
    });
  },
);

describe.skipIf(why)(`a look at packet rules${why ? `: ${why}` : ""}`, () => {
  let lab: ServiceLab;
  beforeEach(async () => {
    lab = await startServiceLab();
  });
  afterEach(() => lab.close());

  it("knows tables and chains by name and sees every change, and makes no table by asking for it", async () => {
    const glance = openRuleSummary(lab.node);
    try {
      const before = glance.generation();
      expect(glance.hasChain(4, "nat", "KUBE-SERVICES")).toBe(false);
      expect(glance.legacySize(4, "nat")).toBeUndefined();
      expect(glance.legacyTables(4)).toEqual([]);
      await iptablesWriter(lab.run, node, "iptables-nft").write(SERVICES);
      expect(glance.generation()).not.toBe(before);
      expect(glance.hasChain(4, "nat", "KUBE-SERVICES")).toBe(true);
      expect(glance.hasTable(6, "nat")).toBe(true);
      expect(glance.hasTable(6, "kube-proxy")).toBe(false);
      await lab.run(["iptables-legacy", "-t", "nat", "-N", "ONE"]);
      const size = glance.legacySize(4, "nat");
      await lab.run(["iptables-legacy", "-t", "nat", "-N", "TWO"]);
      expect(glance.legacySize(4, "nat")).not.toBe(size);
      expect(glance.legacyTables(4)).toEqual(["nat"]);
    } finally {
      glance.close();
    }
  });
});

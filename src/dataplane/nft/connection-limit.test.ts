import { expect, it } from "vitest";
import type { WorkloadEndpoint } from "../../calc/model.ts";
import { ModelCopy } from "../../calc/model-copy.ts";
import { settingsOf } from "../../calc/settings.ts";
import type { ConntrackEntry, ConntrackPort } from "../../kernel/conntrack/conntrack-port.ts";
import { fakeKernel } from "../../kernel/fake/fake-kernel.ts";
import { pod } from "./base-chains.ts";
import { ConnectionShares, withConnectionLimit } from "./connection-limit.ts";
import { ruleText } from "./rule-text.ts";

function modelOf(percent: number, ...pods: [id: string, address: string][]): ModelCopy {
  const model = new ModelCopy();
  model.settings = settingsOf({ workloadConntrackPercent: percent }, undefined, []);
  const decided = { tiers: [], profiles: [] };
  for (const [id, address] of pods) {
    const endpoint: WorkloadEndpoint = {
      ...{ id, interfaceName: `ven-${id.split("/")[1]}`, mac: null, addresses: [`${address}/32`] },
      ...{ ingress: decided, egress: decided },
    };
    model.endpoints.set(id, endpoint);
  }
  return model;
}

const entry = (source: string, sourcePort: number, change: Partial<ConntrackEntry> = {}): ConntrackEntry => ({
  original: { protocol: 17, source, destination: "198.51.100.7", sourcePort, destinationPort: 53 },
  reply: { protocol: 17, source: "198.51.100.7", destination: source, sourcePort: 53, destinationPort: sourcePort },
  ...{ mark: 0, timeout: 30, seenReply: false, assured: false, sourceNat: false, destinationNat: false },
  ...{ tcpState: undefined, packets: undefined },
  ...change,
});
const entries = (source: string, count: number) => Array.from({ length: count }, (_, port) => entry(source, port));

it("names the pod that opened more than its share, and holds it back until it has less", async () => {
  let table: ConntrackEntry[] = [];
  let lists = 0;
  const conntrack: ConntrackPort = {
    ...fakeKernel().conntrack(),
    fill: () => ({ entries: table.length, max: 10_000 }),
    list: async () => {
      lists++;
      return table;
    },
  };
  const model = modelOf(1, ["shop/loader", "10.0.0.1"], ["shop/web", "10.0.0.2"]);
  const shares = new ConnectionShares(conntrack);
  const flooding = () => [...shares.limit(model).flooding];
  table = [...entries("10.0.0.1", 40), ...entries("10.0.0.2", 40)];
  expect([shares.limit(model).entries, await shares.check(model), flooding(), lists]).toEqual([100, false, [], 0]);
  table = [...entries("10.0.0.1", 99), ...entries("10.0.0.2", 40)];
  await expect.poll(() => shares.check(model)).toBe(true);
  expect(shares.limited).toEqual([{ id: "shop/loader", table: "nf_conntrack", entries: 99, limit: 100 }]);
  expect(flooding()).toEqual(["ven-loader"]);
  expect(await shares.check(model)).toBe(false);
  table = [...entries("10.0.0.1", 40), ...entries("10.0.0.2", 60)];
  await expect.poll(() => shares.check(model)).toBe(true);
  expect([shares.limited, flooding()]).toEqual([[], []]);
  model.settings = settingsOf({ workloadConntrackPercent: 50 }, undefined, []);
  expect(await shares.check(model)).toBe(true);
  expect(shares.limit(model).entries).toBe(5_000);
});

it("names the pod that has half of the source ports towards one destination", async () => {
  const to = (destination: string, count: number) => {
    const { reply } = entry("10.0.0.1", 1_024);
    const one = entry("10.0.0.1", 1_024, { sourceNat: true, reply: { ...reply, source: destination } });
    return Array.from({ length: count }, () => one);
  };
  const model = modelOf(25, ["shop/loader", "10.0.0.1"]);
  const limited = async (table: ConntrackEntry[]) => {
    const fill = () => ({ entries: table.length, max: 4_000_000 });
    const shares = new ConnectionShares({ ...fakeKernel().conntrack(), fill, list: async () => table });
    await shares.check(model);
    return shares.limited;
  };
  expect(await limited([...to("198.51.100.7", 30_000), ...to("198.51.100.8", 30_000)])).toEqual([]);
  expect(await limited(to("198.51.100.7", 32_000))).toEqual([
    { id: "shop/loader", table: "source ports", entries: 32_000, limit: 32_256 },
  ]);
});

it("drops what pods over their share open, and what any pod opens too fast, and asks no packet of an established connection", () => {
  const nothing = { chains: new Map(), sets: new Map() };
  const { chains, sets } = withConnectionLimit(nothing, {
    ...{ entries: 65_536, flooding: new Set(["ven-loader"]), fromPod: pod(new ModelCopy(), "in") },
  });
  expect([...chains].map(([name, { base }]) => `${name} ${base?.hook} ${base?.priority}`)).toEqual([
    "connection-limit-forward forward -2",
    "connection-limit-input input -4",
  ]);
  expect(chains.get("connection-limit-forward")!.rules.map((rule) => ruleText(rule))).toEqual([
    "ct state != new accept",
    'iifname "ven*" iifname @flooding-pods counter drop comment "the pod has its share of connections"',
    'iifname "ven*" update @new-connections-6553-32256 { iifname limit rate over 6553/second burst 32256 packets } counter drop comment "the pod opens connections too fast"',
  ]);
  expect([...sets.get("flooding-pods")!.elements.keys()]).toEqual(['"ven-loader"']);
  // A kernel that does not say how large its table is.
  expect(
    withConnectionLimit(nothing, { entries: undefined, flooding: new Set(), fromPod: pod(new ModelCopy(), "in") }),
  ).toEqual(nothing);
});

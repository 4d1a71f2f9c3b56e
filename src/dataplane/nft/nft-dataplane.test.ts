import { describe, expect, it } from "vitest";
import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { createCalculator } from "../../calc/calculator.ts";
import type { ConntrackTuple } from "../../kernel/conntrack/conntrack-port.ts";
import { fakeKernel } from "../../kernel/fake/fake-kernel.ts";
import { fakeSysctls } from "../net/fake-sysctls.ts";
import { createNftDataplane } from "./nft-dataplane.ts";
import { CONNECTION_MARK } from "./ruleset.ts";

const STORED = `${vendorNames.groups.stored.group}/${vendorNames.groups.stored.version}`;

function pod(name: string, number: number, labels: Record<string, string>): KubeObject {
  return {
    ...{ apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "default", labels } },
    spec: { nodeName: "node-1", containers: [{ name: "main" }] },
    status: { phase: "Running", podIPs: [{ ip: `10.0.${number >> 8}.${number & 255}` }] },
  } as KubeObject;
}

function policy(name: string, spec: object): KubeObject {
  const kind = vendorNames.kinds.globalNetworkPolicy.kind;
  return {
    apiVersion: STORED,
    kind,
    metadata: { name: `default.${name}` },
    spec: { tier: "default", ...spec },
  } as KubeObject;
}

const WEB = {
  selector: "app == 'web'",
  types: ["Ingress"],
  ingress: [{ action: "Allow", source: { selector: "app == 'web'" } }],
};
const NAMESPACE = { apiVersion: "v1", kind: "Namespace", metadata: { name: "default" } } as KubeObject;

function world(...objects: KubeObject[]) {
  const kernel = fakeKernel();
  const calculator = createCalculator("node-1", vendorNames);
  const dataplane = createNftDataplane({ kernel, table: "ours", sysctls: fakeSysctls() });
  for (const object of [NAMESPACE, ...objects]) calculator.set(object);
  calculator.inSync();
  const settle = async () => {
    const delta = calculator.takeDelta();
    return delta ? dataplane.apply(delta) : { objects: [] };
  };
  const transactions = () => kernel.world.home.nftCommands;
  /** Of the last transaction, without the line that names the table. */
  const commands = () => transactions().at(-1)!.split("\n").slice(1);
  return { kernel, calculator, dataplane, settle, transactions, commands };
}

describe("the nftables data plane", () => {
  it("writes the whole model in one transaction", async () => {
    const { settle, transactions } = world(pod("a", 1, { app: "web" }), policy("web", WEB));
    const { objects } = await settle();
    expect(transactions()).toHaveLength(1);
    expect(objects.filter(({ failed }) => failed)).toEqual([]);
    expect(objects.map(({ kind }) => kind)).toContain("endpoint");
  });

  it("knows pods by the interfaces of another CNI plugin too", async () => {
    const spec = { interfacePrefix: "eni,enigma,ven" };
    const kind = vendorNames.kinds.dataplaneConfiguration.kind;
    const { settle, transactions } = world({ apiVersion: STORED, kind, metadata: { name: "default" }, spec });
    await settle();
    const [rules = ""] = transactions();
    expect(rules).toContain('iifname != { "eni*", "ven*" } accept');
    expect(rules).not.toContain('"ven*" accept\n');
  });

  it("touches nothing before everything was listed", async () => {
    const kernel = fakeKernel();
    const dataplane = createNftDataplane({ kernel, table: "ours", sysctls: fakeSysctls() });
    const calculator = createCalculator("node-1", vendorNames);
    calculator.set(pod("a", 1, {}));
    expect(await dataplane.apply(calculator.takeDelta()!)).toEqual({ objects: [] });
    expect(await kernel.nft().tables()).toEqual([]);
  });

  it("one more pod like others is a handful of elements, however many policies there are", async () => {
    const many = Array.from({ length: 500 }, (_, index) => policy(`p${index}`, { ...WEB, order: index }));
    const { settle, calculator, commands } = world(pod("a", 1, { app: "web" }), ...many);
    await settle();
    calculator.set(pod("b", 2, { app: "web" }));
    await settle();
    expect(commands().map((line) => line.replace(/"ven[^"]*"/g, "IT").replace(/[se]-?[0-9a-f]{16}/g, "X"))).toEqual([
      "add element inet ours X-4 { 10.0.0.2 }",
      "add element inet ours pod-addresses-4 { IT . 10.0.0.2 }",
      "add element inet ours pod-itself { IT . IT }",
      "add element inet ours from-pod { IT : goto X }",
      "add element inet ours to-pod { IT : goto X }",
    ]);
  });

  it("a policy that changes is its own chain, written again", async () => {
    const { settle, calculator, commands } = world(
      pod("a", 1, { app: "web" }),
      policy("web", WEB),
      policy("other", WEB),
    );
    await settle();
    calculator.set(policy("web", { ...WEB, ingress: [{ action: "Deny" }] }));
    await settle();
    expect(commands().map((line) => line.split(" ").slice(0, 2).join(" "))).toEqual(["flush chain", "add rule"]);
    expect(commands()[1]).toMatch(/counter goto denied comment "[0-9a-f]{12}\/1 gnp\/default\.web;ingress;0"$/);
  });

  it("what nobody wants any more goes in the transaction that says so", async () => {
    const { settle, calculator, commands, kernel } = world(pod("a", 1, { app: "web" }), policy("web", WEB));
    await settle();
    calculator.remove(
      { group: vendorNames.groups.stored.group, kind: vendorNames.kinds.globalNetworkPolicy.kind },
      { name: "default.web" },
    );
    await settle();
    // The policy's, its tier's, and that of pods with this policy.
    expect(commands().filter((line) => line.startsWith("delete chain"))).toHaveLength(3);
    const chains = [...kernel.world.home.nft.get("inet ours")!.chains.keys()];
    expect(chains.filter((name) => name.startsWith("p-") || name.startsWith("t-"))).toEqual([]);
  });

  it("a set that gets a prefix becomes one that can hold prefixes, and its rules follow", async () => {
    const { settle, calculator, kernel } = world(pod("a", 1, { app: "web" }), policy("web", WEB));
    await settle();
    const sets = () =>
      [...kernel.world.home.nft.get("inet ours")!.sets].filter(([name]) => /^s[0-9a-f]{16}-4/.test(name));
    expect(sets().map(([name]) => name.slice(17))).toEqual(["-4"]);
    calculator.set({
      ...{ apiVersion: STORED, kind: "GlobalNetworkSet", metadata: { name: "net", labels: { app: "web" } } },
      spec: { nets: ["192.168.0.0/16", "192.168.1.0/24"] },
    } as KubeObject);
    await settle();
    expect(sets().map(([name, { elements }]) => [name.slice(17), [...elements.keys()]])).toEqual([
      ["-4n", ["10.0.0.1", "192.168.0.0/16"]],
    ]);
  });

  it("a policy nft refuses denies and is told, and the others are in effect", async () => {
    const kernel = fakeKernel();
    const refusing = (netns?: Parameters<typeof kernel.nft>[0]) => {
      const port = kernel.nft(netns);
      return {
        ...port,
        run: async (commands: string) => {
          if (commands.includes("gnp/default.bad;ingress;0")) throw new Error("this rule is beyond me");
          await port.run(commands);
        },
      };
    };
    const dataplane = createNftDataplane({
      kernel: { ...kernel, nft: refusing },
      table: "ours",
      sysctls: fakeSysctls(),
    });
    const calculator = createCalculator("node-1", vendorNames);
    for (const object of [NAMESPACE, pod("a", 1, { app: "web" })]) calculator.set(object);
    for (const name of ["one", "bad", "two"]) calculator.set(policy(name, WEB));
    calculator.inSync();
    const { objects } = await dataplane.apply(calculator.takeDelta()!);
    const failed = objects.filter((outcome) => outcome.failed);
    expect(failed).toMatchObject([{ kind: "policy", id: "gnp/default.bad", failed: { code: "NFT_NOT_WRITTEN" } }]);
    const texts = kernel.world.home.nftCommands.join("\n");
    expect(texts).toContain("gnp/default.two;ingress;0");
    expect(texts).toContain('counter drop comment "');

    calculator.set(policy("bad", { ...WEB, ingress: [] }));
    expect((await dataplane.apply(calculator.takeDelta()!)).objects.filter((outcome) => outcome.failed)).toEqual([]);
  });

  it("cuts the flows a change forbids, and those of pods that are gone", async () => {
    const { settle, calculator, kernel } = world(pod("a", 1, { app: "web" }), pod("b", 2, { app: "web" }));
    await settle();
    const conntrack = kernel.conntrack();
    const flow = (source: string, destination: string): ConntrackTuple => ({
      ...{ protocol: 6, source, destination, sourcePort: 40_000, destinationPort: 80 },
    });
    const left = async () =>
      (await conntrack.list())
        .filter(({ mark }) => (mark & CONNECTION_MARK.denied) === 0)
        .map(({ original }) => `${original.source} ${original.destination}`)
        .sort();
    for (const [from, to] of [
      ["10.0.0.2", "10.0.0.1"],
      ["192.0.2.1", "10.0.0.1"],
      ["192.0.2.1", "192.0.2.2"],
    ] as const) {
      conntrack.insert({ original: flow(from, to), timeout: 100 });
    }
    calculator.set(policy("web", WEB));
    await settle();
    expect(await left()).toEqual(["10.0.0.2 10.0.0.1", "192.0.2.1 192.0.2.2"]);
    calculator.remove({ group: "", kind: "Pod" }, { name: "b", namespace: "default" });
    await settle();
    expect(await left()).toEqual(["192.0.2.1 192.0.2.2"]);
    // Denied, not forgotten; and a connection again when policy allows it.
    expect(await conntrack.list()).toHaveLength(2);
    calculator.remove(
      { group: vendorNames.groups.stored.group, kind: vendorNames.kinds.globalNetworkPolicy.kind },
      { name: "default.web" },
    );
    await settle();
    expect(await left()).toEqual(["192.0.2.1 10.0.0.1", "192.0.2.1 192.0.2.2"]);
  });

  it("prints the same tables for the same state", async () => {
    const { settle, dataplane } = world(pod("b", 2, { app: "web" }), pod("a", 1, {}), policy("web", WEB));
    await settle();
    const { rows } = await dataplane.show("endpoints");
    expect(rows.map(([id]) => id)).toEqual(["default/a", "default/b"]);
    expect((await dataplane.show("policies")).rows).toEqual([["gnp/default.web", "default", "last", "1", "0"]]);
    for (const table of ["ip-sets", "routes", "conntrack", "counters"] as const) {
      expect((await dataplane.show(table)).columns.length).toBeGreaterThan(0);
    }
  });
});

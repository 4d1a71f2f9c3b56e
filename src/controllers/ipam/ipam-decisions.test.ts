import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { IPAMBlock } from "../../api/resources/ipam.ts";
import { type AllocationOwner, allocationsOf } from "../../api/resources/ipam-allocation.ts";
import type { Pod } from "../orchestrator-objects.ts";
import { withoutAddresses } from "./block-edits.ts";
import { type LiveObjects, liveObjects, mayBeInUse } from "./live-objects.ts";
import { suspects } from "./suspects.ts";

const ADDRESS = "10.0.0.5";

function pod(parts: { node?: string; ips?: string[]; phase?: string; networks?: boolean }): Pod {
  const annotations: Record<string, string> = parts.networks ? { "k8s.v1.cni.cncf.io/networks": "second" } : {};
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "web-0", namespace: "shop", annotations },
    spec: { nodeName: parts.node ?? "a" },
    status: { phase: parts.phase ?? "Running", podIPs: (parts.ips ?? []).map((ip) => ({ ip })) },
  };
}

function world(pods: Pod[], nodes: string[] = ["a"]): LiveObjects {
  const byKey = new Map(pods.map((one) => [`${one.metadata.namespace}/${one.metadata.name}`, one]));
  return liveObjects({
    nodes: { get: (name) => nodes.find((one) => one === name) },
    pods: { get: (key) => byKey.get(key), list: () => pods },
  });
}

const POD: AllocationOwner = { kind: "pod", namespace: "shop", name: "web-0", node: "a" };

describe("whether an address may be in use", () => {
  it.each<[string, AllocationOwner, Pod[], boolean]>([
    ["its pod has it", POD, [pod({ ips: [ADDRESS] })], true],
    ["its pod is gone", POD, [], false],
    ["its pod has not said its addresses yet", POD, [pod({})], true],
    ["its pod says it has another", POD, [pod({ ips: ["10.0.0.6"] })], false],
    [
      "its pod has further networks, which it does not tell of",
      POD,
      [pod({ ips: ["10.0.0.6"], networks: true })],
      true,
    ],
    ["its pod has finished", POD, [pod({ ips: [ADDRESS], phase: "Succeeded" })], false],
    ["its pod was started again on another node", POD, [pod({ node: "b" })], false],
    ["a pod of another name says it has it", { kind: "tunnel", node: "gone" }, [pod({ ips: [ADDRESS] })], true],
    ["it is a tunnel's, and the node is there", { kind: "tunnel", node: "a" }, [], true],
    ["it is a tunnel's, and the node is gone", { kind: "tunnel", node: "gone" }, [], false],
    ["nobody knows whose it is", { kind: "unknown" }, [], true],
  ])("%s", (_case, owner, pods, expected) => {
    const allocation = { ordinal: 5, address: ADDRESS, handle: "h", sequence: 1, owner };
    expect(mayBeInUse(allocation, world(pods))).toBe(expected);
  });

  it("addresses of services and of things we do not know are nobody's to take", () => {
    const block = blockOf([0, 1], [{ service: "web" }, { node: "gone", type: "loadBalancer" }]);
    expect(allocationsOf(block).map(({ owner }) => owner)).toEqual([{ kind: "unknown" }, { kind: "unknown" }]);
  });
});

function blockOf(allocations: (number | null)[], attributes: Record<string, string>[]): IPAMBlock {
  return {
    apiVersion: "crd.vendor.io/v1",
    kind: "IPAMBlock",
    metadata: { name: "10-0-0-0-29" },
    spec: {
      cidr: "10.0.0.0/29",
      allocations,
      unallocated: allocations.flatMap((index, ordinal) => (index === null ? [ordinal] : [])),
      attributes: attributes.map((secondary, index) => ({ handle_id: `h${index}`, secondary })),
    },
  } as unknown as IPAMBlock;
}

describe("a block without some of its addresses", () => {
  it("keeps every other address with its owner, and has each of its addresses once: given out or free", () => {
    const attributes: Record<string, string>[] = [
      { pod: "p0", namespace: "n" },
      { pod: "p1", namespace: "n" },
      { node: "a" },
    ];
    const allocation = fc.option(fc.nat({ max: 2 }), { nil: null });
    fc.assert(
      fc.property(fc.array(allocation, { minLength: 8, maxLength: 8 }), fc.func(fc.boolean()), (allocations, picks) => {
        const block = blockOf(allocations, attributes);
        const given = allocationsOf(block);
        const freed = new Set(given.filter(({ ordinal }) => picks(ordinal)).map(({ ordinal }) => ordinal));
        const after = withoutAddresses(block, freed);
        expect(allocationsOf(after)).toEqual(given.filter(({ ordinal }) => !freed.has(ordinal)));
        const all = [...after.spec.unallocated, ...allocationsOf(after).map(({ ordinal }) => ordinal)];
        expect(all.sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
        expect(after.spec.sequenceNumber).toBe(1);
      }),
    );
  });
});

describe("suspects", () => {
  it("are ripe after the whole time, and start over when they looked alive for a single look", () => {
    const waiting = suspects();
    expect([...waiting.observe(["a", "b"], 0, 100)]).toEqual([]);
    expect(waiting.nextIn(30, 100)).toBe(70);
    expect([...waiting.observe(["b"], 50, 100)]).toEqual([]);
    expect([...waiting.observe(["a", "b"], 100, 100)]).toEqual(["b"]);
    expect([...waiting.observe(["a"], 199, 100)]).toEqual([]);
    expect([...waiting.observe(["a"], 200, 100)]).toEqual(["a"]);
    expect(waiting.nextIn(200, 100)).toBeUndefined();
  });
});

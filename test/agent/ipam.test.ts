import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { tunnelAddresses } from "../../src/agent/node/tunnel-addresses.ts";
import { allocationsOf } from "../../src/api/resources/ipam-allocation.ts";
import { PODS } from "../../src/cluster/kinds.ts";
import type { Pool } from "../../src/ipam/ipam-kinds.ts";
import { CodedError } from "../../src/kit/errors.ts";
import { fakeClock } from "../../src/kit/fake-clock.ts";
import { type ControllersLab, controllersLab, eventually } from "../controllers/controllers-lab.ts";
import { type IpamAgent, type IpamLab, ipamLab } from "./ipam-lab.ts";

/** Addresses: from a node's own blocks, each to one owner, whatever happens in between. */

const owner = (name: string, node: string) => ({
  handle: `k8s-pod-network.${name}`,
  facts: { node, namespace: "default", pod: name },
});

async function withLab(
  cidrs: { cidr: string; blockSize: number }[],
  story: (lab: IpamLab, world: ControllersLab) => Promise<void>,
): Promise<void> {
  const world = await controllersLab();
  try {
    await story(await ipamLab(world, cidrs), world);
  } finally {
    await world.close();
  }
}

describe("the node's address in the tunnels", () => {
  const at = (pools: readonly Pool[], spec: object) =>
    pools.map((pool) => ({ ...pool, spec: { ...pool.spec, ...spec } }));

  it("is one for VXLAN and IPIP, stays when a pool changes, and goes when none needs it", () =>
    withLab([{ cidr: "10.0.0.0/24", blockSize: 28 }], async (lab) => {
      const { ipam } = await lab.agent("a");
      const tunnel = async (spec: object) => (await tunnelAddresses(ipam, "a", at(lab.pools, spec), {})).v4;
      const first = await tunnel({ ipipMode: "Always" });
      expect(first).toBeDefined();
      expect(await tunnel({ vxlanMode: "CrossSubnet" })).toBe(first);
      expect(await lab.givenOut()).toEqual([`${first} vxlan-tunnel-addr.a`]);
      expect(await tunnel({})).toBeUndefined();
      expect(await lab.givenOut()).toEqual([]);
    }));

  it("is the one that an older release gave to IPIP, where it has no other", () =>
    withLab([{ cidr: "10.0.0.0/24", blockSize: 28 }], async (lab) => {
      const { ipam } = await lab.agent("a");
      const older = { handle: "ipip-tunnel-addr.a", facts: { node: "a", type: "ipipTunnelAddress" } };
      const [old] = await ipam.assign({ owner: older, v4: lab.pools, v6: [] });
      for (const spec of [{ ipipMode: "Always" }, { vxlanMode: "Always" }]) {
        expect((await tunnelAddresses(ipam, "a", at(lab.pools, spec), {})).v4).toBe(old);
      }
      expect(await lab.givenOut()).toEqual([`${old} ipip-tunnel-addr.a`]);
      await tunnelAddresses(ipam, "a", at(lab.pools, {}), {});
      expect(await lab.givenOut()).toEqual([]);
    }));
});

describe("addresses", () => {
  it("come from a block the node claims, and the same owner gets the same again", () =>
    withLab([{ cidr: "10.0.0.0/24", blockSize: 28 }], async (lab) => {
      const a = await lab.agent("a");
      const [v4] = await a.ipam.assign({ owner: owner("web", "a"), v4: lab.pools, v6: [] });
      expect(await a.ipam.assign({ owner: owner("web", "a"), v4: lab.pools, v6: [] })).toEqual([v4]);
      expect(await lab.givenOut()).toEqual([`${v4} k8s-pod-network.web`]);
      const [block] = await lab.blocks();
      expect(block?.spec.affinity).toBe("host:a");
      expect((await lab.affinities()).map(({ spec }) => spec.state)).toEqual(["confirmed"]);
      await a.ipam.release("k8s-pod-network.web", []);
      expect(await lab.givenOut()).toEqual([]);
      expect(await lab.handles()).toEqual([]);
      await a.stop();
    }));

  it("one of each family, or none: half of what was asked for is given back", () =>
    withLab(
      [
        { cidr: "10.0.0.0/30", blockSize: 30 },
        { cidr: "fd00::/126", blockSize: 126 },
      ],
      async (lab) => {
        const a = await lab.agent("a");
        const [v4, v6] = lab.pools;
        const ask = (name: string, six = true) =>
          a.ipam.assign({ owner: owner(name, "a"), v4: [v4!], v6: six ? [v6!] : [] });
        expect((await ask("one")).map((text) => text.includes(":"))).toEqual([false, true]);
        for (const name of ["two", "three", "four"]) {
          await a.ipam.assign({ owner: owner(name, "a"), v4: [], v6: [v6!] });
        }
        const before = await lab.givenOut();
        await expect(ask("five")).rejects.toMatchObject({ code: "IPAM_EXHAUSTED" });
        expect(await lab.givenOut()).toEqual(before);
        expect(await ask("six", false)).toHaveLength(1);
        await a.stop();
      },
    ));

  it("are not given again right after their release, from a full block and by the next agent neither", () =>
    withLab([{ cidr: "10.0.0.0/29", blockSize: 30 }], async (lab) => {
      const a = await lab.agent("a");
      const ask = async (agent: IpamAgent, name: string) =>
        (await agent.ipam.assign({ owner: owner(name, "a"), v4: lab.pools, v6: [] }))[0];
      const full: (string | undefined)[] = [];
      for (const name of ["one", "two", "three", "four"]) full.push(await ask(a, name));
      await a.ipam.release("k8s-pod-network.two", []);
      await a.stop();
      const next = await lab.agent("a");
      const others: (string | undefined)[] = [];
      for (const name of ["five", "six", "seven", "eight"]) others.push(await ask(next, name));
      expect(others.filter((address) => full.includes(address))).toEqual([]);
      // Rather than none at all, it is.
      expect(await ask(next, "nine")).toBe(full[1]);
      await next.stop();
    }));

  it("are borrowed from other nodes when every block is taken, unless that is forbidden", () =>
    withLab([{ cidr: "10.0.0.0/30", blockSize: 30 }], async (lab) => {
      const [a, b] = [await lab.agent("a"), await lab.agent("b")];
      await a.ipam.assign({ owner: owner("home", "a"), v4: lab.pools, v6: [] });
      await eventually(
        async () => (await lab.blocks()).length,
        (count) => count === 1,
      );
      const [guest] = await b.ipam.assign({ owner: owner("guest", "b"), v4: lab.pools, v6: [] });
      expect((await lab.blocks()).flatMap(allocationsOf).find(({ address }) => address === guest)?.owner).toEqual({
        kind: "pod",
        namespace: "default",
        name: "guest",
        node: "b",
      });
      await lab.configure({ strictAffinity: true, autoAllocateBlocks: true, maxBlocksPerHost: 0 });
      const c = await lab.agent("c");
      await expect(c.ipam.assign({ owner: owner("late", "c"), v4: lab.pools, v6: [] })).rejects.toMatchObject({
        code: "IPAM_EXHAUSTED",
      });
      for (const agent of [a, b, c]) await agent.stop();
    }));

  it("a node takes no more blocks than it may, and gives an empty one back while it has room in another", () =>
    withLab([{ cidr: "10.0.0.0/28", blockSize: 30 }], async (lab) => {
      await lab.configure({ strictAffinity: true, autoAllocateBlocks: true, maxBlocksPerHost: 2 });
      const a = await lab.agent("a");
      const names = Array.from({ length: 8 }, (_, at) => `pod-${at}`);
      for (const name of names) await a.ipam.assign({ owner: owner(name, "a"), v4: lab.pools, v6: [] });
      await expect(a.ipam.assign({ owner: owner("ninth", "a"), v4: lab.pools, v6: [] })).rejects.toMatchObject({
        code: "IPAM_EXHAUSTED",
        message: expect.stringContaining("2 blocks"),
      });
      for (const name of names) await a.ipam.release(`k8s-pod-network.${name}`, []);
      expect(await lab.blocks()).toHaveLength(1);
      expect(await lab.affinities()).toHaveLength(1);
      await a.stop();
    }));

  it("one that is asked for by name is given to the first who asks, and nobody else", () =>
    withLab([{ cidr: "10.0.0.0/24", blockSize: 28 }], async (lab) => {
      const [a, b] = [await lab.agent("a"), await lab.agent("b")];
      const ask = (agent: IpamAgent, name: string, node: string) =>
        agent.ipam.assign({ owner: owner(name, node), v4: lab.pools, v6: [], addresses: ["10.0.0.77"] });
      expect(await ask(a, "first", "a")).toEqual(["10.0.0.77"]);
      expect(await ask(a, "first", "a")).toEqual(["10.0.0.77"]);
      await expect(ask(b, "second", "b")).rejects.toMatchObject({ code: "IPAM_ADDRESS_TAKEN" });
      expect((await lab.handles()).map(({ metadata }) => metadata.name)).toEqual(["k8s-pod-network.first"]);
      for (const agent of [a, b]) await agent.stop();
    }));
});

/** One thing that happens on one of three nodes; its agent may be killed at one of the writes it takes. */
interface Deed {
  node: number;
  what: "add" | "remove";
  pod: number;
  dies: { after: number; done: boolean } | undefined;
}

const deed: fc.Arbitrary<Deed> = fc.record({
  node: fc.integer({ min: 0, max: 2 }),
  what: fc.constantFrom("add" as const, "add" as const, "remove" as const),
  pod: fc.integer({ min: 0, max: 5 }),
  dies: fc.option(fc.record({ after: fc.integer({ min: 0, max: 5 }), done: fc.boolean() }), {
    nil: undefined,
    freq: 2,
  }),
});

/** Fails only as an agent may: it was killed, or there is nothing left to give. */
function unlessExpected(agent: IpamAgent, error: unknown): void {
  const full = error instanceof CodedError && ["IPAM_EXHAUSTED", "IPAM_BUSY"].includes(error.code);
  if (!agent.dead() && !full) throw error;
}

describe("agents killed between any two writes", () => {
  const RUNS = Number(process.env["IPAM_RUNS"] ?? 25);
  it(
    `give no address to two, and after the garbage collection nothing is left over (${RUNS} histories)`,
    async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(fc.array(deed, { minLength: 1, maxLength: 3 }), { maxLength: 14 }), (steps) =>
          withLab([{ cidr: "10.0.0.0/27", blockSize: 29 }], (lab, world) => history(lab, world, steps)),
        ),
        { numRuns: RUNS, endOnFailure: true },
      );
    },
    RUNS * 10_000,
  );
});

/** A runtime does one thing to a pod at a time. */
async function inOrder(deeds: readonly Deed[], act: (one: Deed) => Promise<void>): Promise<void> {
  for (const one of deeds) await act(one);
}

/** Deeds of one step happen at once. */
async function history(lab: IpamLab, world: ControllersLab, steps: Deed[][]): Promise<void> {
  const names = ["a", "b", "c"];
  const agents = await Promise.all(names.map((name) => lab.agent(name)));
  /** What a pod was told it has: only then may it use it. */
  const has = new Map<string, string>();
  const podName = ({ node, pod }: Deed) => `${names[node]}-${pod}`;

  const act = async (one: Deed): Promise<void> => {
    const agent = agents[one.node]!;
    const name = podName(one);
    const node = names[one.node]!;
    if (one.dies) agent.dieAfter(one.dies.after, one.dies.done);
    try {
      if (one.what === "add") {
        await createPod(world, name, node);
        const [address] = await agent.ipam.assign({ owner: owner(name, node), v4: lab.pools, v6: [] });
        has.set(name, address!);
      } else {
        has.delete(name);
        await agent.ipam.release(owner(name, node).handle, []);
        await deletePod(world, name);
      }
    } catch (error) {
      unlessExpected(agent, error);
    }
  };

  for (const step of steps) {
    await Promise.all(
      [...new Set(step.map(podName))].map((name) =>
        inOrder(
          step.filter((one) => podName(one) === name),
          act,
        ),
      ),
    );
    expect(new Set(has.values()).size, "one address, one owner").toBe(has.size);
    for (const [at, agent] of agents.entries()) {
      if (!agent.dead()) agent.dieAfter(Number.POSITIVE_INFINITY, false);
      else {
        await agent.stop();
        agents[at] = await lab.agent(names[at]!);
        await agents[at]!.ipam.repair();
      }
    }
  }
  // What lives has what it was told; what was never told an address is removed by its runtime, or never there.
  const given = await lab.givenOut();
  for (const [name, address] of has) expect(given).toContain(`${address} k8s-pod-network.${name}`);
  for (const { metadata } of (await world.client.list(PODS)).items) {
    const address = has.get(metadata.name);
    if (address === undefined) await deletePod(world, metadata.name);
    else await report(world, metadata.name, address);
  }
  await collectGarbage(lab, world, has);
  for (const agent of agents) await agent.stop();
}

async function collectGarbage(lab: IpamLab, world: ControllersLab, has: Map<string, string>): Promise<void> {
  const clock = fakeClock(1_700_000_000_000);
  world.start({ clock });
  const wanted = [...has].map(([name, address]) => `${address} k8s-pod-network.${name}`).sort();
  await eventually(
    async () => {
      await clock.advance(60_000);
      for (let turn = 0; turn < 30; turn++) await new Promise((resolve) => setImmediate(resolve));
      const handles = (await lab.handles()).map(({ spec }) => `${spec.handleID} ${JSON.stringify(spec.block)}`);
      return { given: await lab.givenOut(), handles: handles.sort(), claims: await claims(lab) };
    },
    ({ given, handles, claims: wrong }) =>
      JSON.stringify(given) === JSON.stringify(wanted) && handles.length === has.size && wrong.length === 0,
    30_000,
  );
}

/** Claims without their block, blocks without their claim, and claims nobody confirmed. */
async function claims(lab: IpamLab): Promise<string[]> {
  const [affinities, blocks] = [await lab.affinities(), await lab.blocks()];
  const claimed = affinities.map(({ spec }) => `host:${spec.node} ${spec.cidr} ${spec.state}`);
  const owned = blocks.map(({ spec }) => `${spec.affinity} ${spec.cidr} confirmed`);
  return [...claimed.filter((one) => !owned.includes(one)), ...owned.filter((one) => !claimed.includes(one))];
}

async function createPod(world: ControllersLab, name: string, node: string): Promise<void> {
  const spec = { nodeName: node, containers: [{ name: "main", image: "web" }] };
  const pod = { apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "default" }, spec };
  await world.client.create(PODS, pod).catch(() => {});
}

async function deletePod(world: ControllersLab, name: string): Promise<void> {
  await world.client.delete(PODS, { namespace: "default", name }, { gracePeriodSeconds: 0 }).catch(() => {});
}

async function report(world: ControllersLab, name: string, address: string): Promise<void> {
  const status = { phase: "Running", podIP: address, podIPs: [{ ip: address }] };
  const ref = { namespace: "default", name };
  await world.client.patch(PODS, ref, { type: "merge", patch: { status } }, { subresource: "status" });
}

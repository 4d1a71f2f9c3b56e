import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { KubeObject } from "../../src/api/object.ts";
import { affineNode, allocationsOf } from "../../src/api/resources/ipam-allocation.ts";
import { PODS } from "../../src/cluster/kinds.ts";
import { CONFIGURATIONS } from "../../src/controllers/stored-kinds.ts";
import { type FakeClock, fakeClock } from "../../src/kit/fake-clock.ts";
import { type ControllersLab, controllersLab, eventually } from "./controllers-lab.ts";
import { faultInjector, randomFrom } from "./fault-injector.ts";
import { type SimulatedIpam, type SimulatedPod, simulatedIpam } from "./simulated-ipam.ts";

/** Addresses nobody gave back: found, given time, and taken back, but never from anything that lives. */

const MINUTE = 60_000;

interface Stage {
  world: ControllersLab;
  clock: FakeClock;
  ipam: SimulatedIpam;
}

async function stage(): Promise<Stage> {
  const world = await controllersLab();
  const clock = fakeClock(1_700_000_000_000);
  return { world, clock, ipam: simulatedIpam(world.client) };
}

/** Everything given out, as `address handle`. */
async function givenOut(ipam: SimulatedIpam): Promise<string[]> {
  const blocks = await ipam.blocks();
  return blocks
    .flatMap(allocationsOf)
    .map(({ address, handle }) => `${address} ${handle}`)
    .sort();
}

/** Lets what a minute brings be carried out: the work is awaited turn by turn, not by time. */
async function pass({ clock }: Stage, minutes: number): Promise<void> {
  for (let minute = 0; minute < minutes; minute++) {
    await clock.advance(MINUTE);
    for (let turn = 0; turn < 30; turn++) await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Minutes go by until it is so. */
function inTime(on: Stage, read: () => Promise<unknown>, is: unknown) {
  return eventually(
    async () => {
      await pass(on, 1);
      return JSON.stringify(await read());
    },
    (text) => text === JSON.stringify(is),
    30_000,
  );
}

describe("address garbage", () => {
  it("an address whose pod is gone is kept for fifteen minutes and then free, with its handle", async () => {
    const on = await stage();
    await on.ipam.addNode("a");
    const lost = await on.ipam.addPod("lost", "a", { quiet: false, from: "a" });
    const kept = await on.ipam.addPod("kept", "a", { quiet: false, from: "a" });
    const started = on.world.start({ clock: on.clock });
    await eventually(started.metrics, (text) => text.includes('controller="ipam",result="ok"} 1'));
    await on.ipam.removePod(lost, "leak");
    await pass(on, 14);
    expect(await givenOut(on.ipam)).toContain(`${lost.address} ${lost.handle}`);
    const left = [`${kept.address} ${kept.handle}`, "10.0.0.0 vxlan-tunnel-addr-a"].sort();
    await inTime(on, () => givenOut(on.ipam), left);
    const [block] = await on.ipam.blocks();
    expect(block?.spec.unallocated).toEqual([3, 1]);
    expect(block?.spec.attributes).toHaveLength(2);
    await eventually(
      async () => (await on.ipam.handles()).map(({ metadata }) => metadata.name),
      (handles) => !handles.includes(lost.handle) && handles.length === 2,
    );
    expect(started.metrics()).toContain('vendor_controllers_ipam_released_total{kind="address"} 1');
    await on.world.close();
  });

  it("a node that is gone gives its blocks back, but for the addresses others have from them", async () => {
    const on = await stage();
    await on.ipam.addNode("a");
    await on.ipam.addNode("b");
    await on.ipam.addPod("on-a", "a", { quiet: false, from: "a" });
    const guest = await on.ipam.addPod("guest", "b", { quiet: false, from: "a" });
    on.world.start({ clock: on.clock });
    await on.ipam.removeNode("a");
    await inTime(on, () => givenOut(on.ipam), [`${guest.address} ${guest.handle}`, "10.0.4.0 vxlan-tunnel-addr-b"]);
    await inTime(on, async () => (await on.ipam.blocks()).map((block) => affineNode(block) ?? "nobody"), [
      "nobody",
      "b",
    ]);
    await inTime(on, async () => (await on.ipam.affinities()).map(({ metadata }) => metadata.name), ["b-10-0-4-0-30"]);
    // The last guest leaves: nobody's block goes too.
    await on.ipam.removePod(guest, "clean");
    await inTime(on, async () => (await on.ipam.blocks()).length, 1);
    await on.world.close();
  });

  it("a node that comes back in time loses nothing, and neither does one that is gone when the grace period is 0", async () => {
    const on = await stage();
    await on.ipam.addNode("a");
    const before = await givenOut(on.ipam);
    const started = on.world.start({ clock: on.clock });
    await on.ipam.removeNode("a");
    await pass(on, 10);
    await on.ipam.addNode("a");
    await pass(on, 10);
    await on.ipam.removeNode("a");
    await pass(on, 10);
    expect(await givenOut(on.ipam)).toEqual(before);
    const patch = { spec: { controllers: { node: { leakGracePeriod: "0s" } } } };
    await on.world.client.patch(CONFIGURATIONS, { name: "default" }, { type: "merge", patch });
    await eventually(
      () => started.controllers.settings.current().controllers.node?.leakGracePeriod,
      (period) => period === "0s",
    );
    await pass(on, 30);
    expect(await givenOut(on.ipam)).toEqual(before);
    await on.world.close();
  });

  it("what the copy does not know is asked of the server: a pod it has not heard of keeps its address", async () => {
    const on = await stage();
    await on.ipam.addNode("a");
    let lists = 0;
    const started = on.world.start({
      clock: on.clock,
      // Of all pods it gets the first list, which is empty, and nothing more; only the question for one pod is answered.
      fault: ({ path }) => (path === "/api/v1/pods" && lists++ > 0 ? "refused" : undefined),
    });
    await eventually(started.metrics, (text) => text.includes('controller="ipam",result="ok"} 1'));
    const pod = await on.ipam.addPod("unheard", "a", { quiet: false, from: "a" });
    await pass(on, 40);
    expect(started.metrics()).toContain('vendor_controllers_ipam_suspects{kind="address"} 1');
    expect(await givenOut(on.ipam)).toContain(`${pod.address} ${pod.handle}`);
    await on.world.close();
  });

  it("never takes an address from the living, whatever happens, and ends with no leak", async () => {
    const counted = { runs: 0, steps: 0, leaked: 0, taken: 0, faults: 0 };
    await fc.assert(
      fc.asyncProperty(fc.array(STEP, { minLength: 25, maxLength: 60 }), fc.nat(), async (steps, seed) => {
        const { leaked, taken, faults } = await runModel(steps, seed);
        counted.faults += faults;
        counted.runs++;
        counted.steps += steps.length;
        counted.leaked += leaked;
        counted.taken += taken;
      }),
      { numRuns: 25, endOnFailure: true },
    );
    console.log(`address garbage: ${JSON.stringify(counted)}`);
    expect(counted.taken).toBeGreaterThan(0);
  });
});

const NODE_NAMES = ["a", "b", "c"] as const;
const POD_NAMES = ["p0", "p1", "p2", "p3", "p4", "p5"] as const;

const STEP = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("addPod" as const),
      pod: fc.constantFrom(...POD_NAMES),
      node: fc.constantFrom(...NODE_NAMES),
      from: fc.constantFrom(...NODE_NAMES),
      quiet: fc.boolean(),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant("removePod" as const),
      pod: fc.constantFrom(...POD_NAMES),
      how: fc.constantFrom("clean" as const, "half" as const, "leak" as const),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("toggleNode" as const), node: fc.constantFrom(...NODE_NAMES) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("wait" as const), minutes: fc.integer({ min: 1, max: 20 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("restart" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("finish" as const), pod: fc.constantFrom(...POD_NAMES) }) },
);
type Step = typeof STEP extends fc.Arbitrary<infer S> ? S : never;

async function runModel(steps: readonly Step[], seed: number) {
  const on = await stage();
  const { world, ipam } = on;
  const nodes = new Set<string>();
  const pods = new Map<string, SimulatedPod>();
  const faults = faultInjector(randomFrom(seed));
  let leaked = 0;
  let programs = 0;
  const start = () => world.start({ clock: on.clock, fault: faults.forProgram(programs++) });
  let program = start();
  let taken = 0;
  const take = () => {
    taken += Number(/released_total\{kind="address"\} (\d+)/.exec(program.metrics())?.[1] ?? 0);
  };
  const living = () => [...pods.values()].map(({ address, handle }) => `${address} ${handle}`);

  const act = async (step: Step): Promise<void> => {
    switch (step.do) {
      case "addPod":
        if (!nodes.has(step.node) || !nodes.has(step.from) || pods.has(step.pod)) return;
        pods.set(step.pod, await ipam.addPod(step.pod, step.node, step));
        return;
      case "removePod": {
        const pod = pods.get(step.pod);
        if (!pod) return;
        pods.delete(step.pod);
        if (step.how === "leak") leaked++;
        return await ipam.removePod(pod, step.how);
      }
      case "finish": {
        // Its containers have ended: the pod stays to be read, its address is nobody's.
        const pod = pods.get(step.pod);
        if (!pod) return;
        pods.delete(step.pod);
        const live = await world.client.get<KubeObject>(PODS, { namespace: "default", name: pod.name });
        await world.client.replace(PODS, { ...live, status: { phase: "Succeeded" } }, { subresource: "status" });
        leaked++;
        return await ipam.removePod(pod, "leak");
      }
      case "toggleNode":
        if (!nodes.delete(step.node)) {
          await ipam.addNode(step.node);
          nodes.add(step.node);
          return;
        }
        for (const [name, pod] of pods) {
          if (pod.node !== step.node) continue;
          pods.delete(name);
          leaked++;
        }
        return await ipam.removeNode(step.node);
      case "wait":
        return await pass(on, step.minutes);
      case "restart":
        faults.kill(programs - 1);
        take();
        program = start();
        return;
    }
  };

  for (const node of NODE_NAMES) await act({ do: "toggleNode", node });
  for (const step of steps) {
    await act(step);
    expect(await givenOut(ipam)).toEqual(expect.arrayContaining(living()));
  }
  faults.end();
  // While a pod has not said its address, one that was once given to a pod of its name might be it.
  for (const pod of pods.values()) await ipam.report(pod);
  const tunnels = [...nodes].map((node) => `vxlan-tunnel-addr-${node}`);
  const handles = [...[...pods.values()].map(({ handle }) => handle), ...tunnels].sort();
  await inTime(on, async () => (await givenOut(ipam)).map((text) => text.split(" ")[1]).sort(), handles);
  await inTime(on, async () => (await ipam.handles()).map(({ metadata }) => metadata.name).sort(), handles);
  await inTime(
    on,
    async () =>
      (await ipam.affinities()).every((one) => nodes.has((one as unknown as { spec: { node: string } }).spec.node)),
    true,
  );
  await inTime(
    on,
    async () =>
      (await ipam.blocks()).every((block) => nodes.has(affineNode(block) ?? "") || allocationsOf(block).length > 0),
    true,
  );
  expect(await givenOut(ipam)).toEqual(expect.arrayContaining(living()));
  take();
  await world.close();
  return { leaked, taken, faults: faults.count() };
}

import fc from "fast-check";
import { expect, it } from "vitest";
import { openDurableStore } from "./durable-store.ts";
import { Gone } from "./errors.ts";
import { FakeDisk } from "./fake-disk.ts";
import type { Store, WatchEvent } from "./store.ts";

/** One step of a server's life. */
type Step =
  | { do: "put"; resource: string; name: string; size: number }
  | { do: "remove"; resource: string; name: string }
  | { do: "wait" }
  | { do: "restart"; how: "close" | "kill" | "power"; seed: number };

const RESOURCES = ["/a", "/b"];
const resource = fc.constantFrom(...RESOURCES);
const name = fc.constantFrom("p", "q", "r", "s");
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ do: fc.constant("put" as const), resource, name, size: fc.nat(300) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("remove" as const), resource, name }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("wait" as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("restart" as const),
      how: fc.constantFrom("close" as const, "kill" as const, "power" as const),
      seed: fc.nat(),
    }),
  },
);

/** A write as the model remembers it; `size` undefined is a removal. */
interface Write {
  revision: number;
  resource: string;
  name: string;
  size: number | undefined;
}

function stateAfter(writes: readonly Write[]): Record<string, string> {
  const state = new Map<string, string>();
  for (const { resource, name, size, revision } of writes) {
    if (size === undefined) state.delete(`${resource} ${name}`);
    else state.set(`${resource} ${name}`, `${size} @${revision}`);
  }
  return Object.fromEntries([...state].sort());
}

function stateOf(list: (resource: string) => ReturnType<Store["list"]>): Record<string, string> {
  const entries = RESOURCES.flatMap((resource) =>
    list(resource).map((stored): [string, string] => {
      const { data, metadata } = JSON.parse(stored.body.toString());
      expect([stored.fields["size"], metadata.resourceVersion]).toEqual([String(data.length), String(stored.revision)]);
      return [`${resource} ${stored.name}`, `${data.length} @${stored.revision}`];
    }),
  );
  return Object.fromEntries(entries.sort());
}

/** The store and, beside it, all that was written: the truth a plain list knows. */
class World {
  disk = new FakeDisk();
  store!: Store;
  writes: Write[] = [];
  acknowledged = 0;
  /** What one client that watches `/a` through all of this has been told. */
  told: number[] = [];
  relists = 0;

  async open(): Promise<void> {
    this.store = await openDurableStore(this.disk, {
      historyPerResource: 20,
      firstRevision: 1,
      snapshotAfterBytes: 3_000,
    });
    this.#watch();
  }

  async take(step: Step): Promise<void> {
    switch (step.do) {
      case "put": {
        const { resource, name, size } = step;
        const object = { apiVersion: "v1", kind: "X", metadata: { name }, data: "x".repeat(size) };
        const expected = this.store.get(resource, "", name)?.revision ?? "absent";
        const { revision } = this.store.put(resource, object, expected, { size: String(size) });
        this.writes.push({ revision, resource, name, size });
        return;
      }
      case "remove": {
        const { resource, name } = step;
        const current = this.store.get(resource, "", name);
        if (current === undefined) return;
        const { revision } = this.store.remove(resource, "", name, current.revision);
        this.writes.push({ revision, resource, name, size: undefined });
        return;
      }
      case "wait":
        await this.store.durable(this.store.revision);
        this.acknowledged = this.store.revision;
        return;
      case "restart":
        await this.#restart(step.how, step.seed);
    }
  }

  async #restart(how: "close" | "kill" | "power", seed: number): Promise<void> {
    const handedOut = this.store.revision;
    if (how === "close") {
      await this.store.close();
      this.acknowledged = handedOut;
    }
    this.disk.failFrom = 0;
    this.disk = how === "power" ? this.disk.afterPowerLoss(randomFrom(seed)) : this.disk.afterKill();
    await this.open();
    expect(this.store.revision).toBeGreaterThan(handedOut);
    // What the watcher was told, before or since, was durable too.
    this.acknowledged = Math.max(this.acknowledged, ...this.told.filter((revision) => revision <= handedOut));
    this.#settleOnWhatIsThere();
  }

  /** Unacknowledged writes may be lost, but only the newest, and never a part of what came before them. */
  #settleOnWhatIsThere(): void {
    const found = stateOf((resource) => this.store.list(resource));
    const kept = this.writes.filter(({ revision }) => revision <= this.acknowledged);
    const maybe = this.writes.slice(kept.length);
    while (JSON.stringify(stateAfter(kept)) !== JSON.stringify(found)) {
      const next = maybe.shift();
      if (next === undefined) expect(found).toEqual(stateAfter(kept));
      kept.push(next!);
    }
    this.writes = kept;
    this.acknowledged = kept.at(-1)?.revision ?? 0;
  }

  #watch(): void {
    const deliver = ({ stored }: WatchEvent) => this.told.push(stored.revision);
    try {
      this.store.watch("/a", this.told.at(-1) ?? 0, deliver);
    } catch (error) {
      expect(error).toBeInstanceOf(Gone);
      this.relists++;
      this.told = [this.store.revision];
      this.store.watch("/a", this.store.revision, deliver);
    }
  }

  check(): void {
    expect(stateOf((resource) => this.store.list(resource))).toEqual(stateAfter(this.writes));
    this.#checkWatcher();
    for (const { revision } of this.writes.slice(-5)) {
      for (const resource of RESOURCES) {
        const past = this.writes.filter((write) => write.revision <= revision && write.resource === resource);
        try {
          const list = this.store.listAt(resource, revision);
          expect(stateOf((each) => (each === resource ? list : []))).toEqual(stateAfter(past));
        } catch (error) {
          expect(error).toBeInstanceOf(Gone);
        }
      }
    }
  }

  /** Told is every durable write after the last relist, each once, in order, and nothing that was lost since. */
  #checkWatcher(): void {
    const from = this.relists > 0 ? this.told[0]! : 0;
    const told = this.relists > 0 ? this.told.slice(1) : this.told;
    const real = this.writes.filter((write) => write.resource === "/a" && write.revision > from);
    expect(told).toEqual(real.map(({ revision }) => revision));
  }
}

function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

it("behaves like a plain list of writes, through any sequence of writes, crashes and power losses", async () => {
  const life = fc.array(step, { minLength: 10, maxLength: 120 });
  await fc.assert(
    fc.asyncProperty(life, async (steps) => {
      const world = new World();
      await world.open();
      for (const step of steps) {
        await world.take(step);
        if (step.do === "wait" || step.do === "restart") world.check();
      }
      await world.take({ do: "wait" });
      world.check();
    }),
    { numRuns: 150 },
  );
});

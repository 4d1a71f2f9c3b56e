import { expect } from "vitest";

/** A server that keeps named values and can be killed. What is under test is behind this: the bare store, or the whole server. */
export interface Target {
  /** Starts it on its data directory, which outlives every life. */
  start(): ProcessRun;
}

/** One process of it. Every call is rejected when the process dies before the answer: then nobody knows whether it happened. */
export interface ProcessRun {
  ready(): Promise<void>;
  /** Resolves when it is acknowledged, with its revision if the server tells. `value` undefined removes. */
  write(name: string, value: string | undefined, expect: number | "absent"): Promise<number | undefined>;
  list(): Promise<Listed>;
  /** Resolves when the watch is open and was given all that had happened by then; `"gone"` when it has to list first. */
  watch(from: number, deliver: (event: ObservedState) => void): Promise<"open" | "gone">;
  /** `kill -9`; resolves when the process is no more. */
  kill(): Promise<void>;
}

export interface ObservedState {
  readonly name: string;
  /** Undefined when it was removed. */
  readonly value: string | undefined;
  readonly revision: number;
}

export interface Listed {
  readonly revision: number;
  readonly items: readonly ObservedState[];
}

interface CrashPlan {
  /** How many writes must be acknowledged in all, and how many kills there must be at least. */
  writes: number;
  kills: number;
  writers: number;
  seed: number;
}

interface CrashReport {
  acknowledged: number;
  kills: number;
  /** How often the watcher went on where it was, and how often it could not. */
  resumed: number;
  relists: number;
}

/** What is known of one name: the last acknowledged state, and the write that was cut off, if any. */
interface Known {
  last: ObservedState | undefined;
  doubtful: { value: string | undefined } | undefined;
}

/** Kills a server again and again while it is being written to, and checks after each restart that it kept every promise. */
export async function killUntilWritten(target: Target, plan: CrashPlan): Promise<CrashReport> {
  const story = new CrashScenario(plan);
  while (story.acknowledged < plan.writes || story.kills < plan.kills) await story.liveOnce(target);
  const last = target.start();
  await last.ready();
  await story.checkObjects(last);
  await story.watcher.resume(last);
  await last.kill();
  const { resumed, relists } = story.watcher;
  return { acknowledged: story.acknowledged, kills: story.kills, resumed, relists };
}

class CrashScenario {
  acknowledged = 0;
  kills = 0;
  readonly watcher = new Watcher();
  readonly #plan: CrashPlan;
  readonly #random: () => number;
  readonly #known = new Map<string, Known>();
  #counter = 0;
  /** No answer may ever carry a lower one. */
  #highest = 0;
  #onProgress: (() => void) | undefined;

  constructor(plan: CrashPlan) {
    this.#plan = plan;
    this.#random = randomFrom(plan.seed);
  }

  async liveOnce(target: Target): Promise<void> {
    const life = target.start();
    // One life in eight ends while it is still starting.
    if (this.#random() < 0.125) {
      await new Promise((resolve) => setTimeout(resolve, this.#random() * 150));
      await this.#kill(life);
      return;
    }
    await life.ready();
    await this.checkObjects(life);
    // The watcher misses some lives, so that some of its past is gone when it comes back.
    if (this.#random() < 0.7) await this.watcher.resume(life);
    const share = Math.ceil(this.#plan.writes / this.#plan.kills);
    const killAt = this.acknowledged + Math.floor(this.#random() * 1.8 * share);
    const writers = Array.from({ length: this.#plan.writers }, (_, writer) => this.#writeUntilDeath(life, writer));
    await Promise.race([this.#reached(killAt), Promise.all(writers)]);
    await this.#kill(life);
    await Promise.all(writers);
  }

  /** All that was acknowledged is there, and nothing went back. */
  async checkObjects(life: ProcessRun): Promise<void> {
    const { revision, items } = await life.list();
    expect(revision).toBeGreaterThanOrEqual(this.#highest);
    this.#highest = revision;
    const found = new Map(items.map((item) => [item.name, item]));
    for (const [name, known] of this.#known) this.#settle(name, known, found.get(name));
    for (const name of found.keys()) expect(this.#known.has(name), `${name} was never written`).toBe(true);
  }

  #settle(name: string, known: Known, found: ObservedState | undefined): void {
    const { last, doubtful } = known;
    known.doubtful = undefined;
    const happened = doubtful !== undefined && found?.value === doubtful.value && found?.revision !== last?.revision;
    if (happened) {
      // Removed without an acknowledgement leaves no revision to check; written leaves one that must be new.
      if (found !== undefined && last !== undefined) expect(found.revision).toBeGreaterThan(last.revision);
    } else if (last?.value === undefined) {
      expect(found, `${name} was removed`).toBeUndefined();
    } else {
      expect(found, `${name} was acknowledged`).toEqual(last);
    }
    known.last = found;
  }

  async #writeUntilDeath(life: ProcessRun, writer: number): Promise<void> {
    for (;;) {
      const name = `w${writer}-${Math.floor(this.#random() * 12)}`;
      const known = this.#known.get(name) ?? { last: undefined, doubtful: undefined };
      this.#known.set(name, known);
      const exists = known.last?.value !== undefined;
      const value =
        exists && this.#random() < 0.25 ? undefined : `value ${this.#counter++} ${"x".repeat(this.#random() * 400)}`;
      if (!exists && value === undefined) continue;
      known.doubtful = { value };
      try {
        const revision = await life.write(name, value, exists ? known.last!.revision : "absent");
        this.#acknowledge(known, { name, value, revision });
      } catch (error) {
        if (error instanceof Died) return;
        throw error;
      }
    }
  }

  #acknowledge(known: Known, write: Acknowledged): void {
    const before = known.last?.revision ?? 0;
    // Above the one before: that is all there is to know of a revision nobody told.
    const revision = write.revision ?? before + 1;
    expect(revision).toBeGreaterThan(before);
    known.last = { ...write, revision };
    known.doubtful = undefined;
    this.#highest = Math.max(this.#highest, revision);
    this.watcher.acknowledged.push({ ...write, before });
    this.acknowledged++;
    this.#onProgress?.();
  }

  /** Resolves a random moment after so many acknowledgements: in the middle of whatever the server does then. */
  #reached(acknowledgements: number): Promise<void> {
    return new Promise((resolve) => {
      this.#onProgress = () => {
        if (this.acknowledged < acknowledgements) return;
        this.#onProgress = undefined;
        setTimeout(resolve, this.#random() * 5);
      };
      this.#onProgress();
    });
  }

  async #kill(life: ProcessRun): Promise<void> {
    await life.kill();
    this.kills++;
  }
}

interface Acknowledged {
  readonly name: string;
  readonly value: string | undefined;
  readonly revision: number | undefined;
}

/** A client that watches through every life. */
class Watcher {
  resumed = 0;
  relists = 0;
  /** Acknowledged writes, with the revision their object had before; each must be seen once, unless a relist came after it. */
  acknowledged: (Acknowledged & { before: number })[] = [];
  #from = 0;
  #seen: ObservedState[] = [];

  /** Goes on where it was, in a new life. */
  async resume(life: ProcessRun): Promise<void> {
    const deliver = (event: ObservedState) => void this.#seen.push(event);
    if (this.#from > 0 && (await life.watch(this.#seen.at(-1)?.revision ?? this.#from, deliver)) === "open") {
      this.resumed++;
    } else {
      if (this.#from > 0) this.relists++;
      this.acknowledged = [];
      this.#seen = [];
      this.#from = (await life.list()).revision;
      expect(await life.watch(this.#from, deliver)).toBe("open");
    }
    // A watch is given its past before it is open, so whatever is missing now was lost.
    expect(this.acknowledged.filter((write) => !this.#saw(write))).toEqual([]);
    const revisions = this.#seen.map(({ revision }) => revision);
    expect(revisions, "events come in order, each once").toEqual([...new Set(revisions)].sort((a, b) => a - b));
  }

  #saw({ name, value, revision, before }: Acknowledged & { before: number }): boolean {
    return this.#seen.some(
      (event) =>
        event.name === name &&
        event.value === value &&
        (revision === undefined ? event.revision > before : event.revision === revision),
    );
  }
}

/** The process died before it answered. */
export class Died extends Error {}

function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

import type { Change } from "../../../cluster/object-cache.ts";
import type { Clock } from "../../../kit/clock.ts";
import { controllerOf } from "../garbage/owner-references.ts";
import type { Pod } from "../workload-types.ts";

/** An expectation nothing ever answers (the watch was broken just then) is given up after this long. */
const GIVE_UP_MS = 300_000;

/**
 * A controller's own writes come back to it through the watch, a moment later. Until they have, what it sees is older than what it
 * did, and acting on it would create or delete twice.
 */
export class Expectations {
  readonly #clock: Clock;
  readonly #byOwner = new Map<string, { creations: number; deletions: Set<string>; since: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Called before the creations are sent: their events may overtake their answers. */
  expectCreations(owner: string, count: number): void {
    this.#of(owner).creations += count;
  }

  creationFailed(owner: string): void {
    this.#of(owner).creations--;
  }

  expectDeletion(owner: string, podUid: string): void {
    this.#of(owner).deletions.add(podUid);
  }

  deletionFailed(owner: string, podUid: string): void {
    this.#byOwner.get(owner)?.deletions.delete(podUid);
  }

  observe(change: Change<Pod>): void {
    const expected = this.#byOwner.get(controllerOf(change.object)?.uid ?? "");
    if (!expected) return;
    if (change.type === "added") expected.creations--;
    const going = change.type === "deleted" || change.object.metadata.deletionTimestamp !== undefined;
    if (going) expected.deletions.delete(change.object.metadata.uid ?? "");
  }

  settled(owner: string): boolean {
    const expected = this.#byOwner.get(owner);
    if (!expected) return true;
    const met = expected.creations <= 0 && expected.deletions.size === 0;
    if (!met && this.#clock.now() - expected.since < GIVE_UP_MS) return false;
    this.#byOwner.delete(owner);
    return true;
  }

  forget(owner: string): void {
    this.#byOwner.delete(owner);
  }

  #of(owner: string) {
    const known = this.#byOwner.get(owner);
    if (known) {
      known.since = this.#clock.now();
      return known;
    }
    const fresh = { creations: 0, deletions: new Set<string>(), since: this.#clock.now() };
    this.#byOwner.set(owner, fresh);
    return fresh;
  }
}

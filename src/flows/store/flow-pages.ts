import { randomBytes } from "node:crypto";
import { errors } from "./errors.ts";
import type { Selected } from "./selection.ts";
import type { Visible } from "./visibility.ts";

/** Lists that wait for their next page, and the flows in them. */
const MOST_LISTS = 64;
const MOST_FLOWS = 200_000;
const KEPT_MS = 5 * 60_000;

/** A list as it was when its first page was given. */
export interface KeptList<Head> {
  head: Head;
  flows: readonly Selected[];
  /** What was asked: a token is of that list only. */
  asked: string;
  /** What its reader saw of each namespace; undefined: everything. */
  answers: ReadonlyMap<string, boolean> | undefined;
}

/**
 * Pages of lists. What a list shows is kept until its reader has it all, so that flows that come in between are neither missed nor shown
 * twice; only so much is kept, and the oldest goes first. A token is a list that cannot be guessed, and a place in it.
 */
export class FlowPages<Head> {
  readonly #lists = new Map<string, KeptList<Head> & { until: number }>();
  #flows = 0;

  /** The first part of its tokens. */
  keep(list: KeptList<Head>, now: number): string {
    const id = randomBytes(18).toString("base64url");
    this.#lists.set(id, { ...list, until: now + KEPT_MS });
    this.#flows += list.flows.length;
    for (const [oldest, { until }] of this.#lists) {
      const isOver = until <= now || this.#lists.size > MOST_LISTS || this.#flows > MOST_FLOWS;
      if (isOver && oldest !== id) this.#drop(oldest);
    }
    return id;
  }

  /** Throws where the token is of no list that is kept, of another question, or of a reader who saw something else. */
  take(
    token: string,
    { asked, visible, now }: { asked: string; visible: Visible; now: number },
  ): { id: string; list: KeptList<Head>; from: number } {
    const [, id = "", place = ""] = /^([\w-]{24})\.(\d{1,9})$/.exec(token) ?? [];
    const list = this.#lists.get(id);
    if (!list || list.until <= now || list.asked !== asked || !seesTheSame(list.answers, visible))
      throw errors.FLOW_CONTINUE_EXPIRED();
    return { id, list, from: Number(place) };
  }

  #drop(id: string): void {
    this.#flows -= this.#lists.get(id)?.flows.length ?? 0;
    this.#lists.delete(id);
  }
}

function seesTheSame(answers: ReadonlyMap<string, boolean> | undefined, visible: Visible): boolean {
  if (!answers || !visible) return !answers && !visible;
  return [...answers].every(([namespace, answer]) => (visible(namespace) === true) === answer);
}

import type { ProbeSize } from "./overlay-frame.ts";

/** So many probes without an answer in a row are no accident. */
export const PROBES = 3;

export interface PairLoss {
  /** Of packets that are lost: `small` means packets of every size. */
  size: ProbeSize;
  /** The direction that is known to lose them; the other may lose them too. */
  direction: "to" | "from";
}

/** What is known of this node and one other. Probes of one turn are evaluated at the next: an answer has all the time between. */
export class OverlayPair {
  #pending: Partial<Record<ProbeSize, string>> | undefined;
  readonly #failures = { small: 0, full: 0 };
  readonly #receivedAt: Partial<Record<ProbeSize, number>> = {};
  #reached = false;
  #answeredAt: number | undefined;

  /** Probes of every size have been answered. */
  get reached(): boolean {
    return this.#reached;
  }

  get answeredAt(): number | undefined {
    return this.#answeredAt;
  }

  /** It deserves a probe at every turn. */
  get isSuspect(): boolean {
    return !this.#reached || this.#failures.small > 0 || this.#failures.full > 0;
  }

  sent(nonces: Record<ProbeSize, string>): void {
    this.#pending = { ...nonces };
  }

  /** An answer counts once, and only for what was asked. */
  answered(size: ProbeSize, nonce: string, now: number): void {
    if (this.#pending?.[size] !== nonce) return;
    delete this.#pending[size];
    this.#answeredAt = now;
  }

  /** A probe of the other node arrived. */
  received(size: ProbeSize, now: number): void {
    this.#receivedAt[size] = now;
  }

  /** `answers`: whether an answer could be expected. */
  evaluate(answers: boolean): void {
    const pending = this.#pending;
    this.#pending = undefined;
    if (!answers) this.#failures.small = this.#failures.full = 0;
    else if (pending) {
      this.#failures.small = pending.small === undefined ? 0 : this.#failures.small + 1;
      // Where nothing arrives, the size says nothing.
      this.#failures.full = pending.full === undefined || this.#failures.small > 0 ? 0 : this.#failures.full + 1;
      if (pending.small === undefined && pending.full === undefined) this.#reached = true;
    }
  }

  /** A probe of the other node that arrived since then proves the direction from it, and leaves the direction to it. */
  loss(since: number): PairLoss | undefined {
    const size = (["small", "full"] as const).find((one) => this.#failures[one] >= PROBES);
    if (!size) return undefined;
    return { size, direction: (this.#receivedAt[size] ?? 0) >= since ? "to" : "from" };
  }
}

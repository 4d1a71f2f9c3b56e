/** Lives of a node that are remembered: what one of them sent again is recognised. */
const BOOTS = 4;
const MOST_NODES = 20_000;
/** Milliseconds; what a node's clock may be ahead, and how old a batch may be. */
const AHEAD = 2_000;
const LATE = 60_000;
/** A delay that stays the same is no delay: the node's clock is behind. */
const STEADY = 2_000;
const STEADY_BATCHES = 3;

export interface NodeTrouble {
  /** Sent something once, and nothing for a minute. */
  silent: string[];
  /** Sends what is more than a minute old. */
  late: string[];
  /** Its clock differs. */
  skewed: string[];
}

interface NodeReport {
  /** The last interval of each life of the node. */
  boots: Map<string, number>;
  arrived: number;
  /** Milliseconds between the end of what the last batch counted and its arrival. */
  delay: number;
  /** Batches in a row with that delay. */
  steady: number;
}

/** What nodes have sent: which batch is a repeat, and which node is in trouble. */
export class NodeReports {
  readonly #nodes = new Map<string, NodeReport>();

  /** The last interval of one life of a node. */
  lastOf(node: string, boot: string): number | undefined {
    return this.#nodes.get(node)?.boots.get(boot);
  }

  /** Nodes that sent something in the last minute. */
  sending(now: number): number {
    return [...this.#nodes.values()].filter(({ arrived }) => now - arrived <= LATE).length;
  }

  /** False: this interval, or a later one, was there before. */
  isNew({ node, boot, interval }: { node: string; boot: string; interval: number }): boolean {
    const last = this.#nodes.get(node)?.boots.get(boot);
    return last === undefined || interval > last;
  }

  note(
    { node, boot, interval, until }: { node: string; boot: string; interval: number; until: number },
    now: number,
  ): void {
    const delay = now - until;
    const before = this.#nodes.get(node);
    const report: NodeReport = before ?? { boots: new Map(), arrived: now, delay, steady: 0 };
    report.steady = Math.abs(delay - report.delay) <= STEADY ? report.steady + 1 : 1;
    report.arrived = now;
    report.delay = delay;
    report.boots.delete(boot);
    report.boots.set(boot, interval);
    if (report.boots.size > BOOTS) report.boots.delete(first(report.boots));
    // In the order of arrival: the node that was silent longest is forgotten first.
    this.#nodes.delete(node);
    this.#nodes.set(node, report);
    if (this.#nodes.size > MOST_NODES) this.#nodes.delete(first(this.#nodes));
  }

  /** Nodes that were silent for longer than `history` are no longer of the cluster. */
  trouble(now: number, history: number): NodeTrouble {
    const found: NodeTrouble = { silent: [], late: [], skewed: [] };
    for (const [node, { arrived, delay, steady }] of this.#nodes) {
      if (now - arrived > history) continue;
      if (now - arrived > LATE) found.silent.push(node);
      if (delay < -AHEAD || (delay > LATE && steady >= STEADY_BATCHES)) found.skewed.push(node);
      else if (delay > LATE) found.late.push(node);
    }
    for (const nodes of Object.values(found)) nodes.sort();
    return found;
  }
}

function first<T>(of: Map<T, unknown>): T {
  const [key] = of.keys();
  return key as T;
}

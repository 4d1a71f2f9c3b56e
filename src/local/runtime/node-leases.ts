import type { Client } from "../../cluster/client.ts";
import { isNotFound } from "../../cluster/failures.ts";
import { LEASES, NODES } from "../../cluster/kinds.ts";
import { type Clock, sleep } from "../../kit/clock.ts";
import type { Log } from "../../kit/log.ts";
import { microTimestamp } from "../controllers/timestamp.ts";
import type { Node } from "../controllers/workload-types.ts";
import { leaseObject } from "./node-object.ts";

/** A node becomes Unknown after 40 s, so half of that leaves time for one missed renewal. */
const MIN_PERIOD_MS = 10_000;
const MAX_PERIOD_MS = 20_000;
/** Budget per renewal: a thousand nodes cost fifty small writes a second, spread evenly. */
const MS_PER_NODE = 20;
const TICK_MS = 500;

/** Renews the leases of all living nodes, a few at a time. */
export class NodeLeases {
  readonly #client: Client;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #due = new Map<string, number>();
  readonly #stopping = new AbortController();
  readonly #ended: Promise<void>;

  constructor(client: Client, clock: Clock, log: Log) {
    this.#client = client;
    this.#clock = clock;
    this.#log = log;
    this.#ended = this.#run();
  }

  /** Renews now, and from now on. */
  async keep(node: string): Promise<void> {
    await this.#renew(node);
  }

  drop(node: string): void {
    this.#due.delete(node);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#ended;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    for (;;) {
      await sleep(this.#clock, TICK_MS, signal);
      if (signal.aborted) return;
      const now = this.#clock.now();
      const due = [...this.#due].filter(([, at]) => at <= now).map(([node]) => node);
      await Promise.all(due.map((node) => this.#renewQuietly(node)));
    }
  }

  async #renewQuietly(node: string): Promise<void> {
    try {
      await this.#renew(node);
    } catch (error) {
      if (!this.#stopping.signal.aborted) this.#log.warn({ node, error }, "lease not renewed, will retry");
    }
  }

  async #renew(node: string): Promise<void> {
    const period = Math.min(MAX_PERIOD_MS, Math.max(MIN_PERIOD_MS, this.#due.size * MS_PER_NODE));
    // Spread by up to a tenth, so that nodes added together do not stay together.
    this.#due.set(node, this.#clock.now() + period * (1 - Math.random() / 10));
    const patch = { spec: { renewTime: microTimestamp(this.#clock.now()) } };
    const ref = { name: node, namespace: "kube-node-lease" };
    try {
      await this.#client.patch(LEASES, ref, { type: "merge", patch });
    } catch (error) {
      if (!isNotFound(error)) throw error;
      const owner = await this.#client.get<Node>(NODES, { name: node });
      await this.#client.create(LEASES, leaseObject(owner, this.#clock.now()));
    }
  }
}

import type { Calculator } from "../calc/calculator.ts";
import type { ModelDelta } from "../calc/model.ts";
import { ModelCopy } from "../calc/model-copy.ts";
import type { ApplyReport, ObjectOutcome } from "../dataplane/contract.ts";
import { emptyDelta } from "../dataplane/model-delta.ts";
import { type Backoff, backoffDelay } from "../kit/backoff.ts";
import { type Clock, sleep } from "../kit/clock.ts";
import { CodedError } from "../kit/errors.ts";
import type { Log } from "../kit/log.ts";
import type { AgentMetrics } from "./agent-metrics.ts";
import { errors } from "./errors.ts";

/** What the model is made true in: routes and one or the other data plane. */
export interface ModelTarget {
  apply(delta: ModelDelta): Promise<ApplyReport>;
  resync(): Promise<void>;
  sweep(): Promise<{ removed: string[] }>;
}

export interface ModelLoopOptions {
  calculator: Pick<Calculator, "takeDelta">;
  target: ModelTarget;
  clock: Clock;
  log: Log;
  metrics: AgentMetrics;
}

const BACKOFF: Backoff = { initialMs: 100, maxMs: 30_000, jitter: 0.2 };
/** Now and then everything is compared with the kernel: others change it too. */
const RESYNC_MS = 90_000;

/**
 * What of these kinds is not in a report has not failed: interfaces come and go without a delta, with them the routes that wait for them, and each
 * report has all of both.
 */
const REPORTED_WHOLE: readonly ObjectOutcome["kind"][] = ["interface", "route"];

/** Carries what the calculation says into the kernel, one delta after the other, and tries again what failed. */
export class ModelLoop {
  readonly #options: ModelLoopOptions;
  readonly #model = new ModelCopy();
  readonly #failed = new Map<string, ObjectOutcome>();
  readonly #waiters = new Set<() => void>();
  readonly #listeners = new Set<() => void>();
  #wake: () => void = () => {};
  #asked = false;
  #failures = 0;
  #failure: Error | undefined;
  #swept = false;
  #applied = false;
  #lastTurn: number;
  #resyncAt: number;

  constructor(options: ModelLoopOptions) {
    this.#options = options;
    this.#lastTurn = options.clock.now();
    this.#resyncAt = options.clock.now() + RESYNC_MS;
  }

  get model(): ModelCopy {
    return this.#model;
  }

  /** Whether the whole model, in sync, has been carried out at least once. */
  get ready(): boolean {
    return this.#applied;
  }

  /** Why it may be stuck; undefined while it turns. */
  stuck(afterMs: number): string | undefined {
    const idle = this.#options.clock.now() - this.#lastTurn;
    return idle > afterMs ? `nothing was applied for ${Math.round(idle / 1000)} s` : undefined;
  }

  problems(): ObjectOutcome[] {
    return [...this.#failed.values()];
  }

  /** Why nothing of the last turn was carried out; undefined where it was. */
  failure(): Error | undefined {
    return this.#failure;
  }

  /** There may be something new to take, or something that failed for lack of what is there now. */
  poke(): void {
    this.#asked = true;
    this.#wake();
  }

  /** Calls back after each turn, in which the model may have changed; what it returns ends that. */
  onTurn(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Runs until stopped. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    while (!signal.aborted) {
      const due = Math.max(0, Math.min(this.#nextRetryMs(), this.#resyncAt - clock.now()));
      if (!this.#asked) await this.#pause(due, signal);
      if (signal.aborted) return;
      if (this.#asked || this.#failures > 0 || clock.now() >= this.#resyncAt) {
        this.#asked = false;
        await this.#turn();
      }
      this.#lastTurn = clock.now();
    }
  }

  /** Resolves once `is` holds of the model and nothing of it failed to be carried out; rejects with what failed when time is up. */
  async inEffect(id: string, is: (model: ModelCopy) => boolean, timeoutMs: number): Promise<void> {
    const { clock } = this.#options;
    const deadline = clock.now() + timeoutMs;
    const key = `endpoint ${id}`;
    this.poke();
    while (!(is(this.#model) && this.#applied && !this.#failed.has(key))) {
      const left = deadline - clock.now();
      if (left <= 0) {
        const failed = this.#failed.get(key)?.failed;
        const known = is(this.#model);
        throw errors.POD_POLICY_LATE(
          id,
          failed?.message ?? (known ? "it is being programmed" : "the pod is not known yet"),
        );
      }
      await this.#nextTurn(left);
    }
  }

  #nextRetryMs(): number {
    if (this.#failures === 0) return Number.POSITIVE_INFINITY;
    return backoffDelay(BACKOFF, this.#failures, Math.random());
  }

  async #pause(ms: number, signal: AbortSignal): Promise<void> {
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    const stop = () => woken.abort();
    signal.addEventListener("abort", stop, { once: true });
    // Live while idle too: an agent with nothing to do still turns.
    await sleep(this.#options.clock, Math.min(ms, 10_000), woken.signal);
    signal.removeEventListener("abort", stop);
    this.#wake = () => {};
  }

  async #nextTurn(withinMs: number): Promise<void> {
    const done = new AbortController();
    const wake = () => done.abort();
    this.#waiters.add(wake);
    await sleep(this.#options.clock, withinMs, done.signal);
    this.#waiters.delete(wake);
  }

  async #turn(): Promise<void> {
    const { calculator, target, clock, log, metrics } = this.#options;
    const began = clock.now();
    const delta = calculator.takeDelta();
    const retrying = this.#failures > 0;
    try {
      if (began >= this.#resyncAt && this.#applied) {
        this.#resyncAt = began + RESYNC_MS;
        metrics.resyncs.add();
        await target.resync();
      }
      if (delta) this.#model.apply(delta);
      const report = await target.apply(delta ?? emptyDelta(this.#model.inSync));
      this.#note(report, delta);
      this.#failure = undefined;
      if (this.#model.inSync) this.#applied = true;
      if (this.#applied && !this.#swept) {
        const { removed } = await target.sweep();
        this.#swept = true;
        if (removed.length > 0) log.info({ removed }, "removed leftovers of an earlier run");
      }
      if (delta) metrics.applySeconds.observe((clock.now() - began) / 1000);
      metrics.endpoints.set(this.#model.endpoints.size);
    } catch (error) {
      this.#failures++;
      this.#failure = error instanceof Error ? error : new Error(String(error));
      metrics.applyErrors.add({ code: error instanceof CodedError ? error.code : "INTERNAL" });
      log.error(
        { error },
        retrying ? "still cannot apply the desired state" : "cannot apply the desired state, retrying",
      );
    }
    for (const wake of [...this.#waiters, ...this.#listeners]) wake();
  }

  #note({ objects }: ApplyReport, delta: ModelDelta | undefined): void {
    const { log } = this.#options;
    for (const id of delta?.endpoints.remove ?? []) this.#failed.delete(`endpoint ${id}`);
    for (const id of delta?.hostEndpoints.remove ?? []) this.#failed.delete(`hostEndpoint ${id}`);
    for (const id of delta?.routes.remove ?? []) this.#failed.delete(`route ${id}`);
    const reported = new Set(objects.map(({ kind, id }) => `${kind} ${id}`));
    for (const [key, { kind }] of this.#failed) {
      if (REPORTED_WHOLE.includes(kind) && !reported.has(key)) this.#failed.delete(key);
    }
    for (const outcome of objects) {
      const key = `${outcome.kind} ${outcome.id}`;
      if (!outcome.failed) this.#failed.delete(key);
      else if (this.#failed.get(key)?.failed?.message !== outcome.failed.message) {
        // While pods come and go, routes wait for their interfaces for a moment: what lasts is said by the watch of problems.
        log.debug({ kind: outcome.kind, id: outcome.id, code: outcome.failed.code }, outcome.failed.message);
        this.#failed.set(key, outcome);
      }
    }
    this.#failures = this.#failed.size === 0 ? 0 : this.#failures + 1;
  }
}

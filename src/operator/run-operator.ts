import { vendorNames } from "../api/names.ts";
import { withFix } from "../api/protocol/status-message.ts";
import type { Client } from "../cluster/client.ts";
import { runController } from "../cluster/controller.ts";
import { createEvents } from "../cluster/events.ts";
import type { Clock } from "../kit/clock.ts";
import { CodedError } from "../kit/errors.ts";
import { keyedQueue } from "../kit/keyed-queue.ts";
import type { Log } from "../kit/log.ts";
import { type ApplyTools, MANAGER } from "./apply.ts";
import type { OperatorConfig } from "./config.ts";
import { driftReport } from "./drift.ts";
import type { Observer } from "./observe.ts";
import type { Observed } from "./observed.ts";
import type { OperatorMetrics } from "./operator-metrics.ts";
import { degraded, type Outcome, PARTS, type Part } from "./outcome.ts";
import { createReconcileContext } from "./reconcile-context.ts";
import { outcomeOfFailure, reconcilePart } from "./reconcile-part.ts";
import { reportRefusal } from "./single-operator.ts";
import { reportOutcome } from "./status.ts";

export interface OperatorWork {
  client: Client;
  config: OperatorConfig;
  observer: Observer;
  metrics: OperatorMetrics;
  clock: Clock;
  log: Log;
}

/**
 * Changes come in bursts: a pass looks at what a burst has come to. Where a pass takes long, because there is much to look at, passes
 * come further apart: a thousand pods that become ready one by one are worth a few looks, not a thousand.
 */
const SETTLE_MS = 20;
const LONGEST_SETTLE_MS = 1_000;
const REST_PER_WORK = 4;
/** Certificates come to their end, and what we cannot watch may change. */
const RESYNC_MS = 10 * 60_000;
const RETRY_MS = 15_000;
const STATUS_DEFINITION = `${vendorNames.kinds.status.plural}.${vendorNames.groups.operator.group}`;
const BACKOFF = { initialMs: 50, maxMs: 10_000, jitter: 0.2 };

export interface Running {
  changed(): void;
  stop(): Promise<void>;
  /** Rejects with what the operator cannot go on from. */
  fatal: Promise<never>;
}

/** One worker for all parts: they look at the same cluster, and one after another they never act on each other's half-done work. */
export function runOperator(work: OperatorWork): Running {
  const { client, config, observer, metrics, clock, log } = work;
  const queue = keyedQueue({ clock, backoff: BACKOFF });
  const putBack = driftReport();
  const events = createEvents(client, MANAGER, clock, log);
  const took = new Map<Part, number>();
  const stopping = new AbortController();
  let giveUp: (error: unknown) => void = () => {};
  const fatal = new Promise<never>((_, reject) => {
    giveUp = reject;
  });
  fatal.catch(() => {});

  const toolsFor = (part: Part): ApplyTools => ({
    client,
    events,
    live: observer.live,
    log: log.child({ part }),
    signal: stopping.signal,
    onDrift: (drift) => {
      putBack.note(part, drift, clock.now());
      metrics.drift(part);
    },
    onWrite: (did) => metrics.wrote(part, did),
  });
  const hands = Object.fromEntries(PARTS.map((part) => [part, createReconcileContext(toolsFor(part), observer)]));

  const look = async (part: Part): Promise<{ observed: Observed; outcome: Outcome; again: boolean }> => {
    const own = hands[part];
    if (!own) throw new TypeError(`no part ${part}`);
    const observed = observer.snapshot();
    try {
      return { observed, outcome: await reconcilePart(part, observed, own), again: false };
    } catch (error) {
      if (stopping.signal.aborted) throw error;
      if (error instanceof CodedError && error.code === "SECOND_OPERATOR") {
        await reportRefusal(client, config.namespace, clock.now(), MANAGER).catch(() => {});
        giveUp(error);
        throw error;
      }
      const outcome = outcomeOfFailure(error, queue.failures(part));
      if (!outcome) throw error;
      log.warn({ part, error }, "reconcile failed; see the VendorStatus");
      return { observed, outcome, again: true };
    }
  };

  const reportMissing = async (missing: readonly string[]) => {
    const message = withFix(
      `The operator waits for custom resource definitions that do not exist: ${missing.join(", ")}. Nothing is reconciled until then.`,
      "kubectl apply --server-side -f operator-crds.yaml",
    );
    const outcome = degraded("DefinitionsMissing", message, true);
    await reportOutcome(toolsFor("network"), "network", observer.snapshot(), outcome, []);
    metrics.reconciled("network", outcome, 0);
  };

  const controller = runController({
    name: MANAGER,
    watches: [],
    queue,
    log,
    reconcile: async (key) => {
      const part = key as Part;
      const missing = observer.missingDefinitions();
      if (missing.length > 0) {
        // Reconciling would take objects that cannot be read for objects that are gone. Reported once, if it can be.
        if (part === "network" && !missing.includes(STATUS_DEFINITION)) await reportMissing(missing);
        return { requeueAfterMs: RETRY_MS };
      }
      const began = clock.now();
      const { observed, outcome, again } = await look(part);
      // The outcome is reported for the generation it was computed from: the request may have changed during the pass.
      await reportOutcome(toolsFor(part), part, observed, outcome, putBack.of(part, clock.now()));
      took.set(part, clock.now() - began);
      metrics.reconciled(part, outcome, clock.now() - began);
      if (again) queue.retry(part);
      return { requeueAfterMs: recheckMs(outcome) };
    },
  });

  const changed = () => {
    const work = [...took.values()].reduce((sum, ms) => sum + ms, 0);
    const settleMs = Math.min(Math.max(SETTLE_MS, work * REST_PER_WORK), LONGEST_SETTLE_MS);
    for (const part of PARTS) queue.addAfter(part, settleMs);
  };
  changed();
  return {
    changed,
    fatal,
    async stop() {
      stopping.abort(new Error("the operator stops"));
      await controller.stop();
    },
  };
}

function recheckMs(outcome: Outcome): number {
  if (outcome.kind === "progressing") return outcome.recheckMs ?? RETRY_MS;
  return outcome.kind === "degraded" && outcome.retry ? RETRY_MS : RESYNC_MS;
}

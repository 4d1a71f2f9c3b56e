import type { StepEvent } from "../../src/procedures/run/step-event.ts";

type EngineModule = typeof import("../../src/procedures/run/engine.ts");
type ObserveModule = typeof import("../../src/procedures/observe.ts");
type PreviewModule = typeof import("../../src/procedures/preview-plan.ts");
type UpgradeModule = typeof import("../../src/procedures/upgrade/gather-upgrade.ts");

/** Several sessions that start the same run: it runs once, for the first of them, and each prints all of it. */
interface Party {
  size: number;
  started: (() => Promise<unknown>)[];
  outcome: Promise<unknown>;
  settle: { resolve(value: unknown): void; reject(error: Error): void };
  /** The run is interrupted when this many steps are done. */
  interruptAfter: number | undefined;
  interrupt: AbortController;
}

let party: Party | undefined;

function deferred(): Pick<Party, "outcome" | "settle"> {
  let settle: Party["settle"] | undefined;
  const outcome = new Promise<unknown>((resolve, reject) => {
    settle = { resolve, reject };
  });
  outcome.catch(() => {});
  return { outcome, settle: settle as Party["settle"] };
}

let reads = new Map<string, Promise<unknown>>();

/** What is read from now on is read anew. */
export function forgetReads(): void {
  reads = new Map();
}

/** A function that reads the cluster: once for all views, and for all commands until one changes something. */
function shareReads<Args extends readonly unknown[], T>(
  read: (...args: Args) => Promise<T>,
  keyOf: (...args: Args) => unknown,
): (...args: Args) => Promise<T> {
  return (...args) => {
    const key = JSON.stringify([read.name, keyOf(...args)]);
    const found = reads.get(key) ?? read(...args);
    reads.set(key, found);
    return found as Promise<T>;
  };
}

export function shareObservations(module: ObserveModule): ObserveModule {
  const keyOf: (...args: Parameters<ObserveModule["observe"]>) => unknown = (
    _client,
    names,
    { owned, stored, kind },
  ) => {
    return [names.dialect, owned, stored, kind];
  };
  return { ...module, observe: shareReads(module.observe, keyOf) };
}

export function sharePreviews(module: PreviewModule): PreviewModule {
  return { ...module, previewPlan: shareReads(module.previewPlan, ({ hash }) => hash) };
}

export function shareUpgrades(module: UpgradeModule): UpgradeModule {
  return { ...module, gatherUpgrade: shareReads(module.gatherUpgrade, (_seen, path) => path) };
}

/** Does the same for each of these views, so that what changes the cluster is done once. */
export async function together<View, T>(
  views: readonly View[],
  { interruptAfter }: { interruptAfter?: number | undefined },
  each: (view: View, signal: AbortSignal) => Promise<T>,
): Promise<T[]> {
  const mine: Party = {
    size: views.length,
    started: [],
    ...deferred(),
    interruptAfter,
    interrupt: new AbortController(),
  };
  // A session that ends without having started the run would keep the others waiting for ever.
  const alone = (result: T) => {
    mine.settle.reject(new Error("one of the views ended without starting the run"));
    return result;
  };
  party = mine;
  try {
    return await Promise.all(views.map((view) => each(view, mine.interrupt.signal).then(alone)));
  } finally {
    party = undefined;
  }
}

/** The engine's module, its runs shared. */
export function shareRuns(engine: EngineModule): EngineModule {
  return {
    ...engine,
    startRun: (...args) => replayed(() => engine.startRun(...args)),
    resumeRun: (...args) => replayed(() => engine.resumeRun(...args)),
    rollbackRun: (...args) => replayed(() => engine.rollbackRun(...args)),
    abortRun: (...args) => once(() => engine.abortRun(...args)),
  };
}

interface Collected {
  events: StepEvent[];
  failure?: unknown;
}

async function* replayed(start: () => AsyncIterable<StepEvent>): AsyncIterable<StepEvent> {
  const { events, failure } = await once(() => collect(start()));
  yield* events;
  if (failure !== undefined) throw failure;
}

async function collect(source: AsyncIterable<StepEvent>): Promise<Collected> {
  const events: StepEvent[] = [];
  try {
    for await (const event of source) {
      events.push(event);
      const { interruptAfter, interrupt } = party ?? {};
      if (event.event === "step" && event.state === "done" && event.number === interruptAfter) interrupt?.abort();
    }
    return { events };
  } catch (failure) {
    return { events, failure };
  }
}

async function once<T>(run: () => Promise<T>): Promise<T> {
  if (!party) return await run();
  const { started, size, outcome, settle } = party;
  started.push(run);
  if (started.length === size) settle.resolve(started[0]?.());
  return (await outcome) as T;
}

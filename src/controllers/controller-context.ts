import type { Client } from "../cluster/client.ts";
import type { Reconcile, Watch } from "../cluster/controller.ts";
import type { Events } from "../cluster/events.ts";
import type { Clock } from "../kit/clock.ts";
import { type KeyedQueue, keyedQueue } from "../kit/keyed-queue.ts";
import type { Log } from "../kit/log.ts";
import type { ControllersConfig } from "./config.ts";
import type { ControllersMetrics } from "./controllers-metrics.ts";
import type { Informers } from "./informers.ts";
import { isRace } from "./race.ts";
import type { SettingsStore } from "./settings/settings-holder.ts";

/** Dependencies of every controller of this module. */
export interface ControllerContext {
  client: Client;
  informers: Informers;
  settings: SettingsStore;
  config: ControllersConfig;
  events: Events;
  metrics: ControllersMetrics;
  clock: Clock;
  log: Log;
}

/** Someone else was faster, or our copy is a moment behind: the next look will see it. */
const RESYNC_MS = 100;

/** Counts what a reconcile does, and takes a lost race for what it is: a reason to look again, not a failure. */
export function observed({ metrics }: ControllerContext, controller: string, reconcile: Reconcile): Reconcile {
  return async (key, signal) => {
    try {
      const result = await reconcile(key, signal);
      metrics.reconciles.add({ controller, result: "ok" });
      return result;
    } catch (error) {
      if (isRace(error)) {
        metrics.reconciles.add({ controller, result: "raced" });
        return { requeueAfterMs: RESYNC_MS };
      }
      metrics.reconciles.add({ controller, result: "failed" });
      throw error;
    }
  };
}

export function queueOf({ clock }: ControllerContext): KeyedQueue {
  return keyedQueue({ clock });
}

/** Something to have before the first key is worked on, which brings no keys itself. */
export function awaiting(synced: Promise<void>): Watch {
  return { synced, start: () => () => {} };
}

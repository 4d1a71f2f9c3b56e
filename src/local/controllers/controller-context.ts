import type { Client } from "../../cluster/client.ts";
import type { Clock } from "../../kit/clock.ts";
import type { Log } from "../../kit/log.ts";
import type { EventRecorder, EventSource } from "./event-recorder.ts";
import type { SharedInformers } from "./shared-informers.ts";

/** What every controller is given. They know each other only through the API. */
export interface ControllerContext {
  informers: SharedInformers;
  /** A client that signs its writes with this name. */
  clientFor(userAgent: string): Client;
  recorderFor(source: EventSource): EventRecorder;
  clock: Clock;
  log: Log;
}

/** One loop: which changes concern which key, and what to do about a key. */
export interface ControllerLoop {
  name: string;
  /** How many keys are worked on at once. */
  workers: number;
  /** Registers the sources of keys; called once, before the first reconcile. */
  watch(enqueue: (key: string) => void): void;
  /** Reconciles one key. Returns in how many milliseconds to reconcile again without an event. */
  reconcile(key: string): Promise<number | undefined>;
  /** About how many objects a look at this key goes through; large ones are looked at less often. */
  weight?(key: string): number;
  /** Ends what the loop holds beyond the shared informers. */
  stop?(): Promise<void>;
}

import { randomInt } from "node:crypto";
import type { KubeObject } from "../../api/object.ts";
import type { Client } from "../../cluster/client.ts";
import { isNotFound } from "../../cluster/failures.ts";
import { EVENTS } from "../../cluster/kinds.ts";
import type { Clock } from "../../kit/clock.ts";
import { timestamp } from "./timestamp.ts";

export type EventType = "Normal" | "Warning";

/** Records events of a controller (`kubectl describe`, `kubectl get events`). Never waits and never fails: events are not state. */
export interface EventRecorder {
  record(about: KubeObject, type: EventType, reason: string, message: string): void;
  /** Resolves when what was recorded is written. */
  flush(): Promise<void>;
}

export interface EventSource {
  component: string;
  host?: string;
}

/** Like the recorders of a real cluster: a busy object gets 25 events at once and then one every five minutes; what waits is bounded. */
const BURST = 25;
const REFILL_MS = 300_000;
const MAX_WAITING = 1000;
const MAX_REMEMBERED = 4096;
const SEQUENCES = 1_000_000;

interface Written {
  name: string;
  namespace: string;
  count: number;
}

/** Events for many objects at once, such as a cluster of a thousand nodes coming up, are thinned out; warnings never are. */
export interface EventLimit {
  allows(): boolean;
}

export function eventLimit(clock: Clock, burst = 300, perSecond = 50): EventLimit {
  let left = burst;
  let at = clock.now();
  return {
    allows() {
      const now = clock.now();
      left = Math.min(burst, left + ((now - at) / 1000) * perSecond);
      at = now;
      if (left < 1) return false;
      left--;
      return true;
    },
  };
}

export function createEventRecorder(
  client: Client,
  source: EventSource,
  clock: Clock,
  limit: EventLimit = eventLimit(clock),
): EventRecorder {
  const waiting: (() => Promise<void>)[] = [];
  const written = new Map<string, Written>();
  const allowance = new Map<string, { left: number; at: number }>();
  // Two recorders that speak about one object in the same millisecond must not choose the same name.
  let sequence = randomInt(SEQUENCES);
  let draining: Promise<void> | undefined;

  const drain = async () => {
    for (let write = waiting.shift(); write; write = waiting.shift()) {
      // A namespace that is going refuses new events, a server that is going answers nothing: both are fine.
      await write().catch(() => undefined);
    }
    draining = undefined;
  };
  const enqueue = (write: () => Promise<void>) => {
    if (waiting.length >= MAX_WAITING) return;
    waiting.push(write);
    draining ??= Promise.resolve().then(drain);
  };
  const mayRecord = (about: KubeObject): boolean => {
    const key = about.metadata.uid ?? about.metadata.name;
    const now = clock.now();
    const before = allowance.get(key);
    const refilled = before ? Math.min(BURST, before.left + (now - before.at) / REFILL_MS) : BURST;
    if (refilled < 1) return false;
    remember(allowance, key, { left: refilled - 1, at: now });
    return true;
  };

  const write = async (about: KubeObject, type: EventType, reason: string, message: string) => {
    const key = [about.metadata.uid, about.kind, about.metadata.name, type, reason, message].join("|");
    const now = clock.now();
    const before = written.get(key);
    if (before) {
      before.count++;
      const patch = { count: before.count, lastTimestamp: timestamp(now) };
      try {
        await client.patch(EVENTS, before, { type: "merge", patch });
        return;
      } catch (error) {
        if (!isNotFound(error)) throw error;
        written.delete(key);
      }
    }
    const event = eventObject(source, about, { type, reason, message }, now, ++sequence);
    await client.create(EVENTS, event);
    remember(written, key, { name: event.metadata.name, namespace: event.metadata.namespace ?? "", count: 1 });
  };

  return {
    record(about, type, reason, message) {
      if (type === "Normal" && !limit.allows()) return;
      if (mayRecord(about)) enqueue(() => write(about, type, reason, message));
    },
    async flush() {
      while (draining) await draining;
    },
  };
}

function eventObject(
  source: EventSource,
  about: KubeObject,
  what: { type: EventType; reason: string; message: string },
  now: number,
  sequence: number,
): KubeObject {
  const { name, namespace, uid, resourceVersion } = about.metadata;
  const at = timestamp(now);
  return {
    apiVersion: "v1",
    kind: "Event",
    metadata: {
      // Unique as a real one is: the moment in nanoseconds, here with a counter in the last digits.
      name: `${name}.${(BigInt(Math.floor(now)) * 1_000_000n + BigInt(sequence % SEQUENCES)).toString(16)}`,
      namespace: namespace ?? "default",
    },
    involvedObject: { apiVersion: about.apiVersion, kind: about.kind, name, namespace, uid, resourceVersion },
    ...what,
    source,
    firstTimestamp: at,
    lastTimestamp: at,
    count: 1,
    eventTime: null,
    reportingComponent: source.component,
    reportingInstance: source.host ?? "",
  };
}

function remember<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key);
  map.set(key, value);
  if (map.size <= MAX_REMEMBERED) return;
  for (const oldest of map.keys()) {
    map.delete(oldest);
    return;
  }
}

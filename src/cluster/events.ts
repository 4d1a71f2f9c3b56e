import { createHash } from "node:crypto";
import type { KubeObject } from "../api/object.ts";
import type { Clock } from "../kit/clock.ts";
import type { Log } from "../kit/log.ts";
import type { Client } from "./client.ts";
import { isAlreadyExists } from "./failures.ts";
import { EVENTS } from "./kinds.ts";

/** What happened to an object, for `kubectl describe` and `kubectl get events`. Never waits, never fails. */
export interface Events {
  /** What people must know and only they can mend; also logged. The same thing about the same object is said once. */
  warn(about: KubeObject, reason: string, message: string): void;
  /** What changed. The same change is said again when it happens again, but not in a burst. */
  changed(about: KubeObject, change: Change): void;
}

export interface Change {
  type: "Normal" | "Warning";
  reason: string;
  message: string;
}

/** Of objects without a namespace, events are kept there. */
const NAMESPACE = "default";
const MOST_REMEMBERED = 5_000;
/** What goes back and forth must not fill the cluster with events. */
const BURST_MS = 5 * 60_000;

export function createEvents(client: Client, source: string, clock: Clock, log: Log): Events {
  const saidAt = new Map<string, number>();
  const write = (about: KubeObject, saying: Omit<EventText, "source" | "now">) => {
    const event = eventOf(about, { ...saying, source, now: clock.now() });
    client.create(EVENTS, event).catch((error: unknown) => {
      if (!isAlreadyExists(error)) log.debug({ error }, "an event could not be written");
    });
  };
  const remember = (key: string) => {
    if (saidAt.size >= MOST_REMEMBERED) saidAt.clear();
    saidAt.set(key, clock.now());
  };
  return {
    warn(about, reason, message) {
      const key = `${about.metadata.uid}/${reason}/${message}`;
      if (saidAt.has(key)) return;
      remember(key);
      log.warn({ kind: about.kind, name: about.metadata.name, reason }, message);
      // Named after its content, so that a restarted program does not create a duplicate.
      write(about, { suffix: digest(key), type: "Warning", reason, message });
    },
    changed(about, { type, reason, message }) {
      const key = `${about.metadata.uid}/${type}/${reason}/${message}`;
      const last = saidAt.get(key);
      if (last !== undefined && clock.now() - last < BURST_MS) return;
      remember(key);
      write(about, { suffix: digest(`${key}/${clock.now()}`), type, reason, message });
    },
  };
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

interface EventText {
  suffix: string;
  type: Change["type"];
  reason: string;
  message: string;
  source: string;
  now: number;
}

function eventOf({ apiVersion, kind, metadata }: KubeObject, saying: EventText): KubeObject {
  const { name, namespace, uid } = metadata;
  const time = new Date(saying.now).toISOString().replace(/\.\d+Z$/, "Z");
  return {
    apiVersion: "v1",
    kind: "Event",
    metadata: { name: `${name.slice(0, 230)}.${saying.suffix}`, namespace: namespace ?? NAMESPACE },
    involvedObject: { apiVersion, kind, name, ...(namespace === undefined ? {} : { namespace }), uid },
    type: saying.type,
    reason: saying.reason,
    message: saying.message.slice(0, 1_000),
    source: { component: saying.source },
    reportingComponent: saying.source,
    firstTimestamp: time,
    lastTimestamp: time,
    count: 1,
  };
}

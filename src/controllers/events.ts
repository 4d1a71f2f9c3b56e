import { createHash } from "node:crypto";
import type { KubeObject } from "../api/object.ts";
import type { Client } from "../cluster/client.ts";
import { isAlreadyExists } from "../cluster/failures.ts";
import { EVENTS } from "../cluster/kinds.ts";
import type { Clock } from "../kit/clock.ts";
import type { Log } from "../kit/log.ts";

/** What people must know and only they can mend: in the log, and as an event that `kubectl describe` shows. */
export interface Events {
  /** The same thing about the same object is said once. Never waits, never fails. */
  warn(about: KubeObject, reason: string, message: string): void;
}

/** Of objects without a namespace, events are kept there. */
const NAMESPACE = "default";
const MOST_REMEMBERED = 5_000;

export function createEvents(client: Client, source: string, clock: Clock, log: Log): Events {
  const said = new Set<string>();
  return {
    warn(about, reason, message) {
      const key = `${about.metadata.uid}/${reason}/${message}`;
      if (said.has(key)) return;
      if (said.size >= MOST_REMEMBERED) said.clear();
      said.add(key);
      log.warn({ kind: about.kind, name: about.metadata.name, reason }, message);
      // Named after its content, so that a restarted program does not create a duplicate.
      const suffix = createHash("sha256").update(key).digest("hex").slice(0, 16);
      const event = eventOf(about, { suffix, reason, message, source, now: clock.now() });
      client.create(EVENTS, event).catch((error: unknown) => {
        if (!isAlreadyExists(error)) log.debug({ error }, "an event could not be written");
      });
    },
  };
}

interface EventText {
  suffix: string;
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
    type: "Warning",
    reason: saying.reason,
    message: saying.message.slice(0, 1_000),
    source: { component: saying.source },
    reportingComponent: saying.source,
    firstTimestamp: time,
    lastTimestamp: time,
    count: 1,
  };
}

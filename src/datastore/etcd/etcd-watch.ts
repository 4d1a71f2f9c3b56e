import type { Stored, Watch, WatchEvent, WatchOptions } from "../../apiserver/storage/store.ts";
import { withRevision } from "../../apiserver/storage/stored.ts";
import { CodedError } from "../../kit/errors.ts";
import type { EtcdConnection, EtcdStream, WatchAnswer } from "./etcd-connection.ts";
import { type EtcdValue, endOf, etcdValue } from "./etcd-keys.ts";
import { EVENT_DELETE } from "./etcd-messages.ts";

interface WatchPlace {
  etcd: EtcdConnection;
  folder: string;
  /** Everything after this revision. */
  from: number;
  /** The etcd that revision is of. */
  cluster: number | undefined;
}

interface Watcher {
  deliver: (event: WatchEvent) => void;
  options: WatchOptions;
  read(value: EtcdValue): Stored;
}

type Event = WatchAnswer["events"][number];

/** Changes of one folder. It ends when its connection does, and with `onGone` where etcd has compacted what it asks for. */
export function etcdWatch(place: WatchPlace, { deliver, options, read }: Watcher): Watch {
  const { etcd, folder, from } = place;
  let stream: EtcdStream | undefined;
  let over = false;
  const end = (how: "onEnd" | "onGone" | undefined) => {
    if (over) return;
    over = true;
    stream?.stop();
    if (how) options[how]?.();
  };
  const onAnswer = (answer: WatchAnswer) => {
    if (over) return;
    if (isGone(answer, place)) return end("onGone");
    if (answer.canceled) return end("onEnd");
    for (const event of answer.events) {
      const readable = eventOf(event, read);
      // A list tells what is there, or which value is bad.
      if (!readable) return end("onGone");
      deliver(readable);
    }
    const { revision = 0 } = answer.header ?? {};
    if (answer.events.length === 0 && !answer.created && revision >= from) options.onBookmark?.(revision);
  };
  const creation = {
    key: Buffer.from(folder),
    range_end: endOf(folder),
    start_revision: from + 1,
    progress_notify: true,
    prev_kv: true,
  };
  etcd.watch(creation, onAnswer).then(
    (opened) => {
      stream = opened;
      if (over) opened.stop();
      else void opened.ended.then(() => end("onEnd"));
    },
    () => end("onEnd"),
  );
  return { stop: () => end(undefined) };
}

/** Compacted, or a revision that this etcd, restored or replaced, does not have yet: it would be silent until then. */
function isGone({ created, compact_revision, header }: WatchAnswer, { from, cluster }: WatchPlace): boolean {
  if (compact_revision > 0) return true;
  if (!created) return false;
  const { revision = 0, cluster_id = 0 } = header ?? {};
  return revision < from || (cluster !== undefined && cluster_id !== cluster);
}

/** Undefined where a value cannot be read, or the last state of what is deleted was compacted with the rest. */
function eventOf({ type, kv = {}, prev_kv }: Event, read: (value: EtcdValue) => Stored): WatchEvent | undefined {
  try {
    const previous = prev_kv && read(etcdValue(prev_kv));
    if (type !== EVENT_DELETE) {
      return { type: previous ? "MODIFIED" : "ADDED", resource: "", stored: read(etcdValue(kv)), previous };
    }
    if (!previous) return undefined;
    return { type: "DELETED", resource: "", stored: withRevision(previous, kv.mod_revision ?? 0), previous };
  } catch (error) {
    if (error instanceof CodedError) return undefined;
    throw error;
  }
}

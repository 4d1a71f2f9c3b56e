import type { Stored, WatchEvent } from "./store.ts";
import type { Gap } from "./store-state.ts";
import { allocateBody, shared } from "./stored.ts";

/**
 * What a frame holds. A record is a JSON array, its kind first, and for an object the object's own bytes after it:
 *
 *   length of the array 4 | length of the bytes 4 | array | bytes
 */
export type LogRecord =
  | { readonly kind: "put"; readonly resource: string; readonly stored: Stored }
  | {
      readonly kind: "remove";
      readonly resource: string;
      readonly namespace: string;
      readonly name: string;
      readonly revision: number;
    }
  /** A server started here and went on counting after a gap. */
  | { readonly kind: "start"; readonly gap: Gap }
  /** Opens a snapshot: the state at `revision`, to which frame `next` of the log is the next change. */
  | { readonly kind: "snapshot"; readonly revision: number; readonly next: number }
  /** The file is complete: the server was stopped in order, or the snapshot is whole. */
  | { readonly kind: "end" };

const HEADER = 8;
const NOTHING = Buffer.alloc(0);

/** In pieces, so that an object's bytes are copied only once, into the frame. */
export function encodeRecord(record: LogRecord): Buffer[] {
  const head = Buffer.from(JSON.stringify(headOf(record)));
  const body = record.kind === "put" ? record.stored.body : NOTHING;
  const lengths = Buffer.alloc(HEADER);
  lengths.writeUInt32LE(head.length, 0);
  lengths.writeUInt32LE(body.length, 4);
  return [lengths, head, body];
}

function headOf(record: LogRecord): unknown[] {
  switch (record.kind) {
    case "put": {
      const { namespace, name, revision, uid, deleting, labels, fields } = record.stored;
      return ["put", record.resource, namespace, name, revision, uid, deleting, labels ?? null, fields];
    }
    case "remove":
      return ["remove", record.resource, record.namespace, record.name, record.revision];
    case "start":
      return ["start", record.gap.after, record.gap.until];
    case "snapshot":
      return ["snapshot", record.revision, record.next];
    case "end":
      return ["end"];
  }
}

export function recordOf({ type, resource, stored }: WatchEvent): LogRecord {
  if (type !== "DELETED") return { kind: "put", resource, stored };
  return { kind: "remove", resource, namespace: stored.namespace, name: stored.name, revision: stored.revision };
}

/** Throws on what this version does not know; the checksum has vouched for the bytes before. */
export function* decodeRecords(payload: Buffer): Generator<LogRecord> {
  for (let offset = 0; offset < payload.length; ) {
    const headEnd = offset + HEADER + payload.readUInt32LE(offset);
    const end = headEnd + payload.readUInt32LE(offset + 4);
    const head = JSON.parse(payload.toString("utf8", offset + HEADER, headEnd)) as unknown[];
    yield recordFrom(head, payload.subarray(headEnd, end));
    offset = end;
  }
}

type Strings = Record<string, string>;
type PutHead = ["put", string, string, string, number, string, boolean, Strings | null, Strings];

function recordFrom(head: unknown[], body: Buffer): LogRecord {
  switch (head[0]) {
    case "put": {
      const [, resource, namespace, name, revision, uid, deleting, labels, fields] = head as PutHead;
      const stored: Stored = {
        namespace,
        name,
        revision,
        body: copyOf(body),
        labels: labels === null ? undefined : shared(labels),
        fields: shared(fields),
        uid,
        deleting,
      };
      return { kind: "put", resource, stored };
    }
    case "remove": {
      const [, resource, namespace, name, revision] = head as ["remove", string, string, string, number];
      return { kind: "remove", resource, namespace, name, revision };
    }
    case "start": {
      const [, after, until] = head as ["start", number, number];
      return { kind: "start", gap: { after, until } };
    }
    case "snapshot": {
      const [, revision, next] = head as ["snapshot", number, number];
      return { kind: "snapshot", revision, next };
    }
    case "end":
      return { kind: "end" };
    default:
      throw new Error(`it holds a record of the unknown kind ${JSON.stringify(head[0])}`);
  }
}

/** A slice would keep the whole file in memory. */
function copyOf(body: Buffer): Buffer {
  const copy = allocateBody(body.length);
  body.copy(copy);
  return copy;
}

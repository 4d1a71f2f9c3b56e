import { bytes, flag, int, many, message, text } from "../../kit/grpc/protobuf.ts";

/** etcd's version 3 API (`etcdserverpb`), as far as a datastore needs it: each call, what is sent, what comes back. */
const HEADER = { cluster_id: int(1), revision: int(3) };
const KEY_VALUE = { key: bytes(1), mod_revision: int(3), value: bytes(5) };

/** What a comparison looks at. */
export const COMPARE_MOD_REVISION = 2;
export const EVENT_DELETE = 1;

const COMPARE = { result: int(1), target: int(2), key: bytes(3), mod_revision: int(6) };
const OPERATION = {
  request_put: message(2, { key: bytes(1), value: bytes(2) }),
  request_delete_range: message(3, { key: bytes(1) }),
};

export const ETCD_CALLS = {
  "/etcdserverpb.KV/Range": [
    { key: bytes(1), range_end: bytes(2), limit: int(3), revision: int(4) },
    { header: message(1, HEADER), kvs: many(message(2, KEY_VALUE)), more: flag(3) },
  ],
  "/etcdserverpb.KV/Txn": [
    { compare: many(message(1, COMPARE)), success: many(message(2, OPERATION)) },
    { header: message(1, HEADER), succeeded: flag(2) },
  ],
  "/etcdserverpb.KV/Compact": [{ revision: int(1) }, { header: message(1, HEADER) }],
  "/etcdserverpb.Maintenance/Alarm": [{ action: int(1) }, { alarms: many(message(2, { alarm: int(2) })) }],
  "/etcdserverpb.Auth/Authenticate": [{ name: text(1), password: text(2) }, { token: text(2) }],
} as const;

export const WATCH = "/etcdserverpb.Watch/Watch";
export const WATCH_REQUEST = {
  create_request: message(1, {
    key: bytes(1),
    range_end: bytes(2),
    start_revision: int(3),
    progress_notify: flag(4),
    prev_kv: flag(6),
  }),
};
export const WATCH_RESPONSE = {
  header: message(1, HEADER),
  created: flag(3),
  canceled: flag(4),
  compact_revision: int(5),
  cancel_reason: text(6),
  events: many(message(11, { type: int(1), kv: message(2, KEY_VALUE), prev_kv: message(3, KEY_VALUE) })),
};

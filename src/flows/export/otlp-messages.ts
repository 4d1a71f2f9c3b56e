import { bytes, fixed64, int, many, message, text } from "../../kit/grpc/protobuf.ts";

/** Field numbers of OTLP logs, as OpenTelemetry publishes them. */

const VALUE = { text: bytes(1) };
const ATTRIBUTE = { key: text(1), value: message(2, VALUE) };
export const LIST = { values: many(message(1, VALUE)) };
const RESOURCE = { attributes: many(message(1, ATTRIBUTE)) };

export const RECORD_HEAD = {
  time: fixed64(1),
  severity: int(2),
  severityText: text(3),
  observed: fixed64(11),
  eventName: text(12),
};

export const RECORD_BODY = { body: message(5, VALUE) };

const SCOPE_LOGS = { scope: message(1, { name: text(1), version: text(2) }), records: many(bytes(2)) };
export const LOGS_REQUEST = {
  logs: many(message(1, { resource: message(1, RESOURCE), scopes: many(message(2, SCOPE_LOGS)) })),
};
export const LOGS_RESPONSE = { partial: message(1, { rejected: int(1), message: text(2) }) };

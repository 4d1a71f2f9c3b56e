import { bytes, chosenInt, fixed64, int, many, message, text } from "../../kit/grpc/protobuf.ts";

/** Field numbers of OTLP logs, as OpenTelemetry publishes them. */

const VALUE = { text: bytes(1), number: chosenInt(3), list: bytes(5) };
const ATTRIBUTE = { key: text(1), value: message(2, VALUE) };
export const LIST = { values: many(message(1, VALUE)) };
/** In a record, in a resource. */
export const RECORD_ATTRIBUTES = { attributes: many(message(6, ATTRIBUTE)) };
const RESOURCE = { attributes: many(message(1, ATTRIBUTE)) };

export const RECORD_HEAD = {
  time: fixed64(1),
  severity: int(2),
  severityText: text(3),
  body: message(5, VALUE),
  observed: fixed64(11),
  eventName: text(12),
};

const SCOPE_LOGS = { scope: message(1, { name: text(1), version: text(2) }), records: many(bytes(2)) };
export const LOGS_REQUEST = {
  logs: many(message(1, { resource: message(1, RESOURCE), scopes: many(message(2, SCOPE_LOGS)) })),
};
export const LOGS_RESPONSE = { partial: message(1, { rejected: int(1), message: text(2) }) };

import type { StatusCause } from "../status.ts";

/** Field problems in the words a Kubernetes API uses, so that a person can search for what they read. */

const REASONS: readonly (readonly [prefix: string, reason: string])[] = [
  ["Required value", "FieldValueRequired"],
  ["Unsupported value", "FieldValueNotSupported"],
  ["Duplicate value", "FieldValueDuplicate"],
  ["Too long", "FieldValueTooLong"],
  ["Too many", "FieldValueTooMany"],
  ["Forbidden", "FieldValueForbidden"],
  ["Not found", "FieldValueNotFound"],
];

/** The cause a `Status` carries for one field; its reason follows from how the message begins. */
export function fieldCause(field: string, message: string): StatusCause {
  const found = REASONS.find(([prefix]) => message.startsWith(prefix));
  if (found) return { reason: found[1], message, field };
  const typed = / in body must be of type /.test(message);
  return { reason: typed ? "FieldValueTypeInvalid" : "FieldValueInvalid", message, field };
}

/** A value as Kubernetes prints it in a message: strings quoted, objects as JSON. */
export function shown(value: unknown): string {
  return value === undefined ? "null" : JSON.stringify(value);
}

export const invalidMessage = (value: unknown, detail: string): string => `Invalid value: ${shown(value)}: ${detail}`;

export const requiredMessage = (detail = ""): string =>
  detail === "" ? "Required value" : `Required value: ${detail}`;

export const duplicateMessage = (value: unknown): string => `Duplicate value: ${shown(value)}`;

export function unsupportedMessage(value: unknown, supported: readonly unknown[]): string {
  const sorted = supported.map(shown).sort();
  return `Unsupported value: ${shown(value)}: supported values: ${sorted.join(", ")}`;
}

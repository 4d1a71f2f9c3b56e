import { isDeepStrictEqual } from "node:util";
import {
  duplicateMessage,
  fieldCause,
  invalidMessage,
  requiredMessage,
  unsupportedMessage,
} from "../../../api/schema/schema-cause.ts";
import type { StatusCause } from "../../../api/status.ts";
import { type Cidr, contains, parseAddress, parseCidr } from "../../../kit/ip.ts";

/** The rules that come back in many kinds, in the words Kubernetes uses for them. */

export const required = (field: string, detail = ""): StatusCause => fieldCause(field, requiredMessage(detail));

export const invalid = (field: string, value: unknown, detail: string): StatusCause =>
  fieldCause(field, invalidMessage(value, detail));

export const forbidden = (field: string, detail: string): StatusCause => fieldCause(field, `Forbidden: ${detail}`);

export const duplicate = (field: string, value: unknown): StatusCause => fieldCause(field, duplicateMessage(value));

export const unsupported = (field: string, value: unknown, supported: readonly string[]): StatusCause =>
  fieldCause(field, unsupportedMessage(value, supported));

export const notFound = (field: string, value: unknown): StatusCause =>
  fieldCause(field, `Not found: ${JSON.stringify(value)}`);

/** All of them, the absent ones left out. */
export function causes(...found: (StatusCause | readonly StatusCause[] | false | undefined)[]): StatusCause[] {
  return found.flatMap((one) => (one ? one : []));
}

const DNS_LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const LABEL_RULE =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

export function dnsLabel(field: string, name: string | undefined): StatusCause[] {
  if (name === undefined) return [];
  if (name.length > 63) return [invalid(field, name, "must be no more than 63 characters")];
  return DNS_LABEL.test(name) ? [] : [invalid(field, name, LABEL_RULE)];
}

export function portNumber(field: string, port: number | undefined): StatusCause[] {
  if (port !== undefined && port >= 1 && port <= 65535) return [];
  return [invalid(field, port ?? 0, "must be between 1 and 65535, inclusive")];
}

const SPECIAL = [
  [["0.0.0.0/32", "::/128"], "may not be unspecified (0.0.0.0 or ::)"],
  [["127.0.0.0/8", "::1/128"], "may not be in the loopback range (127.0.0.0/8, ::1/128)"],
  [["169.254.0.0/16", "fe80::/10"], "may not be in the link-local range (169.254.0.0/16, fe80::/10)"],
  [["224.0.0.0/24", "ff02::/16"], "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"],
] as const;

/** An address to send to from anywhere: not one that means something else on every machine. An IPv4 address inside IPv6 is that address. */
export function routableAddress(field: string, text: string): StatusCause[] {
  const address = parseAddress(text.replace(/^::ffff:(?=\d+\.)/i, ""));
  if (!address) return [invalid(field, text, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")];
  return SPECIAL.flatMap(([ranges, why]) =>
    ranges.some((range) => contains(parseCidr(range) as Cidr, address)) ? [invalid(field, text, why)] : [],
  );
}

/** Names of ports are IANA service names: short, lower case, with a letter in them. */
export function portName(field: string, name: string): StatusCause[] {
  if (name.length > 15) return [invalid(field, name, "must be no more than 15 characters")];
  if (!/[a-z]/i.test(name)) return [invalid(field, name, "must contain at least one letter (a-z)")];
  const fits = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/.test(name) && !name.includes("--");
  return fits ? [] : [invalid(field, name, "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")];
}

export function notNegative(field: string, value: number | undefined): StatusCause[] {
  return value === undefined || value >= 0 ? [] : [invalid(field, value, "must be greater than or equal to 0")];
}

/** A field that may not change once the object is there. */
export function immutable(field: string, next: unknown, old: unknown): StatusCause[] {
  return isDeepStrictEqual(next, old) ? [] : [invalid(field, next ?? null, "field is immutable")];
}

/** Each value once; `at` says where the nth one is. */
export function unique(values: readonly (string | undefined)[], at: (index: number) => string): StatusCause[] {
  const seen = new Set<string>();
  return values.flatMap((value, index) => {
    if (value === undefined || value === "") return [];
    const again = seen.has(value);
    seen.add(value);
    return again ? [duplicate(at(index), value)] : [];
  });
}

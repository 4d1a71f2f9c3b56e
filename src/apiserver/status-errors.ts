import type { ResourceKind } from "../api/object.ts";
import { type StatusCause, type StatusDetails, StatusError } from "../api/status.ts";

/** Refusals in the words of a Kubernetes API server, so that clients and people recognise them. */

type Named = Pick<ResourceKind, "group" | "plural">;

function qualified(kind: Named): string {
  return kind.group === "" ? kind.plural : `${kind.plural}.${kind.group}`;
}

function detailsOf(kind: Named, name: string, more: Partial<StatusDetails> = {}): StatusDetails {
  return { name, ...(kind.group === "" ? {} : { group: kind.group }), kind: kind.plural, ...more };
}

export function notFound(kind: Named, name: string): StatusError {
  return new StatusError(404, "NotFound", `${qualified(kind)} "${name}" not found`, detailsOf(kind, name));
}

/** With details, if empty ones: `kubectl debug` reads them without looking whether they are there. */
export function noSuchPath(): StatusError {
  return new StatusError(404, "NotFound", "the server could not find the requested resource", {});
}

export function alreadyExists(kind: Named, name: string): StatusError {
  return new StatusError(409, "AlreadyExists", `${qualified(kind)} "${name}" already exists`, detailsOf(kind, name));
}

export function conflict(kind: Named, name: string, why: string): StatusError {
  const message = `Operation cannot be fulfilled on ${qualified(kind)} "${name}": ${why}`;
  return new StatusError(409, "Conflict", message, detailsOf(kind, name));
}

export const MODIFIED_MEANWHILE =
  "the object has been modified; please apply your changes to the latest version and try again";

export function invalid(kind: ResourceKind, name: string, causes: readonly StatusCause[]): StatusError {
  const listed = causes.map((cause) => `${cause.field}: ${cause.message}`);
  const text = listed.length === 1 ? listed[0] : `[${listed.join(", ")}]`;
  const message = `${kind.kind}${kind.group === "" ? "" : `.${kind.group}`} "${name}" is invalid: ${text}`;
  const details = { name, ...(kind.group === "" ? {} : { group: kind.group }), kind: kind.kind, causes: [...causes] };
  return new StatusError(422, "Invalid", message, details);
}

export function badRequest(message: string): StatusError {
  return new StatusError(400, "BadRequest", message);
}

export function unauthorized(): StatusError {
  return new StatusError(401, "Unauthorized", "Unauthorized");
}

export function forbidden(kind: Named, name: string, why: string): StatusError {
  const subject = name === "" ? qualified(kind) : `${qualified(kind)} "${name}"`;
  return new StatusError(403, "Forbidden", `${subject} is forbidden: ${why}`, detailsOf(kind, name));
}

export function forbiddenPath(path: string, user: string, verb: string): StatusError {
  return new StatusError(403, "Forbidden", `forbidden: User "${user}" cannot ${verb} path "${path}"`);
}

export function methodNotAllowed(kind: Named, verb: string): StatusError {
  const message = `${verb} is not supported on resources of kind "${qualified(kind)}"`;
  return new StatusError(405, "MethodNotAllowed", message, detailsOf(kind, ""));
}

export function unsupportedMediaType(got: string, accepted: readonly string[]): StatusError {
  const message = `the body of the request was in an unknown format - accepted media types include: ${accepted.join(", ")}`;
  return new StatusError(415, "UnsupportedMediaType", got === "" ? message : `${message} (got ${got})`);
}

export function notAcceptable(): StatusError {
  const message = "only the following media types are accepted: application/json, application/yaml";
  return new StatusError(406, "NotAcceptable", message);
}

export function expired(message: string): StatusError {
  return new StatusError(410, "Expired", message);
}

export function futureRevision(wanted: number, current: number): StatusError {
  return new StatusError(504, "Timeout", `Too large resource version: ${wanted}, current: ${current}`, {
    causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
    retryAfterSeconds: 1,
  });
}

export function tooLarge(limit: number): StatusError {
  return new StatusError(413, "RequestEntityTooLarge", `Request entity too large: limit is ${limit}`);
}

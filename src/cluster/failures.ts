import { type Status, StatusError } from "../api/status.ts";
import { CodedError } from "../kit/errors.ts";

export const isNotFound = (error: unknown): boolean => hasCode(error, 404);
export const isAlreadyExists = (error: unknown): boolean => hasReason(error, "AlreadyExists");
/** Someone else wrote first, or (of an apply) owns the field. */
export const isConflict = (error: unknown): boolean => hasReason(error, "Conflict");
/** The resource version or the page is no longer in the server's history: list again. */
export const isGone = (error: unknown): boolean => hasCode(error, 410);
/** No answer: the server may be back in a moment. */
export const isUnreachable = (error: unknown): boolean =>
  error instanceof CodedError && (error.code === "CLUSTER_UNREACHABLE" || error.code === "CLUSTER_CONNECTION_LOST");

/** The server has gone back in time (restored from a backup, or its data is lost): our resource version is of its future. */
export function isFromTheFuture(error: unknown): boolean {
  return (
    error instanceof StatusError &&
    (error.status.details?.causes ?? []).some((cause) => cause.reason === "ResourceVersionTooLarge")
  );
}

/** The answer of a failed request as an error, written by the API server, or by a proxy in front of it. */
export function statusError(httpCode: number, body: string): StatusError {
  const status = parseStatus(body);
  if (status === undefined) {
    const firstLine = body.trim().split("\n", 1)[0] ?? "";
    return new StatusError(httpCode, REASONS[httpCode] ?? "Unknown", firstLine.slice(0, 200) || `HTTP ${httpCode}`);
  }
  return errorOf(status, httpCode);
}

/** A `Status` that came inside a stream, or as a body. */
export function errorOf(status: Status, httpCode = 500): StatusError {
  const code = status.code ?? httpCode;
  return new StatusError(
    code,
    status.reason ?? REASONS[code] ?? "Unknown",
    status.message ?? `HTTP ${code}`,
    status.details,
  );
}

function parseStatus(body: string): Status | undefined {
  try {
    const parsed: unknown = JSON.parse(body);
    const isStatus =
      typeof parsed === "object" && parsed !== null && (parsed as Status).kind === "Status" && !Array.isArray(parsed);
    return isStatus ? (parsed as Status) : undefined;
  } catch {
    return undefined;
  }
}

function hasCode(error: unknown, code: number): boolean {
  return error instanceof StatusError && error.code === code;
}

function hasReason(error: unknown, reason: string): boolean {
  return error instanceof StatusError && error.reason === reason;
}

const REASONS: Record<number, string> = {
  400: "BadRequest",
  401: "Unauthorized",
  403: "Forbidden",
  404: "NotFound",
  405: "MethodNotAllowed",
  409: "Conflict",
  410: "Expired",
  422: "Invalid",
  429: "TooManyRequests",
  500: "InternalError",
  503: "ServiceUnavailable",
  504: "Timeout",
};

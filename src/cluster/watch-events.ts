import type { KubeObject } from "../api/object.ts";
import type { Status } from "../api/status.ts";
import type { ApiResponse } from "../api/transport.ts";
import { errors } from "./errors.ts";
import { errorOf } from "./failures.ts";

export type WatchEvent<T> =
  | { type: "ADDED" | "MODIFIED" | "DELETED"; object: T }
  /** Nothing happened up to here: a place to resume from. */
  | { type: "BOOKMARK"; resourceVersion: string };

/** The events of one watch stream. An ERROR event is thrown as what the server meant: a failed request. */
export async function* readEvents<T extends KubeObject>(
  open: () => Promise<ApiResponse>,
  signal?: AbortSignal,
): AsyncGenerator<WatchEvent<T>, void, undefined> {
  const response = await open();
  for await (const line of response.lines()) {
    if (line.trim() !== "") yield parseEvent<T>(line);
  }
  // Some transports end quietly then; the caller must not take its own abort for the server's end.
  signal?.throwIfAborted();
}

function parseEvent<T extends KubeObject>(line: string): WatchEvent<T> {
  const { type, object } = parseLine(line);
  switch (type) {
    case "ADDED":
    case "MODIFIED":
    case "DELETED":
      if (typeof (object as T | undefined)?.metadata?.name !== "string") throw badLine(line);
      return { type, object: object as T };
    case "BOOKMARK":
      return { type, resourceVersion: (object as T | undefined)?.metadata?.resourceVersion ?? "" };
    case "ERROR":
      throw errorOf((object ?? {}) as Status);
    default:
      throw badLine(line);
  }
}

function parseLine(line: string): { type?: unknown; object?: unknown } {
  try {
    const parsed: unknown = JSON.parse(line);
    if (typeof parsed === "object" && parsed !== null) return parsed;
  } catch (cause) {
    throw badLine(line).from(cause);
  }
  throw badLine(line);
}

function badLine(line: string) {
  return errors.CLUSTER_BAD_ANSWER("the watch", `"${line.slice(0, 60)}" is not an event`);
}

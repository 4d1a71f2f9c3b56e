import type { Access } from "../aggregated/access.ts";
import type { TierAccess } from "../aggregated/tier-access.ts";
import type { V3Kind } from "../aggregated/v3-kinds.ts";
import type { ObjectRef } from "../api/object.ts";
import type { Translator } from "../api/resources/v3-translate.ts";
import type { ApiRequest } from "../api/transport.ts";
import type { Incoming, Reply } from "../apiserver/call.ts";
import type { ResourceRequest } from "../apiserver/request-info.ts";
import { type Shaper, shaperOf } from "../apiserver/shape.ts";
import { collectionPath, objectPath } from "../cluster/paths.ts";
import type { Backend } from "./backend.ts";
import type { Guards } from "./guards.ts";
import type { Warnings } from "./warnings.ts";

/** What every verb works with. */
export interface Parts {
  kinds: readonly V3Kind[];
  backend: Backend;
  translator: Translator;
  access: Access;
  tiers: TierAccess;
  guards: Guards;
  warnings: Warnings;
  now(): Date;
  /** Watches end when this server is to stop. */
  stopping: AbortSignal;
}

/** One request to one v3 resource, its sender known and allowed. */
export interface V3Request {
  kind: V3Kind;
  info: ResourceRequest;
  query: URLSearchParams;
  incoming: Incoming;
}

export type Verb = (parts: Parts, asked: V3Request) => Promise<Reply>;

/** The stored object the request is about. */
export function storedRef(parts: Parts, { kind, info }: V3Request): ObjectRef {
  const name = parts.translator.storedName(kind, info.name);
  return info.namespace === "" ? { name } : { name, namespace: info.namespace };
}

export function storedPath(parts: Parts, asked: V3Request): string {
  const { kind, info } = asked;
  if (info.name === "") return collectionPath(kind.stored, info.namespace);
  return objectPath(kind.stored, storedRef(parts, asked), info.subresource === "" ? undefined : info.subresource);
}

export function shaper(parts: Parts, { kind, incoming, query }: V3Request): Shaper {
  return shaperOf(kind.served, incoming.headers["accept"], query, parts.now);
}

/** A write passes on who is writing: the field manager named, or the client's own name. This API has nothing to own. */
export function writeOf(
  { incoming, query }: V3Request,
  request: {
    method: "POST" | "PUT" | "PATCH" | "DELETE";
    path: string;
    body: unknown;
    type?: string;
    dryRun?: boolean;
  },
): ApiRequest {
  const dryRun = request.dryRun || query.getAll("dryRun").includes("All");
  const kept = (name: string) => query.get(name) ?? undefined;
  return {
    method: request.method,
    path: request.path,
    query: {
      ...(dryRun && { dryRun: "All" }),
      fieldManager: kept("fieldManager"),
      force: kept("force"),
      gracePeriodSeconds: kept("gracePeriodSeconds"),
      propagationPolicy: kept("propagationPolicy"),
      // Unknown fields have been dealt with here, in this API's words.
      ...(request.method !== "DELETE" && { fieldValidation: "Ignore" }),
    },
    headers: {
      "content-type": request.type ?? "application/json",
      "user-agent": incoming.headers["user-agent"] ?? "unknown",
    },
    body: JSON.stringify(request.body),
    signal: incoming.signal,
  };
}

import { StatusError } from "../api/status.ts";
import { CodedError } from "../kit/errors.ts";
import type { Aggregation } from "./aggregation.ts";
import type { Attributes } from "./auth/policy-rule.ts";
import type { Authorizer } from "./auth/rbac.ts";
import type { Reviews } from "./auth/reviews.ts";
import type { Call, Incoming, Reply, UserInfo } from "./call.ts";
import type { Core } from "./core.ts";
import { decodeObject, fieldValidationOf } from "./decode.ts";
import { remove, removeCollection } from "./delete.ts";
import type { Documents } from "./documents.ts";
import { createsByApply, patch } from "./patch-request.ts";
import { get, list } from "./read.ts";
import { asksFor, type ResourceRequest, requestInfo } from "./request-info.ts";
import type { ServedKind } from "./resource.ts";
import { scale } from "./scale.ts";
import { badRequest, forbidden, forbiddenPath, methodNotAllowed, noSuchPath } from "./status-errors.ts";
import { StoreConflict } from "./storage/errors.ts";
import type { Subresource } from "./subresource.ts";
import { watch } from "./watch.ts";
import { create, update } from "./write.ts";

export interface RouterParts {
  core: Core;
  authorizer: Authorizer;
  reviews: Reviews;
  subresources: readonly Subresource[];
  aggregation: Aggregation;
  documents: Documents;
}

/** From a request to its answer: who really asks, may they, and which verb on which kind. */
export class Router {
  readonly #parts: RouterParts;

  constructor(parts: RouterParts) {
    this.#parts = parts;
  }

  async handle(incoming: Incoming): Promise<Reply> {
    try {
      return await this.#route(incoming);
    } catch (error) {
      return refusal(error);
    }
  }

  async #route(incoming: Incoming): Promise<Reply> {
    const query = new URLSearchParams(incoming.search);
    const info = requestInfo(incoming.method, incoming.path, query);
    const user = this.#actingUser(incoming);
    this.#authorize(user, asksFor(info, query));
    const { aggregation, core } = this.#parts;
    if (!info.resource) {
      const [, group, version] = /^\/openapi\/v3\/apis\/([^/]+)\/([^/]+)$/.exec(info.path) ?? [];
      if (group !== undefined && version !== undefined && aggregation.serves(group, version)) {
        return await aggregation.proxy(group, version, { ...incoming, user });
      }
      return this.#parts.documents.answer(incoming, info.path, query);
    }
    if (aggregation.serves(info.group, info.version)) {
      return await aggregation.proxy(info.group, info.version, { ...incoming, user });
    }
    const kind = core.registry.find(info.group, info.version, info.plural);
    if (!kind) throw noSuchPath();
    const { namespace, name, subresource } = info;
    const { headers, body } = incoming;
    const call: Call = {
      kind,
      namespace,
      name,
      subresource,
      query,
      headers,
      user,
      body,
      // Asked for by few, and made only then.
      get signal() {
        return incoming.signal;
      },
    };
    return await this.#dispatch(info, call);
  }

  /** `kubectl --as`: allowed to those who may impersonate. */
  #actingUser(incoming: Incoming): UserInfo {
    const name = incoming.headers["impersonate-user"];
    const groups = splitList(incoming.headers["impersonate-group"]);
    if (name === undefined) {
      if (groups.length > 0) throw badRequest("requested groups but no user to impersonate");
      return incoming.user;
    }
    const [, namespace, account] = SERVICE_ACCOUNT.exec(name) ?? [];
    if (namespace === undefined) this.#mustImpersonate(incoming.user, "users", name);
    else this.#mustImpersonate(incoming.user, "serviceaccounts", account!, namespace);
    for (const group of groups) this.#mustImpersonate(incoming.user, "groups", group);
    const own = ["system:serviceaccounts", `system:serviceaccounts:${namespace}`];
    return { name, groups: [...(namespace && groups.length === 0 ? own : groups), "system:authenticated"] };
  }

  #mustImpersonate(user: UserInfo, plural: string, name: string, namespace = ""): void {
    const asked = { resource: true, verb: "impersonate", group: "", plural, subresource: "", namespace, name } as const;
    this.#authorize(user, asked);
  }

  #authorize(user: UserInfo, info: Attributes): void {
    if (!info.resource && OPEN_PATHS.has(info.path)) return;
    if (this.#parts.authorizer.authorize(user, info).allowed) return;
    if (!info.resource) throw forbiddenPath(info.path, user.name, info.verb);
    const what = info.subresource === "" ? info.plural : `${info.plural}/${info.subresource}`;
    const where = info.namespace === "" ? "at the cluster scope" : `in the namespace "${info.namespace}"`;
    const why = `User "${user.name}" cannot ${info.verb} resource "${what}" in API group "${info.group}" ${where}`;
    throw forbidden({ group: info.group, plural: info.plural }, info.name, why);
  }

  async #dispatch(info: ResourceRequest, call: Call): Promise<Reply> {
    const { core, reviews } = this.#parts;
    const { kind } = call;
    if (call.subresource !== "") return await this.#subresource(info, call);
    const verb = info.verb;
    if (!(kind.verbs as readonly string[]).includes(verb)) throw methodNotAllowed(kind, verb);
    if (kind.namespaced && call.namespace === "" && verb !== "list" && verb !== "watch") {
      throw badRequest(`an empty namespace may not be set when a resource name is provided`);
    }
    const review = reviews[`${kind.group}/${kind.plural}`];
    if (review) return answerReview(call, review);
    switch (verb) {
      case "get":
        return await get(core, call);
      case "list":
        return await list(core, call);
      case "watch":
        return watch(core, call);
      case "create":
        return await create(core, call);
      case "update":
        return await update(core, call);
      case "patch":
        if (createsByApply(core, call)) this.#authorize(call.user, { ...info, verb: "create" });
        return await patch(core, call);
      case "delete":
        return await remove(core, call);
      case "deletecollection":
        return await removeCollection(core, call);
      default:
        throw methodNotAllowed(kind, verb);
    }
  }

  async #subresource(info: ResourceRequest, call: Call): Promise<Reply> {
    const { core, subresources } = this.#parts;
    const { kind, subresource } = call;
    const own = subresources.find(
      (one) => one.group === kind.group && one.plural === kind.plural && isPart(one.name, subresource),
    );
    if (own) {
      if (!own.verbs.includes(info.verb)) throw methodNotAllowed(kind, info.verb);
      return await own.handle(core, call, info.verb);
    }
    if (subresource === "status" && kind.status) {
      if (info.verb === "get") return await get(core, call);
      if (info.verb === "update") return await update(core, call);
      if (info.verb === "patch") return await patch(core, call);
      throw methodNotAllowed(kind, info.verb);
    }
    if (subresource === "scale" && kind.scale) return await scale(core, call, info.verb);
    throw noSuchPath();
  }
}

function splitList(text: string | undefined): string[] {
  if (text === undefined) return [];
  return text
    .split(",")
    .map((item) => item.trim())
    .filter(Boolean);
}

const SERVICE_ACCOUNT = /^system:serviceaccount:([^:]+):([^:]+)$/;

const OPEN_PATHS = new Set(["/healthz", "/livez", "/readyz"]);

/** `proxy/some/path` belongs to `proxy`. */
function isPart(name: string, asked: string): boolean {
  return asked === name || asked.startsWith(`${name}/`);
}

function answerReview(call: Call, review: Reviews[string]): Reply {
  const { object } = decodeObject(
    call.kind as ServedKind,
    call.body,
    call.headers["content-type"],
    fieldValidationOf(call.query),
  );
  return { status: 201, body: JSON.stringify(review(call, object)) };
}

/** Any error as a Status. An unexpected one is a 500 without details. */
export function refusal(error: unknown): Reply {
  const status = asStatus(error);
  const headers: Record<string, string> = {};
  const after = status.status.details?.retryAfterSeconds;
  if (after !== undefined) headers["retry-after"] = String(after);
  return { status: status.code, headers, body: JSON.stringify(status.status) };
}

function asStatus(error: unknown): StatusError {
  if (error instanceof StatusError) return error;
  if (error instanceof StoreConflict) {
    return new StatusError(
      409,
      "Conflict",
      "the object has been modified; please apply your changes to the latest version and try again",
    );
  }
  if (error instanceof CodedError)
    return new StatusError(503, "ServiceUnavailable", `${error.message} [${error.code}]`);
  const message = error instanceof Error ? error.message : String(error);
  return new StatusError(500, "InternalError", `Internal error occurred: ${message}`);
}

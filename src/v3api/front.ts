import type { V3Kind } from "../aggregated/v3-kinds.ts";
import type { Incoming, Reply, UserInfo } from "../apiserver/call.ts";
import type { Documents } from "../apiserver/documents.ts";
import type { Handler } from "../apiserver/http.ts";
import { type RequestInfo, type ResourceRequest, requestInfo } from "../apiserver/request-info.ts";
import { refusal } from "../apiserver/router.ts";
import { badRequest, forbidden, forbiddenPath, methodNotAllowed, noSuchPath } from "../apiserver/status-errors.ts";
import { type HealthChecks, runHealthChecks } from "../kit/health-server.ts";
import { METRICS_CONTENT_TYPE, type Metrics } from "../kit/metrics.ts";
import type { ApiServerMetrics } from "./apiserver-metrics.ts";
import { remove, removeCollection } from "./deleting.ts";
import { patch } from "./patching.ts";
import { get, list, watch } from "./reading.ts";
import type { Parts, V3Request, Verb } from "./request.ts";
import { refusalToServed } from "./translate-status.ts";
import { create, update } from "./writing.ts";

const VERBS: Readonly<Record<string, Verb>> = {
  get,
  list,
  watch,
  create,
  update,
  patch,
  delete: remove,
  deletecollection: removeCollection,
};
/** The verbs of a status; it is written by the program that runs the object. */
const STATUS_VERBS = new Set(["get", "update", "patch"]);
/** For kubelet probes, which are anonymous here. */
const HEALTH = /^\/(livez|readyz|healthz)(?:\/(.+))?$/;

export interface FrontOptions {
  documents: Documents;
  metrics: Metrics;
  counts: ApiServerMetrics;
  ready: HealthChecks;
}

/** From a request to its answer: may they, which resource, which verb. The sender is known already. */
export class Front implements Handler {
  readonly #parts: Parts;
  readonly #options: FrontOptions;

  constructor(parts: Parts, options: FrontOptions) {
    this.#parts = parts;
    this.#options = options;
  }

  async handle(incoming: Incoming): Promise<Reply> {
    const began = performance.now();
    let what = { verb: incoming.method.toLowerCase(), resource: "" };
    const reply = await this.#route(incoming, (verb, resource) => {
      what = { verb, resource };
    }).catch(refusal);
    this.#options.counts.requests.add({ ...what, code: String(reply.status) });
    this.#options.counts.requestSeconds.observe((performance.now() - began) / 1000, what);
    return reply;
  }

  async #route(incoming: Incoming, record: (verb: string, resource: string) => void): Promise<Reply> {
    const query = new URLSearchParams(incoming.search);
    const info = requestInfo(incoming.method, incoming.path, query);
    if (!info.resource) {
      const health = HEALTH.exec(info.path);
      if (health) return await this.#health(health[1]!, health[2], query);
      await this.#authorize(incoming.user, info);
      if (info.path === "/metrics") return metricsReply(this.#options.metrics);
      return this.#options.documents.answer(incoming, info.path, query);
    }
    const kind = this.#parts.kinds.find(
      ({ served }) => served.group === info.group && served.version === info.version && served.plural === info.plural,
    );
    record(info.verb, kind?.served.plural ?? "");
    await this.#authorize(incoming.user, info);
    if (!kind) throw noSuchPath();
    const verb = verbOf(kind, info);
    if (kind.tiered && info.name !== "") {
      await this.#parts.tiers.mustAllow(incoming.user, kind, info, info.name);
    }
    const asked: V3Request = { kind, info, query, incoming };
    try {
      return await verb(this.#parts, asked);
    } catch (error) {
      throw refusalToServed(error, kind, this.#parts.translator);
    }
  }

  async #authorize(user: UserInfo, info: RequestInfo): Promise<void> {
    if (await this.#parts.access.allows(user, info)) return;
    if (!info.resource) throw forbiddenPath(info.path, user.name, info.verb);
    const what = info.subresource === "" ? info.plural : `${info.plural}/${info.subresource}`;
    const where = info.namespace === "" ? "at the cluster scope" : `in the namespace "${info.namespace}"`;
    const why = `User "${user.name}" cannot ${info.verb} resource "${what}" in API group "${info.group}" ${where}`;
    throw forbidden({ group: info.group, plural: info.plural }, info.name, why);
  }

  async #health(path: string, only: string | undefined, query: URLSearchParams): Promise<Reply> {
    const all = path === "readyz" ? this.#options.ready : {};
    const checks = only === undefined ? all : Object.fromEntries(Object.entries(all).filter(([name]) => name === only));
    const { well, lines } = await runHealthChecks(checks);
    const short = well && !query.has("verbose");
    const body = short ? "ok" : `${[...lines, `${path} ${well ? "passed" : "failed"}`].join("\n")}\n`;
    return { status: well ? 200 : 503, headers: { "content-type": "text/plain; charset=utf-8" }, body };
  }
}

function verbOf(kind: V3Kind, info: ResourceRequest): Verb {
  if (info.subresource !== "" && !(info.subresource === "status" && kind.served.status)) throw noSuchPath();
  const verb = VERBS[info.verb];
  if (!verb || (info.subresource !== "" && !STATUS_VERBS.has(info.verb))) {
    throw methodNotAllowed(kind.served, info.verb);
  }
  if (kind.served.namespaced && info.namespace === "" && info.verb !== "list" && info.verb !== "watch") {
    throw badRequest("an empty namespace may not be set when a resource name is provided");
  }
  return verb;
}

function metricsReply(metrics: Metrics): Reply {
  return { status: 200, headers: { "content-type": METRICS_CONTENT_TYPE }, body: metrics.text() };
}

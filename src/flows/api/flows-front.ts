import type { Access } from "../../aggregated/access.ts";
import { FLOW_LOGS_API } from "../../api/names.ts";
import type { FlowExplanation } from "../../api/protocol/flow-explanation.ts";
import type { FlowPreview } from "../../api/protocol/flow-preview.ts";
import { type FlowProposal, PROPOSAL_KINDS } from "../../api/protocol/flow-proposal.ts";
import { StatusError } from "../../api/status.ts";
import type { Incoming, Reply, Sink, UserInfo } from "../../apiserver/call.ts";
import type { Documents } from "../../apiserver/documents.ts";
import type { Handler } from "../../apiserver/http.ts";
import { type RequestInfo, type ResourceRequest, requestInfo } from "../../apiserver/request-info.ts";
import type { ServedKind } from "../../apiserver/resource.ts";
import { refusal } from "../../apiserver/router.ts";
import { eventLine, type Shaper, shaperOf } from "../../apiserver/shape.ts";
import {
  badRequest,
  expired,
  forbidden,
  forbiddenPath,
  methodNotAllowed,
  noSuchPath,
  notFound,
} from "../../apiserver/status-errors.ts";
import { CodedError } from "../../kit/errors.ts";
import { type HealthChecks, runHealthChecks } from "../../kit/health-server.ts";
import { METRICS_CONTENT_TYPE, type Metrics } from "../../kit/metrics.ts";
import type { AskedExplanation } from "../explain/flow-explanations.ts";
import type { FlowPace } from "../ingest/flow-pace.ts";
import type { AskedPreview } from "../preview/flow-previews.ts";
import type { AskedProposal } from "../propose/flow-proposals.ts";
import { errors } from "../store/errors.ts";
import type { FlowList, FlowStore } from "../store/flow-store.ts";
import type { FlowEvent } from "../store/flow-watch.ts";
import type { KnownRule } from "../store/rankings.ts";
import type { Visible } from "../store/visibility.ts";
import { flowObject } from "./flow-object.ts";
import { askedFlows, choiceIn, numberIn, sortIn } from "./flow-request.ts";

/** For kubelet probes, which are anonymous here. */
const HEALTH = /^\/(livez|readyz|healthz)(?:\/(.+))?$/;
const POINTS = 60;
const LONGEST_WATCH_S = 3_600;
/** Of one user at a time: whoever may see one namespace must not take the watches of all others. */
const MOST_WATCHES = 20;
/** Each calculates policy, which others wait for. */
const MOST_EXPLANATIONS = 8;
/** Each reads every row of its time. */
const MOST_PROPOSALS = 4;
const EXPLAIN = "explain";
const MEASURES = ["flows", "connections", "packets", "bytes"] as const;
const YES_OR_NO = ["true", "false"] as const;

export interface FlowsFrontParts {
  kind: ServedKind;
  store: FlowStore;
  access: Access;
  pace: FlowPace;
  documents: Documents;
  metrics: Metrics;
  ready: HealthChecks;
  /** Rules that exist, hit or not. */
  knownRules(by: "policy" | "rule"): Promise<KnownRule[]>;
  explain(asked: AskedExplanation): Promise<FlowExplanation>;
  propose(asked: AskedProposal): Promise<FlowProposal>;
  preview(asked: AskedPreview): Promise<FlowPreview>;
  stopping: AbortSignal;
}

/** What a request asks for, once it is known that its sender may. */
interface Asked {
  info: ResourceRequest;
  params: URLSearchParams;
  incoming: Incoming;
  visible: Visible;
}

/**
 * The API `flows.vendor.io/v1`. Who may list flows in a namespace sees those with an end there; who may in the whole cluster sees all. Hints,
 * statistics, rankings and timelines are parts of the same right: they are made of the same flows.
 */
export class FlowsFront implements Handler {
  readonly #parts: FlowsFrontParts;
  /** How many watches are open, by user. */
  readonly #watches = new Map<string, number>();
  #explanations = 0;
  #proposals = 0;

  constructor(parts: FlowsFrontParts) {
    this.#parts = parts;
  }

  async handle(incoming: Incoming): Promise<Reply> {
    try {
      return await this.#route(incoming);
    } catch (error) {
      return refusal(error instanceof CodedError ? statusOf(error) : error);
    }
  }

  async #route(incoming: Incoming): Promise<Reply> {
    const params = new URLSearchParams(incoming.search);
    const info = requestInfo(incoming.method, incoming.path, params);
    if (!info.resource) {
      const health = HEALTH.exec(info.path);
      if (health) return await this.#health(health[1]!, health[2], params);
      await this.#authorize(incoming.user, info);
      if (info.path === "/metrics") {
        return { status: 200, headers: { "content-type": METRICS_CONTENT_TYPE }, body: this.#parts.metrics.text() };
      }
      return this.#parts.documents.answer(incoming, info.path, params);
    }
    const answer = this.#answerOf(info);
    // An explanation is of a flow that the reader may get, what is calculated of many of flows that it may list; of policies they ask themselves.
    const verb = info.verb === "create" ? "list" : info.verb;
    await this.#authorize(incoming.user, { ...info, verb, plural: "flows", subresource: "" });
    const { namespace } = info;
    const visible = namespace === "" ? undefined : (name: string) => name === namespace;
    return await answer({ info, params, incoming, visible });
  }

  #answerOf(info: ResourceRequest): (asked: Asked) => Reply | Promise<Reply> {
    const { group, version, plural, verb, subresource } = info;
    if (group !== FLOW_LOGS_API.group || version !== FLOW_LOGS_API.version) throw noSuchPath();
    if (plural === "flows" && subresource === EXPLAIN && info.name !== "") {
      if (verb === "get") return (asked) => this.#explain(asked);
      throw methodNotAllowed(this.#parts.kind, verb);
    }
    if (subresource !== "") throw noSuchPath();
    if (plural === "flows") {
      if (verb === "get") return (asked) => this.#get(asked);
      if (verb === "list") return (asked) => this.#list(asked);
      if (verb === "watch") return (asked) => this.#watch(asked);
      throw methodNotAllowed(this.#parts.kind, verb);
    }
    const calculated = { previews: this.#preview };
    if (Object.hasOwn(calculated, plural) && info.name === "") {
      if (verb !== "create") throw methodNotAllowed({ group, plural }, verb);
      return calculated[plural as keyof typeof calculated].bind(this);
    }
    const about = {
      ...{ hints: this.#hints, top: this.#top, statistics: this.#statistics, timeline: this.#timeline },
      proposals: this.#propose,
    };
    const found = Object.hasOwn(about, plural) && info.name === "" ? about[plural as keyof typeof about] : undefined;
    if (!found) throw noSuchPath();
    if (verb !== "list") throw methodNotAllowed(this.#parts.kind, verb);
    return found.bind(this);
  }

  async #authorize(user: UserInfo, info: RequestInfo): Promise<void> {
    if (await this.#parts.access.allows(user, info)) return;
    if (!info.resource) throw forbiddenPath(info.path, user.name, info.verb);
    const where = info.namespace === "" ? "at the cluster scope" : `in the namespace "${info.namespace}"`;
    const why = `User "${user.name}" cannot ${info.verb} resource "flows" in API group "${info.group}" ${where}`;
    throw forbidden({ group: info.group, plural: "flows" }, info.name, why);
  }

  #get({ info, params, incoming, visible }: Asked): Reply {
    const flow = this.#parts.store.find({ id: info.name, visible });
    if (!flow) throw notFound(this.#parts.kind, info.name);
    return this.#shaper(incoming, params).one(flowObject(flow, info.namespace));
  }

  async #explain({ info, incoming, visible }: Asked): Promise<Reply> {
    const evidence = this.#parts.store.evidence({ id: info.name, visible });
    if (!evidence) throw notFound(this.#parts.kind, info.name);
    if (this.#explanations >= MOST_EXPLANATIONS) throw errors.FLOW_EXPLANATIONS_FULL(this.#explanations);
    this.#explanations++;
    try {
      const { namespace } = info;
      const explanation = await this.#parts.explain({ evidence, user: incoming.user, namespace });
      return { status: 200, headers: { "content-type": "application/json" }, body: JSON.stringify(explanation) };
    } finally {
      this.#explanations--;
    }
  }

  async #preview({ info, incoming, visible }: Asked): Promise<Reply> {
    const preview = await this.#parts.preview({ incoming, namespace: info.namespace, visible });
    return { status: 201, headers: { "content-type": "application/json" }, body: JSON.stringify(preview) };
  }

  #list({ info, params, incoming, visible }: Asked): Reply {
    const { id, ...asked } = askedFlows(params);
    const { store } = this.#parts;
    const list = store.list({
      ...{ ...asked, visible, sort: sortIn(params), limit: id === undefined ? numberIn(params, "limit") : undefined },
      continue: params.get("continue") ?? undefined,
    });
    const flows = id === undefined ? list.flows : list.flows.filter((flow) => flow.id === id);
    const items = flows.map((flow) => flowObject(flow, info.namespace));
    return this.#shaper(incoming, params).list(items, listMetadata(list));
  }

  #watch({ info, params, incoming, visible }: Asked): Reply {
    const { store, pace, stopping } = this.#parts;
    const { id: selected, since, until, query } = askedFlows(params);
    // Who may watch one flow may have a right to that one alone.
    const id = info.name || selected;
    if (since !== undefined || until !== undefined) throw badRequest("a watch has no since and no until");
    const { name: user } = incoming.user;
    const open = this.#watches.get(user) ?? 0;
    if (open >= MOST_WATCHES) throw errors.FLOW_WATCHES_FULL(open);
    const left = new AbortController();
    const seconds = numberIn(params, "timeoutSeconds") ?? LONGEST_WATCH_S;
    const timer = setTimeout(() => left.abort(), Math.min(seconds, LONGEST_WATCH_S) * 1_000).unref();
    const signal = AbortSignal.any([incoming.signal, left.signal, stopping]);
    const events = store.watch({ query, visible, resourceVersion: params.get("resourceVersion") ?? undefined, signal });
    const shape = this.#shaper(incoming, params);
    const bookmarks = params.get("allowWatchBookmarks") === "true";
    const lineOf = (event: FlowEvent) => {
      if (event.type === "BOOKMARK") return bookmarks ? bookmark(this.#parts.kind, event.resourceVersion) : undefined;
      if (id !== undefined && event.flow.id !== id) return undefined;
      return shape.event(event.type, flowObject(event.flow, info.namespace));
    };
    const stream = (sink: Sink) => {
      // While somebody watches, agents are asked to say at once what they count.
      const calm = pace.watch();
      this.#countWatch(user, 1);
      sink.signal.addEventListener("abort", () => left.abort(), { once: true });
      void follow(events, lineOf, sink).finally(() => {
        calm();
        this.#countWatch(user, -1);
        clearTimeout(timer);
        left.abort();
        sink.end();
      });
    };
    return { status: 200, headers: { "content-type": "application/json" }, stream };
  }

  #countWatch(user: string, more: 1 | -1): void {
    const open = (this.#watches.get(user) ?? 0) + more;
    if (open > 0) this.#watches.set(user, open);
    else this.#watches.delete(user);
  }

  #hints({ params, visible }: Asked): Reply {
    const { id: _, ...asked } = askedFlows(params);
    const field = params.get("field") ?? "";
    const hints = this.#parts.store.hints({
      ...{ ...asked, visible, field, prefix: params.get("prefix") ?? "" },
      ...limitOf(params),
    });
    return json("FlowHints", { field, hints });
  }

  #top({ params, visible }: Asked): Reply {
    const { id: _, ...asked } = askedFlows(params);
    const by = params.get("by") ?? "from";
    const measure = choiceIn(params, "measure", MEASURES) ?? "bytes";
    const { values, ...coverage } = this.#parts.store.top({ ...asked, visible, by, measure, ...limitOf(params) });
    return json("FlowTop", { by, measure, values, ...coverage });
  }

  async #statistics({ params, visible }: Asked): Promise<Reply> {
    const { id: _, ...asked } = askedFlows(params);
    const by = choiceIn(params, "by", ["policy", "rule"]) ?? "policy";
    const known = await this.#parts.knownRules(by);
    const { rules, ...coverage } = this.#parts.store.statistics({ ...asked, visible, by, known });
    return json("FlowStatistics", { by, rules, ...coverage });
  }

  async #timeline({ params, visible }: Asked): Promise<Reply> {
    const { id: _, ...asked } = askedFlows(params);
    const points = numberIn(params, "points") ?? POINTS;
    const timeline = await this.#parts.store.timeline({ ...asked, visible, points });
    return json("FlowTimeline", { ...timeline });
  }

  async #propose({ info, params, incoming, visible }: Asked): Promise<Reply> {
    const { id: _, ...asked } = askedFlows(params);
    const kind = choiceIn(params, "kind", PROPOSAL_KINDS) ?? "kubernetes";
    const [egress, addresses] = ["egress", "addresses"].map((name) => choiceIn(params, name, YES_OR_NO) === "true");
    if (this.#proposals >= MOST_PROPOSALS) throw errors.FLOW_PROPOSALS_FULL(this.#proposals);
    this.#proposals++;
    try {
      const { namespace } = info;
      const { user } = incoming;
      const choices = { kind, egress: egress === true, addresses: addresses === true };
      const proposal = await this.#parts.propose({ ...asked, ...choices, visible, user, namespace });
      return { status: 200, headers: { "content-type": "application/json" }, body: JSON.stringify(proposal) };
    } finally {
      this.#proposals--;
    }
  }

  #shaper(incoming: Incoming, params: URLSearchParams): Shaper {
    return shaperOf(this.#parts.kind, incoming.headers["accept"], params, () => new Date());
  }

  async #health(path: string, only: string | undefined, params: URLSearchParams): Promise<Reply> {
    const all = path === "readyz" ? this.#parts.ready : {};
    const checks = only === undefined ? all : Object.fromEntries(Object.entries(all).filter(([name]) => name === only));
    const { well, lines } = await runHealthChecks(checks);
    const short = well && !params.has("verbose");
    const body = short ? "ok" : `${[...lines, `${path} ${well ? "passed" : "failed"}`].join("\n")}\n`;
    return { status: well ? 200 : 503, headers: { "content-type": "text/plain; charset=utf-8" }, body };
  }
}

/** A reader that is slow is waited for: the store keeps nothing for it meanwhile. */
async function follow(
  events: AsyncIterable<FlowEvent>,
  lineOf: (event: FlowEvent) => string | undefined,
  sink: Sink,
): Promise<void> {
  try {
    for await (const event of events) {
      const line = lineOf(event);
      if (line !== undefined && !sink.write(line)) await sink.writable();
    }
  } catch (error) {
    if (error instanceof CodedError) sink.write(eventLine("ERROR", statusOf(error).status));
  }
}

/** What people can mend is told them with its code. */
function statusOf(error: CodedError): StatusError {
  const text = `${error.message} [${error.code}]`;
  switch (error.code) {
    case "FLOW_CONTINUE_EXPIRED":
    case "FLOW_VERSION_EXPIRED":
      return expired(text);
    case "FLOW_EXPLANATIONS_FULL":
    case "FLOW_PROPOSALS_FULL":
    case "FLOW_PREVIEWS_FULL":
    case "FLOW_WATCHES_FULL":
      return new StatusError(429, "TooManyRequests", text);
    default:
      return badRequest(text);
  }
}

/** What a list rests on is said with it; clients that do not know it pass it by. */
function listMetadata({ resourceVersion, remaining, continue: next, ...list }: FlowList): Record<string, unknown> {
  const { totals, since, until, historyFrom, shed, nodes } = list;
  return {
    resourceVersion,
    ...(next ? { continue: next, remainingItemCount: remaining } : {}),
    ...{ totals, since, until, historyFrom, shed, nodes },
  };
}

function bookmark({ group, version, kind }: ServedKind, resourceVersion: string): string {
  const object = { apiVersion: `${group}/${version}`, kind, metadata: { resourceVersion, creationTimestamp: null } };
  return eventLine("BOOKMARK", object);
}

function limitOf(params: URLSearchParams): { limit?: number } {
  const limit = numberIn(params, "limit");
  return limit === undefined ? {} : { limit: Math.min(limit, 1_000) };
}

function json(kind: string, value: object): Reply {
  const body = JSON.stringify({ kind, apiVersion: `${FLOW_LOGS_API.group}/${FLOW_LOGS_API.version}`, ...value });
  return { status: 200, headers: { "content-type": "application/json" }, body };
}

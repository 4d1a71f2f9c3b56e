import type { IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import type { Condition, KubeObject } from "../api/object.ts";
import { StatusError } from "../api/status.ts";
import type { KeyPair } from "../kit/x509.ts";
import type { Admission, Change, Incoming, Reply, Sink } from "./call.ts";
import { type Core, objectOf, putNow, timestamp } from "./core.ts";
import type { ForeignGroupVersion, ForeignOpenApi } from "./discovery.ts";
import { storageKey } from "./registry.ts";
import { noSuchPath } from "./status-errors.ts";

export interface ApiService extends KubeObject {
  spec: {
    group: string;
    version: string;
    service?: { namespace: string; name: string; port?: number } | null;
    caBundle?: string;
    insecureSkipTLSVerify?: boolean;
    groupPriorityMinimum: number;
    versionPriority: number;
  };
  status?: { conditions?: Condition[] };
}

/** Where a service's endpoints really listen; undefined while nothing stands behind it. */
export type ResolveService = (
  namespace: string,
  name: string,
  port: number,
) => { host: string; port: number } | undefined;

export interface AggregationOptions {
  resolveService: ResolveService;
  /** Proves to the other server that the user named in the request's headers was authenticated here. */
  frontProxy: KeyPair | undefined;
  probeEveryMs?: number;
}

interface Known {
  service: ApiService;
  resources: readonly Record<string, unknown>[] | undefined;
  openApi: ForeignOpenApi | undefined;
}

const SYSTEM = { name: "system:kube-aggregator", groups: ["system:masters"] };
const PROBE_EVERY_MS = 5000;

/** Groups other servers serve: their discovery, their health in `APIService.status`, and requests passed on to them. */
export class Aggregation implements Admission {
  readonly #core: Core;
  readonly #options: AggregationOptions;
  /** `group/version` -> who serves it. */
  readonly #known = new Map<string, Known>();
  readonly #changed: () => void;
  #timer: NodeJS.Timeout | undefined;
  readonly #stopped = new AbortController();

  constructor(core: Core, options: AggregationOptions, changed: () => void) {
    this.#core = core;
    this.#options = options;
    this.#changed = changed;
  }

  start(): void {
    const kind = this.#core.registry.find("apiregistration.k8s.io", "v1", "apiservices");
    if (!kind) return;
    for (const stored of this.#core.store.list(storageKey(kind))) this.#learn(objectOf(kind, stored) as ApiService);
    this.#timer = setInterval(() => void this.probeAll(), this.#options.probeEveryMs ?? PROBE_EVERY_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#stopped.abort();
  }

  committed(change: Change): void {
    if (change.kind.group === "" && change.kind.kind === "Endpoints") {
      this.#endpointsChanged(change.object);
      return;
    }
    if (change.kind.group !== "apiregistration.k8s.io" || change.kind.kind !== "APIService") return;
    const service = change.object as ApiService;
    if (change.operation === "DELETE") {
      if (this.#known.delete(keyOf(service))) this.#changed();
      return;
    }
    this.#learn(service);
    void this.#probe(service);
  }

  /** The endpoints of a service have changed: availability is probed now, not in the next round. */
  #endpointsChanged({ metadata }: KubeObject): void {
    for (const { service } of this.#known.values()) {
      const { name, namespace } = service.spec.service ?? {};
      if (name === metadata.name && namespace === metadata.namespace) void this.#probe(service);
    }
  }

  #learn(service: ApiService): void {
    if (!service.spec.service) {
      if (this.#known.delete(keyOf(service))) this.#changed();
      return;
    }
    const { resources, openApi } = this.#known.get(keyOf(service)) ?? {};
    this.#known.set(keyOf(service), { service, resources, openApi });
    this.#changed();
  }

  serves(group: string, version: string): boolean {
    return this.#known.has(`${group}/${version}`);
  }

  foreign(): ForeignGroupVersion[] {
    return [...this.#known.values()].map(({ service: { spec }, resources, openApi }) => ({
      group: spec.group,
      version: spec.version,
      resources,
      priority: spec.groupPriorityMinimum,
      openApi,
    }));
  }

  async probeAll(): Promise<void> {
    await Promise.all([...this.#known.values()].map(({ service }) => this.#probe(service)));
  }

  /** Asks for the group's discovery: an answer is health and content at once. */
  async #probe(service: ApiService): Promise<void> {
    const known = this.#known.get(keyOf(service));
    if (!known) return;
    const path = `/apis/${service.spec.group}/${service.spec.version}`;
    const signal = AbortSignal.any([this.#stopped.signal, AbortSignal.timeout(PROBE_EVERY_MS)]);
    try {
      const body = (await this.#ask(service, path, signal)) as { resources?: Record<string, unknown>[] };
      const openApi = await this.#describe(service, known.openApi, signal);
      this.#report(service, { resources: body.resources ?? [], openApi }, "Passed", "all checks passed");
    } catch (error) {
      const reason = this.#target(service) ? "FailedDiscoveryCheck" : "MissingEndpoints";
      const found = { resources: undefined, openApi: known.openApi };
      this.#report(service, found, reason, `${(error as Error).message}`);
    }
  }

  /** Read again only when the other server says it has changed. A server without such documents is no less available. */
  async #describe(service: ApiService, before: Known["openApi"], signal: AbortSignal): Promise<Known["openApi"]> {
    const own = `apis/${service.spec.group}/${service.spec.version}`;
    try {
      const index = (await this.#ask(service, "/openapi/v3", signal)) as {
        paths?: Record<string, { serverRelativeURL: string }>;
      };
      const serverRelativeURL = index.paths?.[own]?.serverRelativeURL;
      if (serverRelativeURL === undefined || serverRelativeURL === before?.serverRelativeURL) return before;
      const { paths, definitions } = (await this.#ask(service, "/openapi/v2", signal)) as Partial<ForeignOpenApi>;
      const ownPaths = Object.entries(paths ?? {}).filter(([path]) => path.startsWith(`/${own}/`));
      return { serverRelativeURL, paths: Object.fromEntries(ownPaths), definitions: definitions ?? {} };
    } catch {
      return before;
    }
  }

  async #ask(service: ApiService, path: string, signal: AbortSignal): Promise<unknown> {
    const headers = { accept: "application/json" };
    const request = { method: "GET", path, search: "", headers, body: Buffer.alloc(0), user: SYSTEM, signal };
    const answer = await this.#send(service, request);
    const text = await textOf(answer);
    if (answer.statusCode !== 200) throw new Error(`failing or missing response: HTTP ${answer.statusCode}`);
    return JSON.parse(text);
  }

  #report(service: ApiService, found: Pick<Known, "resources" | "openApi">, reason: string, message: string): void {
    const known = this.#known.get(keyOf(service));
    if (!known || this.#stopped.signal.aborted) return;
    const before = JSON.stringify([known.resources, known.openApi?.serverRelativeURL]);
    Object.assign(known, found);
    if (JSON.stringify([known.resources, known.openApi?.serverRelativeURL]) !== before) this.#changed();
    this.#writeCondition(service.metadata.name, found.resources !== undefined, reason, message);
  }

  #writeCondition(name: string, available: boolean, reason: string, message: string): void {
    const kind = this.#core.registry.find("apiregistration.k8s.io", "v1", "apiservices")!;
    const stored = this.#core.store.get(storageKey(kind), "", name);
    if (!stored) return;
    const object = objectOf(kind, stored) as ApiService;
    const status = available ? "True" : "False";
    const before = object.status?.conditions?.find((one) => one.type === "Available");
    if (before?.status === status && before.reason === reason && before.message === message) return;
    const since = before?.status === status ? before.lastTransitionTime : timestamp(this.#core.now());
    const condition: Condition = { type: "Available", status, lastTransitionTime: since, reason, message };
    const next = { ...object, status: { conditions: [condition] } };
    const change = {
      operation: "UPDATE" as const,
      kind,
      subresource: "status",
      object: next,
      old: object,
      user: SYSTEM,
      dryRun: false,
    };
    const { resources, openApi } = this.#known.get(keyOf(next)) ?? {};
    this.#known.set(keyOf(next), { service: next, resources, openApi });
    // Straight to the store: this is the server's own write, and an event about it would probe again.
    const { admissions, ...rest } = this.#core;
    putNow({ ...rest, admissions: admissions.filter((one) => one !== this) }, change, stored.revision);
  }

  /** Passes a request on, and the answer back as it comes. */
  async proxy(group: string, version: string, request: Incoming): Promise<Reply> {
    const known = this.#known.get(`${group}/${version}`);
    if (!known) throw noSuchPath();
    try {
      const answer = await this.#send(known.service, request);
      return { status: answer.statusCode ?? 502, headers: passedHeaders(answer), stream: (sink) => pipe(answer, sink) };
    } catch (error) {
      throw new StatusError(503, "ServiceUnavailable", `error trying to reach service: ${(error as Error).message}`);
    }
  }

  #target(service: ApiService): { host: string; port: number } | undefined {
    const { namespace, name, port } = service.spec.service!;
    return this.#options.resolveService(namespace, name, port ?? 443);
  }

  #send(service: ApiService, request: Incoming): Promise<IncomingMessage> {
    const target = this.#target(service);
    const { namespace, name } = service.spec.service!;
    if (!target) throw new Error(`service/${name} in "${namespace}" has no endpoints`);
    const { frontProxy } = this.#options;
    const headers = forwardedHeaders(request);
    return new Promise((resolve, reject) => {
      const outgoing = httpsRequest(
        {
          ...target,
          method: request.method,
          path: request.path + request.search,
          headers,
          servername: `${name}.${namespace}.svc`,
          rejectUnauthorized: !service.spec.insecureSkipTLSVerify,
          ...(service.spec.caBundle && { ca: Buffer.from(service.spec.caBundle, "base64") }),
          ...(frontProxy && { cert: frontProxy.certificate, key: frontProxy.key }),
          // Of its own: many requests may hang on one signal at once, each with a listener.
          signal: AbortSignal.any([request.signal]),
        },
        resolve,
      );
      outgoing.on("error", reject);
      outgoing.end(request.body);
    });
  }
}

function keyOf({ spec }: ApiService): string {
  return `${spec.group}/${spec.version}`;
}

/** The user goes along in headers; the credentials that proved it stay here. */
function forwardedHeaders(request: Incoming): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(request.headers)) {
    if (value === undefined || HELD_BACK.has(name) || name.startsWith("x-remote-") || name.startsWith("impersonate-"))
      continue;
    headers[name] = value;
  }
  headers["x-remote-user"] = request.user.name;
  headers["x-remote-group"] = request.user.groups.join(",");
  if (request.body.length > 0) headers["content-length"] = String(request.body.length);
  return headers;
}

const HELD_BACK = new Set(["authorization", "host", "connection", "content-length", "transfer-encoding"]);

function passedHeaders(answer: IncomingMessage): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const name of ["content-type", "warning", "etag", "retry-after", "cache-control"]) {
    const value = answer.headers[name];
    if (typeof value === "string") headers[name] = value;
  }
  return headers;
}

function pipe(answer: IncomingMessage, sink: Sink): void {
  answer.on("data", (chunk: Buffer) => {
    if (!sink.write([chunk])) {
      answer.destroy();
      return;
    }
    // At the reader's pace: a long list must neither pile up here nor be cut off.
    answer.pause();
    void sink.writable().then(() => answer.resume());
  });
  answer.on("close", () => sink.end());
  sink.signal.addEventListener("abort", () => answer.destroy(), { once: true });
}

async function textOf(answer: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of answer) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

import type { KubeObject, ObjectRef, ResourceKind } from "../../src/api/object.ts";
import { customResourceDefinitions } from "../../src/api/schema/crd.ts";
import type { ApiRequest, ApiResponse, Transport } from "../../src/api/transport.ts";
import { kubernetesKinds } from "../../src/apiserver/kubernetes/kinds.ts";
import { type ApiServer, type ApiServerOptions, createApiServer } from "../../src/apiserver/server.ts";
import { type Client, createClient } from "../../src/cluster/client.ts";
import { isNotFound } from "../../src/cluster/failures.ts";
import { CRDS, NAMESPACES, NODES } from "../../src/cluster/kinds.ts";
import { readControllersConfig } from "../../src/controllers/config.ts";
import { controllersMetrics } from "../../src/controllers/controllers-metrics.ts";
import { type RunningControllers, startControllers } from "../../src/controllers/start-controllers.ts";
import { HOST_ENDPOINTS, PROFILES } from "../../src/controllers/stored-kinds.ts";
import { type Clock, systemClock } from "../../src/kit/clock.ts";
import { silentLog } from "../../src/kit/log.ts";
import { createMetrics } from "../../src/kit/metrics.ts";
import { patience } from "../../src/kit/testing/patience.ts";

/** An API server with our definitions, somebody who writes to it, and the controllers as often as a story starts them. */
export interface ControllersLab {
  server: ApiServer;
  /** The people and programs of the cluster. */
  client: Client;
  /** Starts the controllers on their own way to the server; they count every write, and may be made to fail. */
  start(options?: StartOptions): Started;
  endpoints(): Promise<KubeObject[]>;
  profiles(): Promise<KubeObject[]>;
  close(): Promise<void>;
}

export interface StartOptions {
  clock?: Clock;
  env?: Record<string, string>;
  /** Decides per request whether to fail it; undefined lets it pass. */
  fault?: (request: ApiRequest) => Fault | undefined;
}

/** `lost`: the server did it, and we never heard. */
export type Fault = { status: number } | "refused" | "lost";

export interface Started {
  controllers: RunningControllers;
  writes: string[];
  metrics(): string;
  stop(): Promise<void>;
}

export async function controllersLab(options: Partial<ApiServerOptions> = {}): Promise<ControllersLab> {
  const server = await createApiServer({ kinds: kubernetesKinds(), ...options });
  const client = createClient(server.transport(), { userAgent: "story" });
  for (const crd of customResourceDefinitions()) await client.create(CRDS, crd);
  for (const name of ["default", "vendor-system"]) {
    await client.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: { name } });
  }
  const started = new Set<Started>();
  const list = async (kind: ResourceKind) => (await client.list<KubeObject>(kind)).items;
  return {
    server,
    client,
    start(startOptions = {}) {
      const made = startOn(server.transport(), startOptions);
      started.add(made);
      return made;
    },
    endpoints: () => list(HOST_ENDPOINTS),
    profiles: () => list(PROFILES),
    async close() {
      for (const one of started) await one.stop();
      await server.close();
    },
  };
}

function startOn(transport: Transport, { clock = systemClock, env = {}, fault }: StartOptions): Started {
  const writes: string[] = [];
  const metrics = createMetrics();
  const counting: Transport = {
    async request(request) {
      const failing = fault?.(request);
      if (failing === "refused") throw new Error("connection refused");
      if (request.method !== "GET") writes.push(`${request.method} ${request.path}`);
      if (failing === "lost") {
        await transport.request(request);
        throw new Error("connection lost");
      }
      return failing ? answer(failing.status) : transport.request(request);
    },
    close: () => {},
  };
  const controllers = startControllers({
    client: createClient(counting, { userAgent: "vendor-kube-controllers" }),
    config: readControllersConfig(env),
    metrics: controllersMetrics(metrics),
    clock,
    log: silentLog,
  });
  let stopping: Promise<void> | undefined;
  return {
    controllers,
    writes,
    metrics: () => metrics.text(),
    stop: () => {
      stopping ??= controllers.stop();
      return stopping;
    },
  };
}

const REASONS: Record<number, string> = { 409: "Conflict", 429: "TooManyRequests", 500: "InternalError" };

function answer(status: number): ApiResponse {
  const body = JSON.stringify({
    kind: "Status",
    code: status,
    reason: REASONS[status],
    message: "injected",
    details: {},
  });
  return {
    status,
    headers: { "content-type": "application/json" },
    text: async () => body,
    async *lines() {
      yield body;
    },
  };
}

export interface NodeParts {
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  addresses?: [type: string, address: string][];
}

function node(name: string, parts: NodeParts = {}): KubeObject {
  const { labels = {}, annotations = {}, addresses = [["InternalIP", "10.0.0.1"]] } = parts;
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name, labels, annotations },
    status: { addresses: addresses.map(([type, address]) => ({ type, address })) },
  };
}

export async function addNode(client: Client, name: string, parts: NodeParts = {}): Promise<void> {
  const made = await client.create(NODES, node(name, parts));
  // Its status is the kubelet's to write.
  await client.replace(NODES, { ...made, status: node(name, parts)["status"] }, { subresource: "status" });
}

/** Undefined once it is gone. */
export async function read<T extends KubeObject>(
  client: Client,
  kind: ResourceKind,
  ref: ObjectRef,
): Promise<T | undefined> {
  try {
    return await client.get<T>(kind, ref);
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** Waits until what is read is as the story says; fails with what it was last. */
export async function eventually<T>(
  readIt: () => T | Promise<T>,
  is: (value: T) => boolean,
  withinMs = 20_000,
): Promise<T> {
  const began = Date.now();
  for (;;) {
    const value = await readIt();
    if (is(value)) return value;
    if (Date.now() - began > patience(withinMs))
      throw new Error(`still: ${JSON.stringify(value, undefined, 1)?.slice(0, 3_000)}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

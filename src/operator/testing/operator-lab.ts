import { vendorNames } from "../../api/names.ts";
import type { Condition, KubeObject, ObjectRef, ResourceKind } from "../../api/object.ts";
import { customResourceDefinitions } from "../../api/schema/crd.ts";
import type { ApiRequest, Transport } from "../../api/transport.ts";
import { kubernetesKinds } from "../../apiserver/kubernetes/kinds.ts";
import { type ApiServer, createApiServer } from "../../apiserver/server.ts";
import { type Client, createClient } from "../../cluster/client.ts";
import { isNotFound } from "../../cluster/failures.ts";
import {
  API_SERVICES,
  CONFIG_MAPS,
  CRDS,
  DAEMON_SETS,
  DEPLOYMENTS,
  LEASES,
  NAMESPACES,
  NODES,
  SERVICES,
} from "../../cluster/kinds.ts";
import { listenOn } from "../../cluster/program.ts";
import { type Log, silentLog } from "../../kit/log.ts";
import { patience } from "../../kit/testing/patience.ts";
import { storedKind } from "../managed-kinds.ts";
import { operatorProgram } from "../program.ts";
import { type FakeWorkloads, startFakeWorkloads } from "./fake-workloads.ts";
import { type SmallApi, startSmallApi } from "./small-api.ts";

/** A cluster in this process, with an operator that can be started, watched, killed and started again. */
export interface OperatorLab {
  server: ApiServer;
  /** Somebody with all rights, as kubectl would be. */
  kubectl: Client;
  /** Requests the operator made that could change something, as `METHOD path`; leases left out. */
  writes: string[];
  /** What the operator warned of. */
  warnings: string[];
  startOperator(options?: StartOptions): RunningOperator;
  installation(spec?: object, name?: string): Promise<void>;
  request(kind: "apiServer" | "flowLogs" | "flowUI", spec?: object): Promise<void>;
  patchInstallation(vendorNetwork: object): Promise<void>;
  get<T extends KubeObject>(kind: ResourceKind, ref: ObjectRef): Promise<T | undefined>;
  /** The conditions of a status as `Available=True Progressing=False …`, with reason and message of those that are true. */
  statusOf(part: string): Promise<PartStatus | undefined>;
  until<T>(read: () => Promise<T>, is: (value: T) => boolean): Promise<T>;
  untilStatus(
    part: string,
    is: "Available" | "Progressing" | "Degraded" | "NotInstalled",
    reason?: string,
  ): Promise<PartStatus>;
  /** Waits until the operator has made no request that changes anything for a while. */
  settled(): Promise<void>;
  stop(): Promise<void>;
}

export interface PartStatus {
  available: boolean;
  progressing: boolean;
  degraded: boolean;
  reason: string;
  message: string;
}

export interface StartOptions {
  env?: Record<string, string>;
  transport?: (real: Transport) => Transport;
}

export interface RunningOperator {
  /** How it ended, when it has. */
  ended: Promise<unknown>;
  stop(): Promise<void>;
  /** Where its health is. */
  url(): Promise<string>;
  /** Where it answers for a port; undefined while it does not. */
  urlOf(port: number): string | undefined;
}

export interface OperatorLabOptions {
  nodes?: number;
  node?: (
    index: number,
  ) => Partial<{ labels: Record<string, string>; annotations: Record<string, string>; info: object }>;
  definitions?: boolean;
  proxy?: { labels?: Record<string, string>; annotations?: Record<string, string>; mode?: string } | "none";
  endpoint?: Record<string, string> | "none";
}

const { namespaces, endpointMap } = vendorNames;
const GIVE_UP_MS = 20_000;

export async function operatorLab(options: OperatorLabOptions = {}): Promise<OperatorLab> {
  const api: SmallApi = await startSmallApi(() => kubectl);
  const server = await createApiServer({ kinds: kubernetesKinds(), resolveService: () => api.address });
  const kubectl: Client = createClient(server.transport(), { userAgent: "kubectl" });
  await prepare(kubectl, options);
  const standIn: FakeWorkloads = startFakeWorkloads(createClient(server.transport(), { userAgent: "cluster" }));
  const operators: RunningOperator[] = [];
  const writes: string[] = [];
  const warnings: string[] = [];

  const get = async <T extends KubeObject>(kind: ResourceKind, ref: ObjectRef) =>
    kubectl.get<T>(kind, ref).catch((error: unknown) => {
      if (isNotFound(error)) return undefined;
      throw error;
    });

  const statusOf = async (part: string) => {
    const status = await get<KubeObject>(storedKind("status"), { name: part });
    return status && partStatus((status["status"] as { conditions?: Condition[] } | undefined)?.conditions ?? []);
  };

  const startOperator = (start: StartOptions = {}): RunningOperator => {
    const real = counting(server.transport(), writes);
    const operator = runOperator(start.transport ? start.transport(real) : real, start.env ?? {}, warnings);
    operators.push(operator);
    return operator;
  };

  return {
    server,
    kubectl,
    writes,
    warnings,
    startOperator,
    get,
    statusOf,
    until,
    async installation(spec = {}, name = "default") {
      const kind = storedKind("installation");
      await kubectl.create(kind, { ...type(kind), metadata: { name }, spec: { variant: "OpenSource", ...spec } });
    },
    async request(noun, spec = {}) {
      const kind = storedKind(noun);
      await kubectl.create(kind, { ...type(kind), metadata: { name: "default" }, spec });
    },
    async patchInstallation(vendorNetwork) {
      const patch = { spec: { vendorNetwork } };
      await kubectl.patch(storedKind("installation"), { name: "default" }, { type: "merge", patch });
    },
    untilStatus: (part, is, reason) =>
      until(
        () => statusOf(part),
        (status) => status !== undefined && matches(status, is) && (reason === undefined || status.reason === reason),
      ) as Promise<PartStatus>,
    async settled() {
      let seen = -1;
      await until(
        async () => {
          await new Promise((resolve) => setTimeout(resolve, 250));
          const quiet = seen === writes.length;
          seen = writes.length;
          return quiet;
        },
        (quiet) => quiet,
      );
    },
    async stop() {
      await Promise.all(operators.map((operator) => operator.stop()));
      await standIn.stop();
      api.close();
      await server.close();
    },
  };
}

async function until<T>(read: () => Promise<T>, is: (value: T) => boolean): Promise<T> {
  const began = Date.now();
  for (;;) {
    const value = await read();
    if (is(value)) return value;
    if (Date.now() - began > patience(GIVE_UP_MS)) throw new Error(`still: ${JSON.stringify(value, undefined, 1)}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

function matches(status: PartStatus, is: "Available" | "Progressing" | "Degraded" | "NotInstalled"): boolean {
  if (is === "Available") return status.available && !status.progressing && !status.degraded;
  if (is === "NotInstalled") return status.reason === "NotInstalled";
  return is === "Degraded" ? status.degraded : status.progressing;
}

function partStatus(conditions: readonly Condition[]): PartStatus {
  const holds = (name: string) => conditions.some(({ type, status }) => type === name && status === "True");
  const main = conditions.find(({ type, status }) => type === "Degraded" && status === "True") ?? conditions[0];
  return {
    available: holds("Available"),
    progressing: holds("Progressing"),
    degraded: holds("Degraded"),
    reason: main?.reason ?? "",
    message: main?.message ?? "",
  };
}

function runOperator(transport: Transport, env: Record<string, string>, warnings: string[]): RunningOperator {
  const stopping = new AbortController();
  const servers: { close(): void }[] = [];
  const urls = new Map<number, string>();
  let told: (url: string) => void = () => {};
  const address = new Promise<string>((resolve) => {
    told = resolve;
  });
  const program = operatorProgram({
    env: { NAMESPACE: namespaces.operator, ...env },
    transport: () => transport,
    signal: stopping.signal,
    log: warningLog(warnings),
    async listen(server, port) {
      servers.push(server);
      const at = await listenOn(server, { host: "127.0.0.1", port: 0 });
      urls.set(port, `http://127.0.0.1:${at.port}`);
      told(`http://127.0.0.1:${at.port}`);
      return at;
    },
  });
  const ended = program.then(
    () => undefined,
    (error: unknown) => error,
  );
  return {
    ended,
    url: () => address,
    urlOf: (port) => urls.get(port),
    async stop() {
      stopping.abort();
      await ended;
      for (const server of servers) server.close();
    },
  };
}

function warningLog(warnings: string[]): Log {
  const log: Log = {
    ...silentLog,
    warn: (fields, message) => void warnings.push(`${message} ${JSON.stringify(fields)}`),
    child: () => log,
  };
  return log;
}

/** Leases are written all the time; they are how a leader breathes. */
function counting(real: Transport, writes: string[]): Transport {
  return {
    request(request) {
      // Events tell what happened; they change nothing.
      if (isWrite(request) && !request.path.endsWith("/events")) writes.push(`${request.method} ${request.path}`);
      return real.request(request);
    },
    close: () => real.close(),
  };
}

export function isWrite({ method, path }: ApiRequest): boolean {
  return method !== "GET" && !path.includes("/leases");
}

const NOT_LISTED = new Set(["Event", "Lease", "Pod", "APIService"]);

/** Every object of the cluster by kind and name, but for what comes and goes by itself and what the server makes of definitions. */
export async function allObjectsOf(kubectl: Client): Promise<string[]> {
  const kinds = (await kubectl.resources()).filter(
    ({ kind, verbs }) => verbs.includes("list") && !NOT_LISTED.has(kind),
  );
  const lists = await Promise.all(kinds.map(async (kind) => (await kubectl.list(kind)).items));
  const named = lists.flat().map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ""}/${metadata.name}`);
  const apis = (await kubectl.list(API_SERVICES)).items.filter(({ spec }) => (spec as { service?: object }).service);
  return [...named, ...apis.map(({ metadata }) => `APIService ${metadata.name}`)].sort();
}

/** A killed operator's lease runs out; nobody wants to wait for that. */
export async function expireLease(kubectl: Client): Promise<void> {
  await kubectl.delete(LEASES, { namespace: namespaces.operator, name: "vendor-operator" }).catch(() => {});
}

function type(kind: ResourceKind): { apiVersion: string; kind: string } {
  return { apiVersion: `${kind.group}/${kind.version}`, kind: kind.kind };
}

async function prepare(kubectl: Client, options: OperatorLabOptions): Promise<void> {
  for (const name of ["default", "kube-system", namespaces.operator]) {
    await kubectl.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: { name } });
  }
  if (options.definitions !== false) await applyDefinitions(kubectl);
  for (let index = 0; index < (options.nodes ?? 3); index++) await createNode(kubectl, index, options.node?.(index));
  await kubectl.create(SERVICES, {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "kubernetes", namespace: "default" },
    spec: { clusterIP: "10.96.0.1", ports: [{ port: 443 }] },
  });
  if (options.endpoint !== "none") await createEndpointMap(kubectl, options.endpoint);
  await createOperatorDeployment(kubectl);
  if (options.proxy !== "none") await createProxy(kubectl, options.proxy ?? {});
}

export async function applyDefinitions(kubectl: Client): Promise<void> {
  for (const definition of customResourceDefinitions()) await kubectl.create(CRDS, definition);
}

export async function createEndpointMap(kubectl: Client, data?: Record<string, string>): Promise<void> {
  const { name, hostKey, portKey } = endpointMap;
  await kubectl.create(CONFIG_MAPS, {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name, namespace: namespaces.operator },
    data: data ?? { [hostKey]: "api.demo.internal", [portKey]: "6443" },
  });
}

async function createNode(
  kubectl: Client,
  index: number,
  more: ReturnType<NonNullable<OperatorLabOptions["node"]>> = {},
): Promise<void> {
  const metadata = {
    name: `node-${index}`,
    labels: { "kubernetes.io/os": "linux", ...more.labels },
    annotations: { ...more.annotations },
  };
  const nodeInfo = {
    osImage: "Ubuntu 24.04.3 LTS",
    kernelVersion: "6.8.0-79-generic",
    architecture: "amd64",
    operatingSystem: "linux",
    ...more.info,
  };
  const node = await kubectl.create(NODES, { apiVersion: "v1", kind: "Node", metadata });
  await kubectl.replace(NODES, { ...node, status: { nodeInfo } }, { subresource: "status" });
}

function workload(kind: string, name: string, namespace: string): KubeObject {
  const labels = { app: name };
  return {
    apiVersion: "apps/v1",
    kind,
    metadata: { name, namespace },
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name, image: "paper" }] } },
    },
  };
}

async function createOperatorDeployment(kubectl: Client): Promise<void> {
  await kubectl.create(DEPLOYMENTS, workload("Deployment", "vendor-operator", namespaces.operator));
}

async function createProxy(
  kubectl: Client,
  { labels, annotations, mode = "iptables" }: Exclude<OperatorLabOptions["proxy"], "none" | undefined>,
): Promise<void> {
  const proxy = workload("DaemonSet", "kube-proxy", "kube-system");
  const template = (proxy["spec"] as { template: { spec: { nodeSelector?: object } } }).template;
  template.spec.nodeSelector = { "kubernetes.io/os": "linux" };
  Object.assign(proxy.metadata, { labels, annotations });
  await kubectl.create(DAEMON_SETS, proxy);
  await kubectl.create(CONFIG_MAPS, {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "kube-proxy", namespace: "kube-system" },
    data: { "config.conf": `mode: ${mode}\n` },
  });
}

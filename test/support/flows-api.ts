import { request } from "node:https";
import { vi } from "vitest";
import { type FlowDelivery, flowDelivery } from "../../src/agent/flows/flow-delivery.ts";
import { FLOW_LOGS_API, vendorNames } from "../../src/api/names.ts";
import type { FlowBatch } from "../../src/api/protocol/flow.ts";
import { writeBatch } from "../../src/api/protocol/flow-wire.ts";
import { customResourceDefinitions } from "../../src/api/schema/crd.ts";
import { ServiceAccountTokens } from "../../src/apiserver/auth/service-account-tokens.ts";
import type { UserInfo } from "../../src/apiserver/call.ts";
import { listenOn } from "../../src/cluster/program.ts";
import { flowLogsProgram } from "../../src/flows/program.ts";
import { silentLog } from "../../src/kit/log.ts";
import { createAuthority, issue, type KeyPair } from "../../src/kit/x509.ts";
import { createClusterKeys } from "../../src/local/certificates.ts";
import { bootstrapRoles } from "../../src/local/rbac-bootstrap.ts";
import { userRoles } from "../../src/operator/published/user-roles.ts";
import { delegation } from "../../src/operator/render/aggregated-api.ts";
import { flowLogsRights } from "../../src/operator/render/component-rules.ts";
import { accountWithRights } from "../../src/operator/render/rbac.ts";
import { type Answer, type Api, namespace, startApi } from "./api.ts";

const ISSUER = "https://story";
const PLACE = { namespace: vendorNames.namespaces.system, name: vendorNames.workloads.flowLogs };
const SERVICE = { ...PLACE, port: 443 };
const NAME = `${SERVICE.name}.${SERVICE.namespace}.svc`;
const ACCOUNT = `system:serviceaccount:${SERVICE.namespace}:${SERVICE.name}`;
const ACCOUNT_GROUPS = [
  "system:serviceaccounts",
  `system:serviceaccounts:${SERVICE.namespace}`,
  "system:authenticated",
];
const PORTS = { agents: 7443, api: 5443, health: 8080 };
const RBAC = "rbac.authorization.k8s.io";

/** What a client presents. */
export interface Identity {
  token?: string;
  pair?: KeyPair;
  headers?: Record<string, string>;
}

/** A main API server with RBAC and Kubernetes' own roles, and vendor-flow-logs behind it, both over TLS as on a cluster. */
export interface FlowsApi {
  api: Api;
  keys: ReturnType<typeof createClusterKeys>;
  /** As a client of the main API server; with a body it is a POST. */
  ask(path: string, identity?: Identity, body?: object): Promise<Answer>;
  /** Resolves with the first word of an answer that goes on until the signal. */
  watch(path: string, identity: Identity, signal: AbortSignal): Promise<string>;
  /** Past the main API server, to vendor-flow-logs itself. */
  askDirectly(path: string, identity?: Identity): Promise<Answer>;
  /** What vendor-flow-logs says to everyone who reaches its pod. */
  metrics(): Promise<string>;
  /** Gives a user a published or built-in role, in one namespace or everywhere. */
  bind(user: string, role: string, namespace?: string): Promise<void>;
  /** A token of the user; the same every time. */
  tokenOf(user: string): string;
  /** A token that was right once. */
  expiredToken(): Promise<string>;
  kubeconfig(token: string): string;
  /** As an agent, and resolves when it is kept. */
  send(batch: FlowBatch): Promise<void>;
  close(): Promise<void>;
}

export async function startFlowsApi(users: readonly string[]): Promise<FlowsApi> {
  const now = new Date(Date.now() - 60_000);
  const keys = createClusterKeys(["127.0.0.1", "localhost"], new Date());
  const authority = createAuthority({ commonName: "vendor-ca" }, now, 1);
  const serving = issue(authority, {
    ...{ subject: { commonName: SERVICE.name }, usage: "server", notBefore: now, days: 1 },
    names: [NAME, "127.0.0.1"],
  });
  const agent = issue(authority, {
    ...{ subject: { commonName: vendorNames.workloads.node }, usage: "client", notBefore: now, days: 1 },
  });
  const where = new Map<number, { host: string; port: number }>();
  const people = users.map((name): [string, UserInfo] => [
    `token-of-${name}`,
    { name, groups: ["system:authenticated"] },
  ]);
  const api = await startApi({
    resolveService: () => where.get(PORTS.api),
    ...{ frontProxy: keys.frontProxy, authorization: "rbac", staticTokens: new Map(people) },
    serviceAccounts: { key: keys.serviceAccountKey, issuer: ISSUER },
  });
  const main = await api.server.listen({
    ...{ host: "127.0.0.1", port: 0 },
    tls: {
      ...{ server: keys.server, clientAuthority: keys.authority.certificate },
      frontProxyAuthority: keys.frontProxyAuthority.certificate,
    },
  });
  const transport = api.server.transport();
  const create = async (path: string, object: object) => {
    const headers = { "content-type": "application/json" };
    const response = await transport.request({ method: "POST", path, headers, body: JSON.stringify(object) });
    const text = await response.text();
    if (response.status >= 300 && response.status !== 409) throw new Error(`${path}: ${text}`);
    return JSON.parse(text);
  };
  for (const name of ["default", "kube-system", SERVICE.namespace, "shop", "pay"])
    await create("/api/v1/namespaces", namespace(name));
  for (const definition of customResourceDefinitions())
    await create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition);
  for (const { kind, metadata, ...rest } of [...bootstrapRoles(), ...userRoles(vendorNames)]) {
    const within = metadata.namespace === undefined ? "" : `/namespaces/${metadata.namespace}`;
    await create(`/apis/${RBAC}/v1${within}/${kind.toLowerCase()}s`, { kind, metadata, ...rest });
  }
  await create("/api/v1/namespaces/kube-system/configmaps", {
    ...{ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "extension-apiserver-authentication" } },
    data: {
      "client-ca-file": keys.authority.certificate,
      "requestheader-client-ca-file": keys.frontProxyAuthority.certificate,
      "requestheader-allowed-names": '["front-proxy-client"]',
    },
  });
  // It has the rights that the operator gives it, and no more.
  const { everywhere, atHome } = flowLogsRights(vendorNames);
  for (const { kind, metadata, ...rest } of [...accountWithRights(PLACE, everywhere, atHome), ...delegation(PLACE)]) {
    const within = metadata.namespace === undefined ? "" : `/namespaces/${metadata.namespace}`;
    const root = kind === "ServiceAccount" ? "/api/v1" : `/apis/${RBAC}/v1`;
    await create(`${root}${within}/${kind.toLowerCase()}s`, { kind, metadata, ...rest });
  }
  const stopping = new AbortController();
  const ended = flowLogsProgram({
    env: {
      ...{ VENDOR_VERSION: "v3.31.3", VENDOR_TLS_CERT: serving.certificate, VENDOR_TLS_KEY: serving.key },
      ...{ VENDOR_CA: authority.certificate, PORT: `${PORTS.agents}`, API_PORT: `${PORTS.api}` },
    },
    transport: () => api.server.transport({ name: ACCOUNT, groups: ACCOUNT_GROUPS }),
    ...{ signal: stopping.signal, log: silentLog },
    listen: async (server, port) => {
      stopping.signal.addEventListener("abort", () => {
        server.close();
        server.closeAllConnections();
      });
      const address = await listenOn(server, { host: "127.0.0.1", port: 0 });
      where.set(port, address);
      return address;
    },
  });
  await vi.waitFor(() => {
    if (where.size < 3) throw new Error("vendor-flow-logs does not listen yet");
  });
  await create("/apis/apiregistration.k8s.io/v1/apiservices", {
    ...{ apiVersion: "apiregistration.k8s.io/v1", kind: "APIService" },
    metadata: { name: `${FLOW_LOGS_API.version}.${FLOW_LOGS_API.group}` },
    spec: {
      ...FLOW_LOGS_API,
      ...{ service: SERVICE, groupPriorityMinimum: 1500, versionPriority: 200 },
      caBundle: Buffer.from(authority.certificate).toString("base64"),
    },
  });
  const target = {
    ...{ url: `https://127.0.0.1:${where.get(PORTS.agents)!.port}`, name: NAME },
    tls: { ...agent, ca: authority.certificate },
  };
  /** One connection for each node: a connection speaks for one. */
  const deliveries = new Map<string, FlowDelivery>();
  const deliveryOf = (node: string) => {
    const known = deliveries.get(node);
    if (known) return known;
    const delivery = flowDelivery(target, { node, boot: "boot-1" }, { onPace: () => {}, onLost: () => {} });
    deliveries.set(node, delivery);
    return delivery;
  };
  const flows: FlowsApi = {
    ...{ api, keys },
    ask: (path, identity, body) => ask(main.port, keys.authority.certificate, path, identity, body),
    watch: (path, { token }, signal) =>
      new Promise((resolve, reject) => {
        const options = {
          host: "127.0.0.1",
          port: main.port,
          path,
          ca: keys.authority.certificate,
          agent: false,
          // Of its own: many may hang on one signal, each with a listener.
          signal: AbortSignal.any([signal]),
        };
        request({ ...options, headers: { authorization: `Bearer ${token}` } }, (response) => {
          response.on("error", () => {});
          response.setEncoding("utf8").once("data", resolve).resume();
        })
          .on("error", reject)
          .end();
      }),
    askDirectly: (path, identity) => ask(where.get(PORTS.api)!.port, authority.certificate, path, identity),
    metrics: async () => await (await fetch(`http://127.0.0.1:${where.get(PORTS.health)!.port}/metrics`)).text(),
    async bind(user, role, within) {
      await create(`/apis/${RBAC}/v1${within ? `/namespaces/${within}/rolebindings` : "/clusterrolebindings"}`, {
        ...{ apiVersion: `${RBAC}/v1`, kind: within ? "RoleBinding" : "ClusterRoleBinding" },
        metadata: { name: `${user}-${role}` },
        roleRef: { apiGroup: RBAC, kind: "ClusterRole", name: role },
        subjects: [{ apiGroup: RBAC, kind: "User", name: user }],
      });
    },
    tokenOf: (user) => `token-of-${user}`,
    async expiredToken() {
      const metadata = { name: "robot", namespace: "default" };
      const account = { apiVersion: "v1", kind: "ServiceAccount", metadata };
      const { uid } = (await create("/api/v1/namespaces/default/serviceaccounts", account)).metadata;
      const expires = Math.floor(Date.now() / 1_000) - 60;
      const claims = { ...metadata, uid, audiences: [ISSUER], expires };
      return new ServiceAccountTokens(keys.serviceAccountKey, ISSUER).issue(claims, new Date((expires - 600) * 1_000));
    },
    kubeconfig: (token) =>
      JSON.stringify({
        ...{ apiVersion: "v1", kind: "Config", "current-context": "c" },
        clusters: [
          {
            name: "c",
            cluster: {
              server: main.url,
              "certificate-authority-data": Buffer.from(keys.authority.certificate).toString("base64"),
            },
          },
        ],
        users: [{ name: "u", user: { token } }],
        contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
      }),
    async send(batch) {
      await deliveryOf(batch.node).send(writeBatch(batch, Date.now()));
    },
    async close() {
      for (const delivery of deliveries.values()) delivery.close();
      stopping.abort();
      await ended;
      await api.close();
    },
  };
  await vi.waitFor(
    async () => {
      const path = `/apis/${FLOW_LOGS_API.group}/${FLOW_LOGS_API.version}/flows`;
      const { status, body } = await flows.ask(path, { pair: keys.admin });
      if (status !== 200) throw new Error(JSON.stringify(body));
    },
    { timeout: 10_000, interval: 20 },
  );
  return flows;
}

function ask(
  port: number,
  ca: string,
  path: string,
  { token, pair, headers }: Identity = {},
  sentBody?: object,
): Promise<Answer> {
  const keys = pair && { cert: pair.certificate, key: pair.key };
  const type = sentBody && { "content-type": "application/json" };
  const sent = { ...type, ...(token && { authorization: `Bearer ${token}` }), ...headers };
  const method = sentBody ? "POST" : "GET";
  return new Promise((resolve, reject) => {
    request({ host: "127.0.0.1", port, path, method, headers: sent, ca, agent: false, ...keys }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("end", () => {
        const body = text.startsWith("{") && !text.trimEnd().includes("\n") ? JSON.parse(text) : text;
        resolve({ status: response.statusCode ?? 0, headers: new Headers(), body });
      });
    })
      .on("error", reject)
      .end(sentBody && JSON.stringify(sentBody));
  });
}

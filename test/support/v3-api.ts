import { request } from "node:https";
import { vi } from "vitest";
import { customResourceDefinitions } from "../../src/api/schema/crd.ts";
import type { ApiServer } from "../../src/apiserver/server.ts";
import { listenOn } from "../../src/cluster/program.ts";
import { silentLog } from "../../src/kit/log.ts";
import { createAuthority, issue, type KeyPair } from "../../src/kit/x509.ts";
import { apiServerProgram } from "../../src/v3api/program.ts";
import { type Api, type CallOptions, namespace, startApi } from "./api.ts";

const now = new Date();
const authority = createAuthority({ commonName: "vendor-ca" }, now, 1);
const frontProxyAuthority = createAuthority({ commonName: "front-proxy-ca" }, now, 1);
const ACCOUNT = "system:serviceaccount:vendor-system:vendor-apiserver";
const SERVICE = { namespace: "vendor-system", name: "vendor-api", port: 443 };

function keyPair(commonName: string, usage: "server" | "client", by = authority) {
  const names = usage === "server" ? [`${SERVICE.name}.${SERVICE.namespace}.svc`, "127.0.0.1"] : [];
  return issue(by, { subject: { commonName }, usage, names, notBefore: now, days: 1 });
}

/** What signs the requests the main API server passes on. */
export const frontProxy = keyPair("front-proxy-client", "client", frontProxyAuthority);
/** Signed by the same authority, under a name nobody allowed. */
export const strangeProxy = keyPair("somebody-else", "client", frontProxyAuthority);
const serving = keyPair("vendor-api", "server");

/** The v3 API program in this process, behind a main API server. */
export interface V3Server {
  address(): { host: string; port: number };
  authority: string;
  /** As an upgrade does: the same program as another version. */
  restart(version: string): Promise<void>;
  stop(): Promise<void>;
}

/** Installs what the v3 API needs on a main API server whose services are resolved by `address`, and runs it. */
export async function startV3Server(
  main: ApiServer,
  options: { version?: string; env?: Record<string, string> } = {},
): Promise<V3Server> {
  const client = main.transport();
  const post = async (path: string, object: unknown) => {
    const headers = { "content-type": "application/json" };
    const { status, text } = await client
      .request({ method: "POST", path, headers, body: JSON.stringify(object) })
      .then(async (response) => ({ status: response.status, text: await response.text() }));
    if (status >= 300 && status !== 409) throw new Error(`${path}: ${text}`);
  };
  for (const name of ["default", "kube-system", "vendor-system"]) await post("/api/v1/namespaces", namespace(name));
  for (const definition of customResourceDefinitions()) {
    await post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition);
  }
  await post("/api/v1/namespaces/kube-system/configmaps", {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "extension-apiserver-authentication" },
    data: {
      "requestheader-client-ca-file": frontProxyAuthority.certificate,
      "requestheader-allowed-names": '["front-proxy-client"]',
    },
  });
  let running: { address: { host: string; port: number }; stop(): Promise<void> };
  const run = async (version: string) => {
    const stopping = new AbortController();
    let tell: (address: { host: string; port: number }) => void = () => {};
    const listening = new Promise<{ host: string; port: number }>((resolve) => {
      tell = resolve;
    });
    const ended = apiServerProgram({
      env: {
        VENDOR_VERSION: version,
        VENDOR_TLS_CERT: serving.certificate,
        VENDOR_TLS_KEY: serving.key,
        ...options.env,
      },
      transport: () => main.transport({ name: ACCOUNT, groups: ["system:masters", "system:authenticated"] }),
      signal: stopping.signal,
      log: silentLog,
      listen: async (server) => {
        const address = await listenOn(server, { host: "127.0.0.1", port: 0 });
        tell(address);
        return address;
      },
    });
    const address = await Promise.race([
      listening,
      ended.then(() => {
        throw new Error("the v3 API ended before it listened");
      }),
    ]);
    const stop = async () => {
      stopping.abort();
      await ended;
    };
    running = { address, stop };
  };
  await run(options.version ?? "v3.31.3");
  return {
    address: () => running.address,
    authority: authority.certificate,
    async restart(version) {
      await running.stop();
      await run(version);
    },
    stop: () => running.stop(),
  };
}

export function v3ApiService(caBundle: string) {
  return {
    apiVersion: "apiregistration.k8s.io/v1",
    kind: "APIService",
    metadata: { name: "v3.vendor.io" },
    spec: {
      group: "vendor.io",
      version: "v3",
      service: SERVICE,
      caBundle: Buffer.from(caBundle).toString("base64"),
      groupPriorityMinimum: 1500,
      versionPriority: 200,
    },
  };
}

export interface DirectOptions {
  /** Presents this certificate. */
  proxy?: KeyPair;
  headers?: Record<string, string>;
}

/** A request past the main API server, straight to the program's own port. */
export function requestDirectly(v3: V3Server, path: string, { proxy, headers = {} }: DirectOptions = {}) {
  const keys = proxy && { cert: proxy.certificate, key: proxy.key };
  return new Promise<{ status: number; text: string }>((resolve, reject) => {
    request({ ...v3.address(), path, headers, ca: v3.authority, agent: false, ...keys }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
    })
      .on("error", reject)
      .end();
  });
}

/** A main API server and the v3 API behind it, both spoken to over HTTP as any client would. */
export interface V3Api extends Api {
  v3: V3Server;
  /** A request as somebody without any rights but those the story gives. */
  as(user: string, method: string, path: string, options?: CallOptions): ReturnType<Api["call"]>;
}

const ADMIN = {
  token: "admin-of-the-story",
  user: { name: "admin", groups: ["system:masters", "system:authenticated"] },
};

/** With `rbac` everybody but the story itself, who is the administrator, may do only what roles allow. */
export async function startV3Api(options: { version?: string; rbac?: boolean } = {}): Promise<V3Api> {
  let v3: V3Server | undefined;
  const plain = await startApi({
    resolveService: () => v3?.address(),
    frontProxy,
    ...(options.rbac && { authorization: "rbac", staticTokens: new Map([[ADMIN.token, ADMIN.user]]) }),
  });
  const call: Api["call"] = (method, path, { headers, ...rest } = {}) =>
    plain.call(method, path, { ...rest, headers: { authorization: `Bearer ${ADMIN.token}`, ...headers } });
  const api: Api = options.rbac
    ? {
        ...plain,
        call,
        get: (path) => call("GET", path),
        create: (path, object) => call("POST", path, { body: object }),
      }
    : plain;
  v3 = await startV3Server(api.server, options);
  await api.create("/apis/apiregistration.k8s.io/v1/apiservices", v3ApiService(v3.authority));
  const made: V3Api = {
    ...api,
    v3,
    as: (user, method, path, options = {}) =>
      api.call(method, path, { ...options, headers: { ...options.headers, "impersonate-user": user } }),
    close: async () => {
      await v3?.stop();
      await api.close();
    },
  };
  await vi.waitFor(
    async () => {
      const { body } = await api.get("/apis/apiregistration.k8s.io/v1/apiservices/v3.vendor.io");
      const available = body.status?.conditions?.[0];
      const tier = await api.get("/apis/vendor.io/v3/tiers/default");
      if (available?.status !== "True" || tier.status !== 200) throw new Error(JSON.stringify([available, tier.body]));
    },
    { timeout: 10_000, interval: 20 },
  );
  return made;
}

import type { KubeObject } from "../../src/api/object.ts";
import { kubernetesKinds } from "../../src/apiserver/kubernetes/kinds.ts";
import { type ApiServer, type ApiServerOptions, createApiServer } from "../../src/apiserver/server.ts";

export interface Answer {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: a story reads whatever the server sent.
  body: any;
}

export interface CallOptions {
  body?: unknown;
  type?: string;
  headers?: Record<string, string>;
}

/** A server on loopback, spoken to as any client would: over HTTP. */
export interface Api {
  server: ApiServer;
  url: string;
  call(method: string, path: string, options?: CallOptions): Promise<Answer>;
  /** Server-side apply by this manager. */
  apply(
    manager: string,
    path: string,
    object: unknown,
    options?: { force?: boolean; subresource?: string },
  ): Promise<Answer>;
  create(path: string, object: unknown): Promise<Answer>;
  get(path: string): Promise<Answer>;
  close(): Promise<void>;
}

export async function startApi(options: Partial<ApiServerOptions> = {}): Promise<Api> {
  const server = await createApiServer({ kinds: kubernetesKinds(), ...options });
  const { url } = await server.listen({ host: "127.0.0.1", port: 0 });
  const call: Api["call"] = async (method, path, { body, type = "application/json", headers = {} } = {}) => {
    const response = await fetch(url + path, {
      method,
      headers: { ...(body === undefined ? {} : { "content-type": type }), "user-agent": "story/1", ...headers },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.includes("json");
    return { status: response.status, headers: response.headers, body: isJson && text ? JSON.parse(text) : text };
  };
  const api: Api = {
    server,
    url,
    call,
    get: (path) => call("GET", path),
    create: (path, object) => call("POST", path, { body: object }),
    apply: (manager, path, object, { force = false, subresource } = {}) => {
      const target = subresource ? `${path}/${subresource}` : path;
      const query = `?fieldManager=${manager}${force ? "&force=true" : ""}`;
      return call("PATCH", target + query, { body: object, type: "application/apply-patch+yaml" });
    },
    close: () => server.close(),
  };
  await api.create("/api/v1/namespaces", namespace("default"));
  return api;
}

export function namespace(name: string): KubeObject {
  return { apiVersion: "v1", kind: "Namespace", metadata: { name } };
}

/** Who owns what, readable: `manager (operation) -> paths`. */
export function owners(object: KubeObject): Record<string, unknown> {
  const entries = (object.metadata.managedFields ?? []).map((entry) => {
    const through = entry.subresource ? ` through ${entry.subresource}` : "";
    return [`${entry.manager} (${entry.operation}${through})`, entry.fieldsV1];
  });
  return Object.fromEntries(entries);
}

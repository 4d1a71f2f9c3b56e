import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type CustomResourceDefinition, servedKinds } from "../../src/apiserver/custom-resources.ts";
import { type ApiServer, createApiServer } from "../../src/apiserver/server.ts";
import { createAuthority, issue } from "../../src/kit/x509.ts";
import { type Api, startApi } from "../support/api.ts";

/** An API another server serves, seen through this one: discovery, requests, watches, and what happens when it goes away. */

const now = new Date();
const authority = createAuthority({ commonName: "backend-ca" }, now, 1);
const frontProxyAuthority = createAuthority({ commonName: "front-proxy-ca" }, now, 1);
const names = ["widgets.backend.svc"];
const server = issue(authority, {
  subject: { commonName: "backend" },
  usage: "server",
  names,
  notBefore: now,
  days: 1,
});
const frontProxy = issue(frontProxyAuthority, {
  subject: { commonName: "front-proxy-client" },
  usage: "client",
  notBefore: now,
  days: 1,
});

const widgets = servedKinds({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "widgets.backend.io" },
  spec: {
    group: "backend.io",
    scope: "Cluster",
    names: { kind: "Widget", plural: "widgets" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
      },
    ],
  },
} satisfies CustomResourceDefinition);

const apiService = {
  apiVersion: "apiregistration.k8s.io/v1",
  kind: "APIService",
  metadata: { name: "v1.backend.io" },
  spec: {
    group: "backend.io",
    version: "v1",
    service: { namespace: "backend", name: "widgets", port: 443 },
    caBundle: Buffer.from(authority.certificate).toString("base64"),
    groupPriorityMinimum: 1500,
    versionPriority: 15,
  },
};

let api: Api;
let backend: ApiServer;
let target: { host: string; port: number } | undefined;

async function availability(): Promise<{ status: string; reason: string } | undefined> {
  const { body } = await api.get("/apis/apiregistration.k8s.io/v1/apiservices/v1.backend.io");
  return body.status?.conditions?.[0];
}

beforeAll(async () => {
  backend = await createApiServer({ kinds: widgets });
  const listening = await backend.listen({
    host: "127.0.0.1",
    port: 0,
    tls: { server, frontProxyAuthority: frontProxyAuthority.certificate },
  });
  target = { host: listening.host, port: listening.port };
  api = await startApi({ resolveService: () => target, frontProxy });
  await api.create("/apis/apiregistration.k8s.io/v1/apiservices", apiService);
  await vi.waitFor(async () => expect(await availability()).toMatchObject({ status: "True", reason: "Passed" }));
});
afterAll(async () => {
  await api.close();
  await backend.close();
});

describe("an aggregated API", () => {
  it("is discovered with everything else, old style and new", async () => {
    const groups = (await api.get("/apis")).body.groups.map((group: { name: string }) => group.name);
    expect(groups).toContain("backend.io");
    expect((await api.get("/apis/backend.io/v1")).body.resources[0]).toMatchObject({ name: "widgets", kind: "Widget" });
    const accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    const { body } = await api.call("GET", "/apis", { headers: { accept } });
    const group = body.items.find((item: { metadata: { name: string } }) => item.metadata.name === "backend.io");
    expect(group.versions[0]).toMatchObject({
      version: "v1",
      freshness: "Current",
      resources: [{ resource: "widgets" }],
    });
  });

  it("comes before custom resources, as its APIService asks", async () => {
    await api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: "gadgets.custom.io" },
      spec: {
        group: "custom.io",
        scope: "Cluster",
        names: { kind: "Gadget", plural: "gadgets" },
        versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object" } } }],
      },
    });
    const groups = (await api.get("/apis")).body.groups.map((group: { name: string }) => group.name);
    expect(groups.slice(-2)).toEqual(["backend.io", "custom.io"]);
    expect(groups[0]).not.toBe("backend.io");
  });

  it("is explained with everything else, in both versions of OpenAPI", async () => {
    const { serverRelativeURL } = (await api.get("/openapi/v3")).body.paths["apis/backend.io/v1"];
    const v3 = (await api.get(serverRelativeURL)).body;
    expect(v3.components.schemas["io.backend.v1.Widget"]).toMatchObject({ type: "object" });
    const v2 = (await api.get("/openapi/v2")).body;
    expect(v2.definitions["io.backend.v1.Widget"]).toMatchObject({ type: "object" });
    expect(Object.keys(v2.paths)).toContain("/apis/backend.io/v1/widgets/{name}");
    expect(Object.keys(v2.definitions)).toContain("io.k8s.api.core.v1.Pod");
  });

  it("takes writes and answers reads, and the other server knows who asked", async () => {
    const made = await api.create("/apis/backend.io/v1/widgets", {
      apiVersion: "backend.io/v1",
      kind: "Widget",
      metadata: { name: "w" },
      size: 3,
    });
    expect(made.status).toBe(201);
    expect((await api.get("/apis/backend.io/v1/widgets/w")).body.size).toBe(3);
    expect(backend.store.count("backend.io/widgets")).toBe(1);
  });

  it("streams its watches through", async () => {
    const stop = new AbortController();
    const response = await fetch(`${api.url}/apis/backend.io/v1/widgets?watch=true`, { signal: stop.signal });
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader.read()).value).toContain('"type":"ADDED"');
    stop.abort();
  });

  it("is unavailable, with the reason, when nothing stands behind its service, and comes back", async () => {
    const kept = target;
    target = undefined;
    const gone = await api.get("/apis/backend.io/v1/widgets");
    expect(gone.body).toMatchObject({ code: 503, reason: "ServiceUnavailable" });
    const touch = (note: string) =>
      api.call("PATCH", "/apis/apiregistration.k8s.io/v1/apiservices/v1.backend.io", {
        type: "application/merge-patch+json",
        body: { metadata: { annotations: { note } } },
      });
    await touch("probe now");
    await expect.poll(availability).toMatchObject({ status: "False", reason: "MissingEndpoints" });
    target = kept;
    await touch("and again");
    await expect.poll(availability).toMatchObject({ status: "True" });
  });
});

import { describe, expect, it } from "vitest";
import type { KubeObject } from "../api/object.ts";
import { StatusError } from "../api/status.ts";
import type { ApiRequest, ApiResponse } from "../api/transport.ts";
import { fakeClock } from "../kit/fake-clock.ts";
import { createClient } from "./client.ts";
import { explain } from "./errors.ts";
import { isAlreadyExists, isConflict, isGone, isNotFound } from "./failures.ts";
import { CONFIG_MAPS, DEPLOYMENTS, NODES } from "./kinds.ts";
import { json, scriptedServer } from "./testing/scripted-server.ts";

/** A server of one function, and what it was asked. */
function answering(answer: (request: ApiRequest) => ApiResponse) {
  const asked: ApiRequest[] = [];
  const clock = fakeClock();
  const transport = {
    request: async (request: ApiRequest) => {
      asked.push(request);
      return answer(request);
    },
    close() {},
  };
  return { client: createClient(transport, { userAgent: "vendorctl/v3.31", clock }), asked, clock };
}

const echo = (request: ApiRequest) => json(200, request.body ?? "{}");
const shown = ({ method, path, query = {} }: ApiRequest) => {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  return [`${method} ${path}`, ...given.map(([name, value]) => `${name}=${value}`)].join(" ");
};
const map = (name: string): KubeObject => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, namespace: "ns" },
});

describe("each call", () => {
  it("is one request, spelt as the API wants it", async () => {
    const { client, asked } = answering(echo);
    const ref = { name: "a b", namespace: "ns" };
    await client.get(CONFIG_MAPS, ref);
    await client.get(NODES, { name: "n1" });
    await client.get(DEPLOYMENTS, ref, { subresource: "scale" });
    await client.listPage(CONFIG_MAPS, { labelSelector: "a=b", limit: 5, continue: "c" });
    await client.create(CONFIG_MAPS, map("m"), { dryRun: true, fieldValidation: "Strict", fieldManager: "me" });
    await client.replace(DEPLOYMENTS, map("m"), { subresource: "status" });
    await client.apply(DEPLOYMENTS, map("m"), { force: true });
    await client.apply(DEPLOYMENTS, map("m"), { fieldManager: "other" });
    await client.delete(CONFIG_MAPS, ref, { propagationPolicy: "Foreground", preconditions: { uid: "u" } });
    await client.deleteCollection(CONFIG_MAPS, { namespace: "ns", labelSelector: "a=b" });
    expect(asked.map(shown)).toEqual([
      "GET /api/v1/namespaces/ns/configmaps/a%20b",
      "GET /api/v1/nodes/n1",
      "GET /apis/apps/v1/namespaces/ns/deployments/a%20b/scale",
      "GET /api/v1/configmaps labelSelector=a=b limit=5 continue=c",
      "POST /api/v1/namespaces/ns/configmaps dryRun=All fieldValidation=Strict fieldManager=me",
      "PUT /apis/apps/v1/namespaces/ns/deployments/m/status",
      "PATCH /apis/apps/v1/namespaces/ns/deployments/m fieldManager=vendorctl force=true",
      "PATCH /apis/apps/v1/namespaces/ns/deployments/m fieldManager=other",
      "DELETE /api/v1/namespaces/ns/configmaps/a%20b",
      "DELETE /api/v1/namespaces/ns/configmaps labelSelector=a=b",
    ]);
    expect(JSON.parse(asked[8]?.body ?? "")).toEqual({
      apiVersion: "v1",
      kind: "DeleteOptions",
      propagationPolicy: "Foreground",
      preconditions: { uid: "u" },
    });
    expect(asked.every(({ headers }) => headers?.["user-agent"] === "vendorctl/v3.31")).toBe(true);
    expect(asked.every(({ headers }) => headers?.["accept"] === "application/json")).toBe(true);
  });

  it("names its kind of patch", async () => {
    const { client, asked } = answering(echo);
    const ref = { name: "a", namespace: "ns" };
    await client.patch(CONFIG_MAPS, ref, { type: "json", operations: [{ op: "remove", path: "/data" }] });
    await client.patch(CONFIG_MAPS, ref, { type: "merge", patch: { data: null } });
    await client.patch(CONFIG_MAPS, ref, { type: "strategic", patch: { data: {} } });
    await client.apply(CONFIG_MAPS, map("a"));
    expect(asked.map(({ headers }) => headers?.["content-type"])).toEqual([
      "application/json-patch+json",
      "application/merge-patch+json",
      "application/strategic-merge-patch+json",
      "application/apply-patch+yaml",
    ]);
    expect(asked[0]?.body).toBe('[{"op":"remove","path":"/data"}]');
  });
});

describe("a list", () => {
  it("gives its items the type Kubernetes leaves out", async () => {
    const { client } = answering(() =>
      json(200, { metadata: { resourceVersion: "7" }, items: [{ metadata: { name: "a" } }] }),
    );
    expect(await client.list(CONFIG_MAPS)).toEqual({
      resourceVersion: "7",
      items: [{ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" } }],
    });
  });

  it("follows all pages, and starts over in one piece when they outlive the server's history", async () => {
    const server = scriptedServer();
    for (let i = 0; i < 1_200; i++) server.set("/api/v1/configmaps", `m${i}`);
    const transport = server.transport();
    const client = createClient(transport, { userAgent: "test" });
    expect((await client.list(CONFIG_MAPS)).items).toHaveLength(1_200);
    expect(server.log).toHaveLength(3);

    let pages = 0;
    const forgetful = createClient(
      {
        request: (request) => {
          if (++pages === 3) server.compact();
          return transport.request(request);
        },
        close() {},
      },
      { userAgent: "test" },
    );
    expect((await forgetful.list(CONFIG_MAPS)).items).toHaveLength(1_200);
    expect(pages).toBe(4);
  });
});

describe("a failure", () => {
  const failing = (status: number, body: unknown) => answering(() => json(status, body)).client;
  const get = (client: ReturnType<typeof failing>) => client.get(NODES, { name: "n" }).catch((error: unknown) => error);
  const status = (code: number, reason: string) => ({ kind: "Status", code, reason, message: `it is ${reason}` });

  it("is what the server said, with questions to ask it", async () => {
    const error = await get(failing(404, { ...status(404, "NotFound"), details: { name: "n" } }));
    expect(error).toBeInstanceOf(StatusError);
    expect((error as StatusError).status.details).toEqual({ name: "n" });
    expect(isNotFound(error)).toBe(true);
    expect(isConflict(await get(failing(409, status(409, "Conflict"))))).toBe(true);
    expect(isAlreadyExists(await get(failing(409, status(409, "AlreadyExists"))))).toBe(true);
    expect(isConflict(await get(failing(409, status(409, "AlreadyExists"))))).toBe(false);
    expect(isGone(await get(failing(410, status(410, "Expired"))))).toBe(true);
  });

  it("is made up for when something in front of the server answered", async () => {
    const error = (await get(failing(502, "<html>Bad gateway\n</html>"))) as StatusError;
    expect([error.code, error.reason, error.message]).toEqual([502, "Unknown", "<html>Bad gateway"]);
    const good = await get(failing(200, "<html>Welcome"));
    expect(good).toMatchObject({ code: "CLUSTER_BAD_ANSWER" });
  });

  it("is explained to a person where it is about who they are", async () => {
    const server = "https://c";
    expect(explain(await get(failing(401, status(401, "Unauthorized"))), server)).toMatchObject({
      code: "CLUSTER_UNAUTHORIZED",
      exitCode: 77,
    });
    expect(explain(await get(failing(403, status(403, "Forbidden"))), server)).toMatchObject({
      code: "CLUSTER_FORBIDDEN",
      message: "the API server refused: it is Forbidden",
    });
  });

  it("of a busy server is waited out by reads, for as long as told, and not by writes", async () => {
    const busy = () => json(429, status(429, "TooManyRequests"), { "retry-after": "3" });
    let left = 2;
    const { client, asked, clock } = answering((request) => (left-- > 0 ? busy() : echo(request)));
    const reading = client.get(NODES, { name: "n" });
    await clock.advance(5_999);
    expect(asked).toHaveLength(2);
    await clock.advance(1);
    await reading;
    expect(asked).toHaveLength(3);

    const always = answering(busy);
    const refused = always.client.get(NODES, { name: "n" }).catch((error: unknown) => error);
    await always.clock.advance(600_000);
    expect(await refused).toMatchObject({ code: 429 });
    expect(always.asked).toHaveLength(6);
    await expect(answering(busy).client.create(NODES, map("n"))).rejects.toMatchObject({ code: 429 });
  });
});

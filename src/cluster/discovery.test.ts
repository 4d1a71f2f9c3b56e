import { describe, expect, it } from "vitest";
import { StatusError } from "../api/status.ts";
import type { ApiResponse } from "../api/transport.ts";
import { createClient } from "./client.ts";
import { json } from "./testing/scripted-server.ts";

/** A server of documents by path. */
function serving(documents: Record<string, unknown>) {
  const asked: string[] = [];
  const answer = (path: string): ApiResponse => {
    const document = documents[path];
    if (document instanceof StatusError) return json(document.code, document.status);
    return document === undefined ? json(404, { kind: "Status", code: 404, reason: "NotFound" }) : json(200, document);
  };
  const transport = {
    request: async ({ path }: { path: string }) => {
      asked.push(path);
      return answer(path);
    },
    close() {},
  };
  return { client: createClient(transport, { userAgent: "test" }), asked, documents };
}

const VERBS = ["get", "list", "watch"];
const pods = {
  resource: "pods",
  responseKind: { group: "", version: "v1", kind: "Pod" },
  scope: "Namespaced",
  verbs: VERBS,
};
const aggregated = (items: unknown[]) => ({ kind: "APIGroupDiscoveryList", items });
const MODERN = {
  "/api": aggregated([{ metadata: {}, versions: [{ version: "v1", resources: [pods] }] }]),
  "/apis": aggregated([
    {
      metadata: { name: "vendor.io" },
      versions: [
        {
          version: "v3",
          resources: [{ resource: "tiers", responseKind: { kind: "Tier" }, scope: "Cluster", verbs: VERBS }],
        },
        { version: "v2", freshness: "Stale" },
      ],
    },
  ]),
};
const LEGACY = {
  "/api": { kind: "APIVersions", versions: ["v1"] },
  "/api/v1": {
    kind: "APIResourceList",
    resources: [
      { name: "pods", kind: "Pod", namespaced: true, verbs: VERBS },
      { name: "pods/log", kind: "Pod", namespaced: true, verbs: ["get"] },
    ],
  },
  "/apis": {
    kind: "APIGroupList",
    groups: [
      { versions: [{ groupVersion: "vendor.io/v3" }], preferredVersion: { groupVersion: "vendor.io/v3" } },
      { versions: [{ groupVersion: "broken.io/v1" }] },
    ],
  },
  "/apis/vendor.io/v3": { resources: [{ name: "tiers", kind: "Tier", namespaced: false, verbs: VERBS }] },
  "/apis/broken.io/v1": new StatusError(503, "ServiceUnavailable", "its server is down"),
};

const TIERS = { group: "vendor.io", version: "v3", kind: "Tier", plural: "tiers", namespaced: false };

describe.each([
  ["aggregated documents", MODERN],
  ["a document per group version", LEGACY],
])("discovery by %s", (_name, documents) => {
  it("finds where a kind is served, and remembers it", async () => {
    const { client, asked } = serving(documents);
    expect(await client.resourceFor({ apiVersion: "vendor.io/v3", kind: "Tier" })).toEqual(TIERS);
    const before = asked.length;
    expect(await client.resourceFor({ apiVersion: "vendor.io/v3", kind: "Tier" })).toEqual(TIERS);
    expect(asked).toHaveLength(before);
  });

  it("lists every resource, without subresources, even while one API is down", async () => {
    const { client } = serving(documents);
    const found = await client.resources();
    expect(found).toEqual([
      { group: "", version: "v1", kind: "Pod", plural: "pods", namespaced: true, verbs: VERBS, preferred: true },
      { ...TIERS, verbs: VERBS, preferred: true },
    ]);
  });

  it("finds a kind that was installed after the first question", async () => {
    const { client, documents: now } = serving({ ...documents });
    const type = { apiVersion: "new.io/v1", kind: "Thing" };
    await expect(client.resourceFor(type)).rejects.toMatchObject({ code: "CLUSTER_UNKNOWN_KIND" });
    now["/apis/new.io/v1"] = { resources: [{ name: "things", kind: "Thing", namespaced: true, verbs: VERBS }] };
    expect((await client.resourceFor(type)).plural).toBe("things");
  });
});

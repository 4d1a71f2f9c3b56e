import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { customResourceDefinitions } from "../../src/api/schema/crd.ts";
import { patternProblem } from "../../src/api/schema/schema-pattern.ts";
import { listen } from "../../src/apiserver/http.ts";
import { bootstrapRoles } from "../../src/local/rbac-bootstrap.ts";
import { type Api, startApi } from "../support/api.ts";
import { requestDirectly, startV3Api } from "../support/v3-api.ts";
import { closed, rawPortAt } from "./raw-http.ts";

const MAPS = "/api/v1/namespaces/default/configmaps";
const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/** A kind whose field `word` must match. */
function definition(plural: string, pattern: string) {
  const kind = plural.slice(0, -1).replace(/^./, (letter) => letter.toUpperCase());
  const properties = { spec: { type: "object", properties: { word: { type: "string", pattern } } } };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.attack.io` },
    spec: {
      group: "attack.io",
      scope: "Cluster",
      names: { plural, kind, singular: plural.slice(0, -1) },
      versions: [
        { name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object", properties } } },
      ],
    },
  };
}

describe("the embedded API server", () => {
  let api: Api;
  beforeAll(async () => {
    api = await startApi();
  });
  afterAll(() => api.close());

  it("matches patterns of users in linear time", async () => {
    expect((await api.create(CRDS, definition("bombs", "^(a+)+$"))).status).toBe(201);
    const bomb = (word: string) => ({
      apiVersion: "attack.io/v1",
      kind: "Bomb",
      metadata: { name: "b" },
      spec: { word },
    });
    const path = "/apis/attack.io/v1/bombs";
    await expect.poll(async () => (await api.get(path)).status).toBe(200);
    const began = performance.now();
    const answer = await api.create(path, bomb(`${"a".repeat(50_000)}!`));
    expect(answer.status).toBe(422);
    expect(answer.body.message).toContain("should match '^(a+)+$'");
    // A backtracking engine needs longer than the universe is old.
    expect(performance.now() - began).toBeLessThan(10_000);
    expect((await api.create(path, bomb("aaa"))).status).toBe(201);
  });

  it.each(["(?=a)b", "(a)\\1", "a{1001}", "(?<!x)y", "["])("refuses a pattern that RE2 refuses: %s", async (source) => {
    const { status, body } = await api.create(CRDS, definition("bads", source));
    expect([status, body.message]).toEqual([
      422,
      expect.stringContaining("must be a valid regular expression, but isn't"),
    ]);
  });

  it("all our own patterns are patterns of RE2", () => {
    const sources = JSON.stringify(customResourceDefinitions()).matchAll(/"pattern":("(?:[^"\\]|\\.)*")/g);
    for (const [, text = '""'] of sources) expect(patternProblem(JSON.parse(text) as string)).toBeUndefined();
  });

  it.each([
    [
      "aliases that multiply",
      `a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [${Array(9).fill("*a")}]\nc: &c [${Array(9).fill("*b")}]\nd: [${Array(9).fill("*c")}]\n`,
    ],
    ["a list of lists of lists", "[".repeat(2_000_000)],
    ["list markers in a row", "- ".repeat(1_000_000)],
    ["a map as a key", 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: keyed}\ndata: {? {x: "\\e[31m"} : y}\n'],
  ])("answers 400 to YAML with %s", async (_, body) => {
    const answer = await api.call("POST", MAPS, { body, type: "application/yaml" });
    expect([answer.status, answer.body.reason]).toEqual([400, "BadRequest"]);
  });

  it("patches objects that have a member called __proto__", async () => {
    const body = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"odd"},"data":{"__proto__":"x","a":"b"}}';
    expect((await api.call("POST", MAPS, { body })).status).toBe(201);
    const patches = [
      ["application/merge-patch+json", '{"data":{"a":"c","__proto__":"y"}}'],
      ["application/json-patch+json", '[{"op":"replace","path":"/data/a","value":"d"}]'],
      ["application/strategic-merge-patch+json", '{"data":{"__proto__":"w"}}'],
      [
        "application/apply-patch+yaml",
        '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"odd"},"data":{"__proto__":"z"}}',
      ],
    ] as const;
    for (const [type, patch] of patches) {
      const query = type.includes("apply") ? "?fieldManager=attacker&force=true" : "";
      const answer = await api.call("PATCH", `${MAPS}/odd${query}`, { body: patch, type });
      expect([type, answer.status]).toEqual([type, 200]);
    }
    const stored = await fetch(`${api.url}${MAPS}/odd`).then((response) => response.text());
    expect(stored).toContain('"__proto__":"z"');
    expect(stored).toContain('"a":"d"');
  });

  it("refuses a bearer token it does not know with 401, and takes none for the anonymous user", async () => {
    expect((await api.call("GET", MAPS, { headers: { authorization: "Bearer bogus" } })).status).toBe(401);
    expect((await api.call("GET", MAPS, { headers: { authorization: "Bearer " } })).status).toBe(401);
    expect((await api.get(MAPS)).status).toBe(200);
  });

  it.each([
    ["0.0.0.0", "may not be unspecified"],
    ["127.0.0.1", "may not be in the loopback range"],
    ["::1", "may not be in the loopback range"],
    ["::ffff:127.0.0.1", "may not be in the loopback range"],
    ["169.254.169.254", "may not be in the link-local range"],
    ["fe80::1", "may not be in the link-local range"],
    ["224.0.0.1", "may not be in the link-local multicast range"],
    ["notanip", "must be a valid IP address"],
  ])("refuses %s as an external IP and as the address of an endpoint", async (ip, why) => {
    const service = {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "taker" },
      spec: { ports: [{ port: 80 }], externalIPs: [ip] },
    };
    const slice = {
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: { name: "taker" },
      addressType: ip.includes(":") ? "IPv6" : "IPv4",
      endpoints: [{ addresses: [ip] }],
      ports: [],
    };
    const endpoints = {
      apiVersion: "v1",
      kind: "Endpoints",
      metadata: { name: "taker" },
      subsets: [{ addresses: [{ ip }] }],
    };
    const answers = [
      await api.create("/api/v1/namespaces/default/services", service),
      await api.create("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", slice),
      await api.create("/api/v1/namespaces/default/endpoints", endpoints),
    ];
    for (const { status, body } of answers) expect([status, body.message]).toEqual([422, expect.stringContaining(why)]);
  });

  it("closes half requests, and connections on which nothing is asked", async () => {
    const handler = { handle: async () => ({ status: 200, body: "ok" }) };
    const user = () => ({ name: "x", groups: [] });
    const limits = { headersMs: 200, requestMs: 400 };
    const server = await listen(handler, user, { host: "127.0.0.1", port: 0, limits });
    const { open } = rawPortAt(server.port);
    await closed(await open());
    await closed(await open("GET / HTTP/1.1\r\nhost: x\r\nx-half: "));
    await closed(await open("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nhalf"));
    await server.close();
  });
});

describe("ClusterRole edit", () => {
  it("reads statuses and logs, and writes none", () => {
    const edit = bootstrapRoles().find(({ metadata }) => metadata.name === "system:aggregate-to-edit");
    const rules = edit?.["rules"] as { resources: string[]; verbs: string[] }[];
    const written = rules.filter(({ verbs }) => verbs.includes("patch")).flatMap(({ resources }) => resources);
    expect(written).toContain("pods");
    expect(written.filter((resource) => /\/(status|log)$/.test(resource))).toEqual([]);
  });
});

describe("vendor-apiserver", () => {
  it("refuses a bearer token with 401: only the front proxy's word counts", async () => {
    const api = await startV3Api();
    const ask = (headers: Record<string, string>) => requestDirectly(api.v3, "/apis/vendor.io/v3/tiers", { headers });
    expect((await ask({ authorization: "Bearer bogus" })).status).toBe(401);
    expect((await ask({ authorization: "Basic eDp5" })).status).toBe(401);
    await api.close();
  });
});

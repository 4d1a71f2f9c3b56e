import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { silentLog } from "../../src/kit/log.ts";
import { apiServerProgram } from "../../src/v3api/program.ts";
import { namespace } from "../support/api.ts";
import {
  type DirectOptions,
  frontProxy,
  requestDirectly,
  startV3Api,
  strangeProxy,
  type V3Api,
} from "../support/v3-api.ts";

/** The program itself: whom it believes, when it is ready, what it says of itself, how it stops. */

let api: V3Api;
beforeAll(async () => {
  api = await startV3Api();
});
afterAll(() => api.close());

const ask = (path: string, options: DirectOptions = {}) => requestDirectly(api.v3, path, options);
const admin = { "x-remote-user": "admin", "x-remote-group": "system:masters" };

describe("who is there", () => {
  it("is whom the front proxy says, if it is the cluster's own front proxy", async () => {
    expect((await ask("/apis/vendor.io/v3/tiers", { proxy: frontProxy, headers: admin })).status).toBe(200);
    expect((await ask("/apis/vendor.io/v3/tiers", { proxy: strangeProxy, headers: admin })).status).toBe(401);
  });
});

describe("the program", () => {
  it("says it is ready, with its checks, and counts what it does", async () => {
    expect((await ask("/livez")).text).toBe("ok");
    const { status, text } = await ask("/readyz?verbose");
    expect([status, text]).toEqual([200, "[+]definitions ok\n[+]built-ins ok\nreadyz passed\n"]);
    const metrics = (await ask("/metrics", { proxy: frontProxy, headers: admin })).text;
    expect(metrics).toMatch(/vendor_apiserver_requests_total\{code="200",resource="tiers",verb="list"\} \d+/);
  });

  it("is not ready while what it stands on is missing, and names it", async () => {
    const definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/networksets.crd.vendor.io";
    const kept = (await api.get(definition)).body;
    await api.call("DELETE", definition);
    const { status, text } = await ask("/readyz");
    expect(status).toBe(503);
    expect(text).toContain("[-]definitions failed: the main API server does not serve networksets");
    const { status: _, metadata, ...rest } = kept;
    await api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
      ...rest,
      metadata: { name: metadata.name },
    });
    await expect.poll(async () => (await ask("/readyz")).status).toBe(200);
  });

  it("is discovered and explained through the main API server", async () => {
    const { resources } = (await api.get("/apis/vendor.io/v3")).body;
    const names = resources.map((resource: { name: string }) => resource.name);
    expect(names).toEqual(
      expect.arrayContaining([
        "networkpolicies",
        "tiers",
        "ippools",
        "hostendpoints",
        "kubecontrollersconfigurations/status",
      ]),
    );
    const { definitions } = (await api.get("/openapi/v2")).body;
    expect(definitions["io.vendor.v3.NetworkPolicy"].properties.spec.properties.selector.description).toContain(
      "Labels of the endpoints",
    );
  });

  it("ends its watches when it is told to stop, and serves on as another version with other UIDs", async () => {
    const path = "/apis/vendor.io/v3/profiles/vendor-default-allow";
    const now = (await api.get(path)).body.metadata.uid;
    const response = await fetch(`${api.url}/apis/vendor.io/v3/profiles?watch=true`);
    await api.v3.restart("v3.27.4");
    for await (const _ of response.body!) {
      // Until the stream ends, which the restart has brought about.
    }
    const before = (await api.get(path)).body.metadata.uid;
    const stored = (await api.get("/apis/crd.vendor.io/v1/profiles/vendor-default-allow")).body.metadata.uid;
    expect([before === stored, now === stored]).toEqual([true, false]);
    expect((await api.get("/apis/vendor.io/v3/tiers")).status).toBe(404);
    await api.v3.restart("v3.28.0");
    expect((await api.get(path)).body.metadata.uid).toBe(now);
  });

  it("keeps references as the running version writes them, and reads what an older one wrote", async () => {
    await api.v3.restart("v3.27.4");
    const sets = "/apis/vendor.io/v3/namespaces/default/networksets";
    await api.create("/api/v1/namespaces", namespace("default"));
    const set = (name: string, ownerReferences: object[] = []) => ({
      apiVersion: "vendor.io/v3",
      kind: "NetworkSet",
      metadata: { name, ownerReferences },
    });
    const { uid } = (await api.create(sets, set("owner"))).body.metadata;
    const reference = { apiVersion: "vendor.io/v3", kind: "NetworkSet", name: "owner", uid };
    await api.create(sets, set("owned", [reference]));
    const stored = "/apis/crd.vendor.io/v1/namespaces/default/networksets/owned";
    expect((await api.get(stored)).body.metadata.ownerReferences).toEqual([reference]);
    await api.v3.restart("v3.31.3");
    const owner = (await api.get(`${sets}/owner`)).body.metadata.uid;
    expect((await api.get(`${sets}/owned`)).body.metadata.ownerReferences).toEqual([{ ...reference, uid: owner }]);
  });

  it.each([
    [{}, "AGGREGATED_NO_KEY_PAIR"],
    [{ VENDOR_VERSION: "newest" }, "V3API_BAD_SETTING"],
    [{ PORT: "https" }, "V3API_BAD_SETTING"],
  ])("does not start with %j: %s", async (env, code) => {
    const run = apiServerProgram({
      env,
      transport: () => api.server.transport(),
      signal: new AbortController().signal,
      log: silentLog,
      listen: () => Promise.reject(new Error("it listens")),
    });
    await expect(run).rejects.toMatchObject({ code, exitCode: 78 });
  });
});

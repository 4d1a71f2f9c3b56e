import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { plainListener } from "../../src/apiserver/http.ts";
import { readCliConfig } from "../../src/cli/config.ts";
import { runVendorctl } from "../../src/cli/vendorctl.ts";
import { httpsTransport } from "../../src/cluster/https-transport.ts";
import { loadConnection } from "../../src/cluster/kubeconfig.ts";
import { listenOn } from "../../src/cluster/program.ts";
import { flowBatch, flowRow, workload } from "../../src/flows/flow.fixture.ts";
import { readPageFiles } from "../../src/flows/page/page-files.ts";
import { NO_USER, PageFront } from "../../src/flows/page/page-front.ts";
import { readersRights } from "../../src/flows/page/page-rights.ts";
import { serveOwnPage } from "../../src/flows/page/serve-own-page.ts";
import { silentLog } from "../../src/kit/log.ts";
import { type FlowsApi, startFlowsApi } from "../support/flows-api.ts";
import { inProcessVendorctl } from "../support/in-process-vendorctl.ts";

/** What serves the flow UI: to this user alone on a machine (`vendorctl ui`), or to who shows a token (`vendor flow-ui`). */

const FLOWS = "/apis/flows.vendor.io/v1/flows";
const SHOP = "/apis/flows.vendor.io/v1/namespaces/shop/flows";
const PREVIEWS = "/apis/flows.vendor.io/v1/namespaces/shop/previews";
const JSON_TYPE = { "content-type": "application/json" };
/** Nobody may reach the cart, who did. */
const PREVIEW = JSON.stringify({
  kind: "FlowPreview",
  spec: {
    objects: [
      {
        ...{ apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy", metadata: { name: "closed" } },
        spec: { podSelector: {}, policyTypes: ["Ingress"] },
      },
    ],
  },
});
const PAGE = "<!doctype html><title>Flows</title>";

let flows: FlowsApi;
let folder = "";
const closing: (() => unknown)[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "flow-page-"));
  for (const [name, text] of [
    ["index.html", PAGE],
    ["page.js", "export {};"],
    ["secret.key", "not a part of the page"],
  ] as const)
    writeFileSync(join(folder, name), text);
  flows = await startFlowsApi(["ana", "auditor", "editor", "nobody"]);
  await flows.bind("ana", "view", "shop");
  await flows.bind("auditor", "view");
  await flows.bind("editor", "edit");
  const rows = [flowRow({ from: workload("shop", "web"), to: workload("shop", "cart"), port: 80 })];
  await flows.send(flowBatch(rows, { node: "node-1", interval: 1, until: Date.now() }));
});
afterAll(async () => {
  for (const close of closing.reverse()) await close();
  await flows?.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
}

/** With headers that no browser would let a page set. */
function ask(url: string, headers: Record<string, string> = {}, method = "GET", body = ""): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const path = url.slice(url.indexOf("/", "http://".length));
    const sent = body === "" ? headers : { ...headers, "content-length": String(Buffer.byteLength(body)) };
    request({ hostname, port, path, method, headers: sent, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
    })
      .on("error", reject)
      .end(body);
  });
}

const transportOf = (user: string) => {
  const file = join(folder, `kubeconfig-${user}`);
  writeFileSync(file, flows.kubeconfig(flows.tokenOf(user)));
  return httpsTransport(loadConnection({ kubeconfig: file }));
};
const about = { cluster: "c", release: "v3.31.3", namespace: "default", notifications: true };

describe("the page of a user's own machine", () => {
  let url = "";
  let cookie = "";
  beforeAll(async () => {
    const transport = transportOf("auditor");
    const page = await serveOwnPage({ files: readPageFiles(folder), transport, about, log: silentLog, port: 0 });
    closing.push(() => transport.close(), page.close);
    url = page.url;
    const [given] = (await ask(`${url}/`)).headers["set-cookie"] as string[];
    cookie = given!.split(";")[0]!;
  });

  it("lets nothing else into the browser's view of it, and is kept by no one", async () => {
    const { status, headers, text } = await ask(`${url}/`);
    expect([status, text]).toEqual([200, PAGE]);
    expect(headers["content-security-policy"]).toMatch(/^default-src 'none'; .*frame-ancestors 'none'$/);
    expect(headers).toMatchObject({ "cache-control": "no-store", "x-frame-options": "DENY" });
    expect(headers["set-cookie"]).toEqual([expect.stringMatching(/; HttpOnly; SameSite=Strict; Path=\/$/)]);
    expect((await ask(`${url}/page.js`)).headers["content-type"]).toMatch(/^text\/javascript/);
  });

  it("reads flows with the rights of the kubeconfig, and says whose they are", async () => {
    expect(JSON.parse((await ask(`${url}/session`, { cookie })).text)).toEqual({
      ...about,
      ...{ signIn: false, user: "auditor", wholeCluster: true, runs: false },
    });
    const list = await ask(`${url}${FLOWS}?query=to:shop/cart`, { cookie });
    expect([list.status, JSON.parse(list.text).items.length]).toEqual([200, 1]);
    const watched = await ask(`${url}${FLOWS}?watch=true&timeoutSeconds=1`, { cookie });
    expect(JSON.parse(watched.text.split("\n")[0]!)).toMatchObject({ type: "ADDED" });
  });

  it("passes on what the API refuses", async () => {
    const { status, text } = await ask(`${url}${FLOWS}?query=nonsense:1`, { cookie });
    expect([status, JSON.parse(text).kind]).toEqual([400, "Status"]);
  });

  it.each([
    ["has no cookie", {}],
    ["has another cookie", { cookie: "vendor-flow-ui=guess" }],
    ["comes from another page", { origin: "https://example.com" }],
    ["comes from a page of another port", { origin: "http://127.0.0.1:1" }],
    ["is one that browsers call cross-site", { "sec-fetch-site": "cross-site" }],
    ["is one that browsers call same-site", { "sec-fetch-site": "same-site" }],
    ["asks for a name that somebody points here", { host: "rebound.example.com" }],
  ])("refuses a request that %s", async (what, headers: Record<string, string>) => {
    const { status, text } = await ask(`${url}${FLOWS}`, {
      ...(what.includes("cookie") ? {} : { cookie }),
      ...headers,
    });
    expect([status, JSON.parse(text).reason]).toEqual([403, "Forbidden"]);
    expect(text).not.toContain("shop");
  });

  it("reaches no other path of the API server, and no file beside the page", async () => {
    for (const path of [
      ...["/runs", "/api/v1/secrets", "/apis/apps/v1/deployments", "/apis/flows.vendor.io/v1beta1/flows", "/metrics"],
      ...["/apis/flows.vendor.io/v1/../../../api/v1/secrets", "/apis/flows.vendor.io/v1/%2e%2e/%2e%2e/secrets"],
      ...[
        "/apis/flows.vendor.io/v1//flows",
        "/apis/flows.vendor.io/v1/flows/..",
        "/secret.key",
        "/../secret.key",
        "//",
      ],
    ])
      expect([path, (await ask(`${url}${path}`, { cookie })).status]).toEqual([path, 404]);
    for (const method of ["POST", "PUT", "DELETE", "PATCH"])
      expect([method, (await ask(`${url}${FLOWS}`, { cookie, origin: url }, method)).status]).toEqual([method, 405]);
  });

  describe("previews, which are asked for by a POST", () => {
    let own = "";
    let trusted: Record<string, string> = {};
    beforeAll(async () => {
      const transport = transportOf("editor");
      const page = await serveOwnPage({ files: readPageFiles(folder), transport, about, log: silentLog, port: 0 });
      closing.push(() => transport.close(), page.close);
      own = page.url;
      const [given] = (await ask(`${own}/`)).headers["set-cookie"] as string[];
      trusted = { ...JSON_TYPE, cookie: given!.split(";")[0]!, origin: own, "sec-fetch-site": "same-origin" };
    });
    const post = (headers: Record<string, string>, path = PREVIEWS, method = "POST", body = PREVIEW) =>
      ask(`${own}${path}`, headers, method, body);

    it("are answered to the page, with the rights of the kubeconfig", async () => {
      const { status, text } = await post(trusted);
      expect([status, JSON.parse(text).kind]).toEqual([201, "FlowPreview"]);
      const refused = await ask(`${url}${PREVIEWS}`, { ...trusted, cookie, origin: url }, "POST", PREVIEW);
      expect([refused.status, JSON.parse(refused.text).message]).toEqual([
        403,
        expect.stringContaining('User "auditor" cannot create resource "previews"'),
      ]);
    });

    it.each([
      ["has no cookie", { cookie: "" }],
      ["names no origin", { origin: "" }],
      ["comes from another page", { origin: "https://example.com" }],
      ["comes from a page of another port", { origin: "http://127.0.0.1:1" }],
      ["comes from a page without an origin", { origin: "null" }],
      ["is one that browsers call cross-site", { "sec-fetch-site": "cross-site" }],
      ["is one that browsers call same-site", { "sec-fetch-site": "same-site" }],
      ["is one that browsers call typed", { "sec-fetch-site": "none" }],
      ["asks for a name that somebody points here", { host: "rebound.example.com" }],
    ])("are refused to a request that %s", async (_what, wrong: Record<string, string>) => {
      const headers = Object.fromEntries(Object.entries({ ...trusted, ...wrong }).filter(([, value]) => value !== ""));
      expect((await post(headers)).status).toBe(403);
    });

    it("are refused in any type that a form could send, and without one", async () => {
      const { "content-type": _, ...untyped } = trusted;
      expect((await post(untyped)).status).toBe(415);
      for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/yaml"])
        expect([type, (await post({ ...trusted, "content-type": type })).status]).toEqual([type, 415]);
    });

    it("are refused when they are too large, and leave the page as it was", async () => {
      expect((await post(trusted, PREVIEWS, "POST", " ".repeat(256 * 1024 + 1))).status).toBe(413);
      expect((await post(trusted, PREVIEWS, "POST", " ".repeat(8 * 1024 * 1024))).status).toBe(413);
      expect((await post(trusted)).status).toBe(201);
    });

    it("are the only thing that is asked for so", async () => {
      for (const path of [
        ...[`${PREVIEWS}/x`, `${PREVIEWS}/`, "/apis/flows.vendor.io/v1/namespaces/../previews", FLOWS, SHOP],
        ...["/apis/flows.vendor.io/v1/proposals", "/apis/flows.vendor.io/v1/namespaces/a/b/previews", "/session", "/"],
        ...["/api/v1/namespaces", "/apis/networking.k8s.io/v1/namespaces/shop/networkpolicies"],
      ])
        expect([path, (await post(trusted, path)).status]).toEqual([path, 405]);
      for (const method of ["PUT", "DELETE", "PATCH", "OPTIONS"])
        expect([method, (await post(trusted, PREVIEWS, method)).status]).toEqual([method, 405]);
    });

    it("take no parameters along", async () => {
      expect((await post(trusted, `${PREVIEWS}?watch=true&dryRun=All&fieldValidation=nonsense`)).status).toBe(201);
    });
  });

  it("gives runs of vendorctl to the page alone, where there is something that reads them", async () => {
    const transport = transportOf("auditor");
    const runs = async () => ({ runs: [] });
    const page = await serveOwnPage({ files: readPageFiles(folder), transport, about, log: silentLog, port: 0, runs });
    closing.push(() => transport.close(), page.close);
    const [given] = (await ask(`${page.url}/`)).headers["set-cookie"] as string[];
    const own = { cookie: given!.split(";")[0]! };
    expect(JSON.parse((await ask(`${page.url}/session`, own)).text)).toMatchObject({ runs: true });
    expect(JSON.parse((await ask(`${page.url}/runs`, own)).text)).toEqual({ runs: [] });
    for (const headers of [{}, { cookie }, { ...own, origin: "https://example.com" }])
      expect((await ask(`${page.url}/runs`, headers as Record<string, string>)).status).toBe(403);
  });

  it.runIf(process.getuid?.() === 0 && process.platform === "linux")(
    "lets no other user of the machine in",
    async () => {
      const script = `require("http").get(${JSON.stringify(`${url}/`)}, () => end("in")).on("error", () => end("out")); function end(word) { console.log(word); process.exit(); }`;
      const asUser = async (uid: number) =>
        (await promisify(execFile)(process.execPath, ["-e", script], { uid, gid: uid, cwd: "/" })).stdout;
      expect(await asUser(65_534)).toBe("out\n");
      expect(await asUser(0)).toBe("in\n");
    },
  );

  it("survives bytes that are no request", async () => {
    const { hostname, port } = new URL(url);
    const closed = (socket: Socket) => new Promise((resolve) => socket.on("close", resolve).on("error", () => {}));
    for (const bytes of ["\0\0\0", "GET / HTTP/9.9\r\n\r\n", `GET /${"a".repeat(100_000)} HTTP/1.1\r\n\r\n`]) {
      const socket = connect({ host: hostname, port: Number(port) });
      socket.resume().write(bytes);
      await closed(socket);
    }
    expect((await ask(`${url}/session`, { cookie })).status).toBe(200);
  });
});

describe("vendorctl ui", () => {
  /** Runs until the address is printed, then gives it to `look`, then is interrupted. */
  async function ui(user: string, look: (url: string) => Promise<void>): Promise<number> {
    const file = join(folder, `kubeconfig-ui-${user}`);
    writeFileSync(file, flows.kubeconfig(flows.tokenOf(user)));
    const interrupted = new AbortController();
    let said: (url: string) => void = () => {};
    const address = new Promise<string>((resolve) => {
      said = resolve;
    });
    const ended = runVendorctl(["--kubeconfig", file, "ui", "--no-open", "-o", "json"], {
      config: readCliConfig({}, {}),
      out: (text) => said((JSON.parse(String(text)) as { url: string }).url),
      err: () => {},
      signal: interrupted.signal,
      loadClusterCommands: () => Promise.reject(new Error("no embedded cluster is asked for")),
    });
    try {
      await look(
        await Promise.race([address, ended.then((exit) => Promise.reject(new Error(`it ended with ${exit}`)))]),
      );
    } finally {
      interrupted.abort();
    }
    return await ended;
  }

  it("serves the page that was built, with the rights of the kubeconfig, until it is interrupted", async () => {
    let left = "";
    const exit = await ui("ana", async (url) => {
      left = url;
      const page = await ask(`${url}/`);
      expect(page.text).toContain('<script type="module" src="page.js"');
      const [given] = page.headers["set-cookie"] as string[];
      const session = JSON.parse((await ask(`${url}/session`, { cookie: given!.split(";")[0]! })).text);
      expect(session).toMatchObject({ cluster: "c", user: "ana", signIn: false, wholeCluster: false, runs: true });
      const runs = await ask(`${url}/runs`, { cookie: given!.split(";")[0]! });
      expect([runs.status, JSON.parse(runs.text).message]).toEqual([
        403,
        expect.stringContaining('User "ana" cannot list resource "secrets"'),
      ]);
    });
    expect(exit).toBe(0);
    await expect(ask(`${left}/`)).rejects.toThrow("ECONNREFUSED");
  });

  it("says first what is wrong with the cluster", async () => {
    const tool = inProcessVendorctl(JSON.stringify({ ...JSON.parse(flows.kubeconfig("")), users: [] }));
    const { exit, err } = await tool.run("ui", "--no-open");
    tool.close();
    expect([exit > 0, err]).toEqual([true, expect.stringMatching(/^error: .*\[\w+\]\n {2}fix: /)]);
  });
});

describe("the page in a cluster", () => {
  let url = "";
  beforeAll(async () => {
    // As its account, which has no rights.
    const transport = transportOf("nobody");
    const front = new PageFront({
      ...{ files: readPageFiles(folder), rights: readersRights(), transport, about, log: silentLog },
      // Would be read with rights that are not the reader's, so it is not served.
      runs: async () => ({ runs: [] }),
    });
    const server = plainListener(front, () => NO_USER);
    const { host, port } = await listenOn(server, { host: "127.0.0.1", port: 0 });
    closing.push(
      () => transport.close(),
      () => void server.close(),
      () => server.closeAllConnections(),
    );
    url = `http://${host}:${port}`;
  });
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

  it("shows itself to everyone, and nothing of the cluster without a token", async () => {
    expect((await ask(`${url}/`)).text).toBe(PAGE);
    for (const headers of [{}, { authorization: "Basic YTpi" }, { cookie: "a=b" }, bearer("wrong")]) {
      for (const path of ["/session", FLOWS, SHOP]) {
        const { status, text } = await ask(`${url}${path}`, headers as Record<string, string>);
        expect([status, JSON.parse(text).reason]).toEqual([401, "Unauthorized"]);
      }
    }
  });

  it("shows who shows a token what that token may see", async () => {
    const ana = bearer(flows.tokenOf("ana"));
    expect(JSON.parse((await ask(`${url}/session`, ana)).text)).toMatchObject({
      ...{ user: "ana", signIn: true, wholeCluster: false, runs: false },
    });
    expect((await ask(`${url}/runs`, ana)).status).toBe(404);
    expect((await ask(`${url}${SHOP}`, ana)).status).toBe(200);
    const asked = { ...JSON_TYPE, origin: url };
    expect((await ask(`${url}${PREVIEWS}`, asked, "POST", PREVIEW)).status).toBe(401);
    expect((await ask(`${url}${PREVIEWS}`, { ...asked, ...ana }, "POST", PREVIEW)).status).toBe(403);
    const editor = bearer(flows.tokenOf("editor"));
    expect((await ask(`${url}${PREVIEWS}`, { ...asked, ...editor }, "POST", PREVIEW)).status).toBe(201);
    const refused = await ask(`${url}${FLOWS}`, ana);
    expect([refused.status, JSON.parse(refused.text).message]).toEqual([
      403,
      expect.stringContaining('User "ana" cannot list resource "flows"'),
    ]);
  });
});

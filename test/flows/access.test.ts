import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { flowBatch, flowRow, outside, policyHit, workload } from "../../src/flows/flow.fixture.ts";
import { RANKED_FIELDS } from "../../src/flows/store/flow-store.ts";
import { createAuthority, issue } from "../../src/kit/x509.ts";
import { type FlowsApi, type Identity, startFlowsApi } from "../support/flows-api.ts";
import { type InProcessVendorctl, inProcessVendorctl } from "../support/in-process-vendorctl.ts";
import { findKubectls, openKubectl } from "../support/kubectl.ts";

/** Who sees which flows: ana has Kubernetes' `view` in the namespace shop, paul in pay, and the auditor everywhere. */

const V1 = "/apis/flows.vendor.io/v1";
const SHOP = `${V1}/namespaces/shop`;
/** Names that only those who may see more than shop may read. */
const SECRET = /secret-\w+/;

let flows: FlowsApi;
let tools: InProcessVendorctl[] = [];
beforeAll(async () => {
  flows = await startFlowsApi(["ana", "paul", "auditor", "nora"]);
  await flows.bind("ana", "view", "shop");
  await flows.bind("paul", "view", "pay");
  await flows.bind("auditor", "view");
  const hidden = workload("pay", "db", { "secret-label": "secret-value" });
  await flows.send(
    flowBatch(
      [
        flowRow({
          ...{ from: workload("shop", "web"), to: hidden, port: 5432, node: "node-1", reporter: "Source" },
          policies: [policyHit({ namespace: "pay", name: "secret-policy" })],
        }),
        ...[1, 2, 3].map((port) => flowRow({ from: workload("shop", "web"), to: workload("shop", "cart"), port })),
      ],
      { node: "node-1", interval: 1, until: Date.now() },
    ),
  );
  const others = [
    flowRow({ from: workload("pay", "secret-from"), to: workload("pay", "secret-to"), port: 7777 }, { bytes: 999 }),
    flowRow({ from: outside, to: workload("pay", "secret-front"), port: 7778 }, { bytes: 888 }),
  ];
  // Its clock differs, so answers that name such nodes would name it.
  for (const interval of [1, 2, 3, 4])
    await flows.send(flowBatch(others, { node: "secret-node", interval, until: Date.now() + 600_000 }));
});
afterAll(async () => {
  for (const tool of tools) tool.close();
  await flows?.close();
});

const as = (user: string): Identity => ({ token: flows.tokenOf(user) });
const ask = (user: string, path: string) => flows.ask(path, as(user));
function vendorctl(user: string) {
  const tool = inProcessVendorctl(flows.kubeconfig(flows.tokenOf(user)));
  tools = [...tools, tool];
  return tool;
}

describe("a user who may list flows in one namespace", () => {
  it("lists them, with everything that is made of them", async () => {
    const { status, body } = await ask("ana", `${SHOP}/flows`);
    expect(status, JSON.stringify(body)).toBe(200);
    expect(body.items).toHaveLength(4);
    expect(body.metadata.totals).toMatchObject({ flows: 4, bytes: 4 * 180 });
    const [{ metadata }] = body.items;
    expect((await ask("ana", `${SHOP}/flows/${metadata.name}`)).status).toBe(200);
    for (const about of ["hints?field=to", "top?by=to", "statistics?by=rule", "timeline", "proposals"])
      expect([about, (await ask("ana", `${SHOP}/${about}`)).status]).toEqual([about, 200]);
    expect((await ask("ana", `${SHOP}/flows?watch=true&timeoutSeconds=1`)).body).toContain('"ADDED"');
  });

  it("is refused every other namespace, and all of them, in one sentence", async () => {
    for (const what of ["flows", "flows?watch=true", "hints?field=to", "top", "statistics", "timeline", "proposals"]) {
      const resource = what.replace(/\?.*/, "");
      const verb = what.includes("watch") ? "watch" : "list";
      for (const [path, where] of [
        [`${V1}/namespaces/pay`, 'in the namespace "pay"'],
        [V1, "at the cluster scope"],
      ]) {
        const { status, body } = await ask("ana", `${path}/${what}`);
        expect([what, status]).toEqual([what, 403]);
        expect(body).toMatchObject({ kind: "Status", reason: "Forbidden" });
        expect(body.message).toBe(
          `${resource}.flows.vendor.io is forbidden: User "ana" cannot ${verb} resource "${resource}" in API group "flows.vendor.io" ${where}`,
        );
      }
    }
  });

  it("finds nothing of others in any answer, whatever is asked", async () => {
    const queries = [
      "",
      "secret-policy",
      "label:secret-label",
      "port:7777",
      "namespace:pay",
      "node:secret-node",
      "-web",
    ];
    const fields = RANKED_FIELDS.flatMap((field) => [`hints?field=${field}&prefix=`, `top?by=${field}`]);
    const asked = [
      ...["flows", "flows?limit=1", "flows?sort=bytes", "timeline", "proposals?egress=true&addresses=true"],
      ...["statistics?by=policy", "statistics?by=rule", "flows?fieldSelector=node%3Dsecret-node", ...fields],
    ];
    for (const what of asked) {
      // Each query once, and each answer with one that would find others.
      for (const query of what === "flows" ? queries : ["", "namespace:pay"]) {
        const path = `${SHOP}/${what}${what.includes("?") ? "&" : "?"}query=${encodeURIComponent(query)}`;
        const { body } = await ask("ana", path);
        const said = JSON.stringify(body).replaceAll(JSON.stringify(query).slice(1, -1), query && "…");
        expect(said, path).not.toMatch(SECRET);
        expect(said, path).not.toMatch(/\b(?:777[78]|999|888|3996|3552)\b/);
      }
    }
    expect((await ask("ana", `${SHOP}/flows?watch=true&timeoutSeconds=1`)).body).not.toMatch(SECRET);
    expect((await ask("ana", `${SHOP}/flows`)).body.metadata.nodes).toEqual({
      silent: [],
      late: [],
      skewed: [],
      unnamed: 1,
    });
    const seen = JSON.stringify((await ask("auditor", `${V1}/flows`)).body);
    for (const secret of ["secret-policy", "secret-label", "secret-from", "secret-node"])
      expect(seen).toContain(secret);
  });

  it("cannot go on with the pages of another's list", async () => {
    const tokenOf = async (user: string, path: string) =>
      (await ask(user, `${path}/flows?limit=1`)).body.metadata.continue as string;
    const next = (path: string, token: string) => `${path}/flows?limit=1&continue=${encodeURIComponent(token)}`;
    const [all, pays] = [await tokenOf("auditor", V1), await tokenOf("paul", `${V1}/namespaces/pay`)];
    for (const token of [all, pays]) {
      const { status, body } = await ask("ana", next(SHOP, token));
      expect([status, body.reason]).toEqual([410, "Expired"]);
      expect(JSON.stringify(body)).not.toMatch(SECRET);
    }
    expect((await ask("ana", next(SHOP, await tokenOf("ana", SHOP)))).status).toBe(200);
  });

  it("is not told by an error whether something of others exists", async () => {
    const [{ metadata }] = (await ask("paul", `${V1}/namespaces/pay/flows?query=port:7777`)).body.items;
    const there = await ask("ana", `${SHOP}/flows/${metadata.name}`);
    const nowhere = await ask("ana", `${SHOP}/flows/${"0".repeat(24)}`);
    expect(there.status).toBe(404);
    expect(JSON.stringify(there.body).replaceAll(metadata.name, "ID")).toBe(
      JSON.stringify(nowhere.body).replaceAll("0".repeat(24), "ID"),
    );
  });
});

describe("a user who may watch one flow", () => {
  it("is sent that flow, and none of its neighbours", async () => {
    const [one] = (await ask("ana", `${SHOP}/flows?query=port:1`)).body.items;
    const { name } = one.metadata;
    const role = {
      ...{ apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata: { name: "one-flow" } },
      rules: [
        {
          apiGroups: ["flows.vendor.io"],
          resources: ["flows"],
          resourceNames: [name],
          verbs: ["get", "list", "watch"],
        },
      ],
    };
    const transport = flows.api.server.transport();
    const headers = { "content-type": "application/json" };
    const path = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    await transport.request({ method: "POST", path, headers, body: JSON.stringify(role) });
    await flows.bind("nora", "one-flow", "shop");
    const { status, body } = await ask("nora", `${SHOP}/flows/${name}?watch=true&timeoutSeconds=1`);
    expect(status).toBe(200);
    // Several would not be one JSON text.
    expect(body).toMatchObject({ type: "ADDED", object: { metadata: { name } } });
    expect((await ask("nora", `${SHOP}/flows`)).status).toBe(403);
  });
});

describe("a user who watches as often as the server allows", () => {
  it("is refused one more, and takes none from others", async () => {
    const stop = new AbortController();
    const path = `${SHOP}/flows?watch=true`;
    const watching = Array.from({ length: 20 }, () => flows.watch(path, as("ana"), stop.signal));
    await Promise.all(watching);
    const { status, body } = await ask("ana", path);
    expect([status, body.reason]).toEqual([429, "TooManyRequests"]);
    expect(body.message).toContain("20 watches are open");
    expect((await ask("paul", `${V1}/namespaces/pay/flows?watch=true&timeoutSeconds=1`)).body).toContain('"ADDED"');
    stop.abort();
    await expect.poll(async () => (await ask("ana", `${path}&timeoutSeconds=1`)).status).toBe(200);
  });
});

describe("who does not prove who they are", () => {
  const stranger = createAuthority({ commonName: "front-proxy-ca" }, new Date(Date.now() - 60_000), 1);
  const foreign = () =>
    issue(stranger, {
      ...{ subject: { commonName: "front-proxy-client", organizations: ["system:masters"] }, usage: "client" },
      ...{ notBefore: new Date(Date.now() - 60_000), days: 1 },
    });
  const claims = { "x-remote-user": "admin", "x-remote-group": "system:masters" };

  it.each<[string, () => Promise<Identity> | Identity, number]>([
    ["no token", () => ({}), 403],
    ["a wrong token", () => ({ token: "guess" }), 401],
    ["a token cut short", () => ({ token: flows.tokenOf("ana").slice(0, -1) }), 401],
    ["an expired token", async () => ({ token: await flows.expiredToken() }), 401],
    ["a foreign certificate", () => ({ pair: foreign() }), 401],
    ["headers of a front proxy without its certificate", () => ({ headers: claims }), 403],
    ["headers of a front proxy with a foreign certificate", () => ({ headers: claims, pair: foreign() }), 401],
  ])(
    "with %s is refused in one sentence, by the main API server and by vendor-flow-logs itself",
    async (_, who, code) => {
      const identity = await who();
      for (const call of [flows.ask, flows.askDirectly]) {
        const { status, body } = await call(`${SHOP}/flows`, identity);
        expect(status).toBe(code);
        expect(body).toMatchObject({ kind: "Status", status: "Failure", code });
        expect(body.message).toMatch(
          /^(?:flows\.flows\.vendor\.io is forbidden: User "system:anonymous" cannot list [^\n]*|Unauthorized)$/,
        );
        expect(JSON.stringify(body)).not.toMatch(SECRET);
      }
    },
  );

  it("is refused by vendor-flow-logs with a right token, which only the main API server can read", async () => {
    expect((await flows.askDirectly(`${SHOP}/flows`, as("ana"))).status).toBe(401);
    const proxy = { pair: flows.keys.frontProxy, headers: { "x-remote-user": "ana" } };
    expect((await flows.askDirectly(`${SHOP}/flows`, proxy)).status).toBe(200);
    expect((await flows.askDirectly(`${V1}/flows`, proxy)).status).toBe(403);
  });
});

describe("the tools", () => {
  it("vendorctl flows shows the namespace of the user, and says so", async () => {
    const tool = vendorctl("ana");
    const { exit, out, err } = await tool.run("flows", "-n", "shop");
    expect(exit, err).toBe(0);
    expect(out).toContain("shop/cart");
    expect(out + err).not.toMatch(SECRET);
    expect(err).toContain("nodes that you may not see");
    expect(await tool.ok("flows", "top", "-n", "shop", "--by", "to")).toContain("shop/cart");
    const most = await tool.ok("flows", "top", "-n", "shop", "--by", "port", "--limit", "1", "-o", "json");
    expect((JSON.parse(most) as { values: unknown[] }).values).toHaveLength(1);
    const refused = await tool.run("flows", "-A");
    expect(refused.exit).not.toBe(0);
    expect(refused.err).toContain(
      'User "ana" cannot list resource "flows" in API group "flows.vendor.io" at the cluster scope [FLOWS_FORBIDDEN]',
    );
    expect((await vendorctl("auditor").ok("flows", "-A")).match(SECRET)).not.toBeNull();
  });

  const kubectls = findKubectls();
  if (kubectls.length === 0) it("kubectl", ({ skip }) => skip("needs kubectl"));
  it.each(kubectls.slice(-1))("kubectl $version does too", async (program) => {
    const kubectl = openKubectl(program, flows.kubeconfig(flows.tokenOf("ana")));
    try {
      const shown = await kubectl.ok("get", "flows", "-n", "shop");
      expect(shown).toMatch(/^WHEN +VERDICT +FROM +TO +PORT/);
      expect(shown).toContain("shop/cart");
      expect(shown).not.toMatch(SECRET);
      const refused = await kubectl.refused("get", "flows", "-A");
      expect(refused.trim()).toBe(
        'Error from server (Forbidden): flows.flows.vendor.io is forbidden: User "ana" cannot list resource "flows" in API group "flows.vendor.io" at the cluster scope',
      );
      expect((await kubectl.run(["auth", "can-i", "list", "flows.flows.vendor.io", "-n", "shop"])).stdout).toBe(
        "yes\n",
      );
    } finally {
      kubectl.close();
    }
  });
});

it("who reaches the pod reads counts, and no name", async () => {
  const state = (text: string, state: string) =>
    new RegExp(`^vendor_flow_logs_nodes\\{state="${state}"\\} (\\d+)$`, "m").exec(text)?.[1];
  const metrics = await vi.waitFor(
    async () => {
      const text = await flows.metrics();
      expect(state(text, "skewed")).toBe("1");
      return text;
    },
    { timeout: 20_000 },
  );
  expect(state(metrics, "sending")).toMatch(/^[12]$/);
  expect(metrics).toMatch(/^vendor_flow_logs_rows_total 12$/m);
  for (const name of [SECRET, /shop|cart|node-1/]) expect(metrics).not.toMatch(name);
});

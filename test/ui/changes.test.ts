import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { FlowKey } from "../../src/api/protocol/flow.ts";
import { flowBatch, flowRow, policyHit, workload } from "../../src/flows/flow.fixture.ts";
import { pageFiles } from "../../tools/build.mjs";
import { axeProblems } from "../support/axe-problems.ts";
import { findChromium, openBrowser } from "../support/browser.ts";
import { type FlowPage, type FlowPageOptions, serveFlowPage } from "../support/flow-page.ts";
import { type FlowsApi, startFlowsApi } from "../support/flows-api.ts";

/**
 * Policies of what is seen, what they would change, and what has changed, in a browser: the editor has Kubernetes' `edit` everywhere, the auditor
 * `view`.
 */

const SHOTS = process.env["FLOW_UI_SHOTS"];
const MINUTE_MS = 60_000;
const HOSTILE = "<img src=x onerror=alert(1)>";
const DENY_ALL = `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: deny-all
  namespace: pay
spec:
  podSelector: {}
  policyTypes: [Ingress]
`;

const program = findChromium();
if (!program) it("changes of policy in a browser", ({ skip }) => skip("needs chromium"));

describe.skipIf(!program)("changes of policy in a browser (needs chromium)", () => {
  let flows: FlowsApi;
  let folder = "";
  let browser: Browser;
  /** Between what was sent first and what was sent then. */
  let mark = 0;
  const opened: { page: FlowPage; context: BrowserContext; problems: string[]; posts: string[] }[] = [];

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "flow-ui-"));
    for (const { path, contents } of await pageFiles()) writeFileSync(join(folder, basename(path)), contents);
    flows = await startFlowsApi(["editor", "auditor"]);
    await flows.bind("editor", "edit");
    await flows.bind("auditor", "view");
    await createObjects(flows);
    const now = Date.now();
    mark = now - 20 * MINUTE_MS;
    await flows.send(flowBatch(firstRows(), { interval: 1, until: now - 30 * MINUTE_MS }));
    await flows.send(flowBatch(thenRows(), { interval: 2, until: now - 11 * MINUTE_MS }));
    browser = await openBrowser(program as string);
  });
  afterEach(async () => {
    const left = opened.splice(0);
    for (const { page, context } of left) {
      await context.close();
      await page.close();
    }
    expect(left.flatMap(({ problems }) => problems)).toEqual([]);
  });
  afterAll(async () => {
    await browser?.close();
    await flows?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  interface Opening extends Partial<FlowPageOptions> {
    scheme?: "light" | "dark";
    user?: "editor" | "auditor";
  }

  async function open(hash = "", { scheme = "light", user = "editor", ...some }: Opening = {}) {
    const posts: string[] = [];
    const served = await serveFlowPage({
      ...{ folder, kubeconfig: flows.kubeconfig(flows.tokenOf(user)) },
      answers: ({ method, path }) => {
        if (method !== "GET") posts.push(`${method} ${path}`);
        return undefined;
      },
      ...some,
    });
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, colorScheme: scheme });
    const page = await context.newPage();
    const problems: string[] = [];
    opened.push({ page: served, context, problems, posts });
    page.on("pageerror", (error) => problems.push(`error: ${error.stack ?? error.message}`));
    page.on("console", (message) => {
      if (/Content Security|violat/i.test(message.text())) problems.push(`console: ${message.text()}`);
    });
    page.on("request", (request) => {
      const url = request.url().replace(/^blob:/, "");
      if (!url.startsWith(served.url) && !url.startsWith("data:")) problems.push(`requested ${url}`);
    });
    await page.goto(`${served.url}${hash}`);
    return { page, context, posts, url: served.url };
  }

  async function shoot(page: Page, name: string): Promise<void> {
    if (!SHOTS) return;
    mkdirSync(SHOTS, { recursive: true });
    await page.screenshot({ path: join(SHOTS, `${name}.png`) });
  }

  const queryIn = (page: Page) => new URLSearchParams(new URL(page.url()).hash.slice(1)).get("query");

  it("proposes policies of the query by one key, each rule with what it rests on, to be saved or copied", async () => {
    const { page, posts } = await open("#query=to:pay/db");
    await page.locator(".rows [role=row]").first().waitFor();
    await page.keyboard.press("p");
    const panel = page.getByRole("complementary", { name: "Propose" });
    const yaml = panel.locator("pre");
    await yaml.first().waitFor();
    const text = await yaml.first().textContent();
    expect(text).toContain("kind: NetworkPolicy");
    expect(text).toMatch(/# from shop\/web on TCP 5432, TCP 5433: 64 connections/);
    await panel.getByText("kubectl apply -f proposed-policies.yaml").waitFor();
    const saving = page.waitForEvent("download");
    await panel.getByRole("button", { name: "Save" }).press("Enter");
    const saved = await saving;
    expect(saved.suggestedFilename()).toBe("proposed-policies.yaml");
    expect(readFileSync(await saved.path(), "utf8")).toBe(`---\n${text}\n`);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await panel.getByRole("button", { name: "Copy" }).press("Enter");
    await panel.getByText("Copied.").waitFor();
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe(`---\n${text}\n`);
    await panel.getByRole("button", { name: "of vendor.io/v3" }).press("Enter");
    await expect.poll(() => yaml.first().textContent()).toContain("apiVersion: vendor.io/v3");
    expect(page.url()).toContain("api=vendor");
    expect(await axeProblems(page)).toEqual([]);
    await shoot(page, "propose");
    await page.keyboard.press("Escape");
    await expect.poll(() => panel.count()).toBe(0);
    expect(posts).toEqual([]);
  });

  it("says what no rule was made for, whatever it is called, and proposes for the chosen flow", async () => {
    const { page } = await open("#query=verdict:deny+port:8443");
    await page.locator(".rows [role=row]").first().waitFor();
    await page.keyboard.press("j");
    await page.locator(".rows [aria-selected=true]").waitFor();
    await page.keyboard.press("e");
    await page.getByRole("button", { name: "Propose a policy" }).press("Enter");
    await page.getByRole("complementary", { name: "Propose" }).locator("pre").first().waitFor();
    expect(queryIn(page)).toBe("from:shop/web to:pay/ledger port:8443 proto:tcp verdict:deny");
    await page.goto(page.url().replace(/#.*/, "#panel=propose&query=port:98"));
    await page.reload();
    await page.getByRole("heading", { name: "No rule for" }).waitFor();
    expect(await page.locator(".drawer .misses").textContent()).toContain(HOSTILE);
    expect(await page.locator("img").count()).toBe(0);
  });

  it("previews what is proposed, and what is written, by keys alone", async () => {
    const { page, posts } = await open("#query=from:shop/web+port:5432&panel=propose");
    await page.getByRole("button", { name: "Preview this" }).press("Enter");
    const panel = page.getByRole("complementary", { name: "Preview" });
    // What else is asked of the database would be denied.
    await panel.getByRole("heading", { name: /Newly denied: 1 pair/ }).waitFor();
    expect(await panel.getByLabel("Policies, as YAML").inputValue()).toContain("name: db-proposed");
    await page.keyboard.press("Escape");
    await page.keyboard.press("w");
    const field = panel.getByLabel("Policies, as YAML");
    await field.fill(DENY_ALL);
    await field.press("Control+Enter");
    const denied = panel.getByRole("region", { name: "⊘ Newly denied" });
    await denied.getByRole("row", { name: /^shop\/web pay\/db 5432\/TCP 60 end of tier default$/ }).waitFor();
    await panel.getByText(/stay as they are/).waitFor();
    expect(await axeProblems(page)).toEqual([]);
    await shoot(page, "preview");
    await denied.getByRole("button", { name: "shop/web" }).first().press("Enter");
    await expect.poll(() => queryIn(page)).toMatch(/^from:shop\/web to:pay\/\w+ port:\d+ proto:tcp$/);
    expect(new Set(posts)).toEqual(new Set(["POST /apis/flows.vendor.io/v1/previews"]));
  });

  it("previews the flows of the query alone where that is asked for", async () => {
    const { page } = await open("#query=port:5433&panel=preview");
    const panel = page.getByRole("complementary", { name: "Preview" });
    await panel.getByLabel("flows of the query alone").press("Space");
    await expect.poll(() => page.url()).toContain("narrow=1");
    await panel.getByLabel("Policies, as YAML").fill(DENY_ALL);
    await panel.getByLabel("Policies, as YAML").press("Control+Enter");
    await panel.getByText(/^1 would change in 1 pair of ends and ports/).waitFor();
  });

  it("points at the line of what cannot be read, and of what the server refuses", async () => {
    const { page } = await open("#panel=preview");
    const field = page.getByLabel("Policies, as YAML");
    await field.fill(`${DENY_ALL}  ingress: [\n`);
    await page.getByRole("button", { name: "Preview", exact: true }).last().press("Enter");
    await page.getByRole("button", { name: "line 10" }).waitFor();
    await field.fill(DENY_ALL.replace("[Ingress]", "[Sideways]"));
    await field.press("Control+Enter");
    const line = page.getByRole("button", { name: "line 8" });
    await line.waitFor();
    await page.getByText(/spec\.policyTypes.*Sideways/).waitFor();
    await line.press("Enter");
    const selected = await field.evaluate((element) => {
      const { value, selectionStart, selectionEnd } = element as unknown as Record<string, number> & { value: string };
      return value.slice(selectionStart, selectionEnd);
    });
    expect(selected).toBe("  policyTypes: [Sideways]");
    expect(await axeProblems(page)).toEqual([]);
    await shoot(page, "preview-problem");
    await field.fill("# nothing\n");
    await field.press("Control+Enter");
    await page.getByText("There is no policy in this text.").waitFor();
  });

  it("shows what would be allowed if a policy were gone", async () => {
    const { page } = await open("#screen=policies");
    await page.getByRole("button", { name: "what if it were gone? pay/guard" }).press("Enter");
    const panel = page.getByRole("complementary", { name: "Preview" });
    await panel
      .getByRole("region", { name: "→ Newly allowed" })
      .getByRole("row", { name: /8443\/TCP/ })
      .waitFor();
    await panel.getByText("Deleted: NetworkPolicy").waitFor();
    expect(page.url()).toContain("gone=KubernetesNetworkPolicy%2Fpay%2Fguard");
    expect(await axeProblems(page)).toEqual([]);
    await shoot(page, "preview-gone");
  });

  it("a link fills the panel and asks nothing, and who may not make the change is told so", async () => {
    const { page, posts } = await open("#panel=preview&gone=KubernetesNetworkPolicy/pay/guard", { user: "auditor" });
    await page.getByText("Deleted: NetworkPolicy").waitFor();
    await page.locator(".rows [role=row]").first().waitFor();
    expect(posts).toEqual([]);
    await page.getByRole("button", { name: "Preview", exact: true }).last().press("Enter");
    await page.getByText('User "auditor" cannot create resource "previews"').waitFor();
  });

  it("a page of elsewhere in the same browser posts nothing, also with the cookie of the page", async () => {
    const { page, context, url } = await open();
    await page.locator(".rows [role=row]").first().waitFor();
    const previews = `${url}apis/flows.vendor.io/v1/previews`;
    const attacker = createServer((_request, response) => {
      response.setHeader("content-type", "text/html");
      response.end(
        `<form method="post" enctype="text/plain" action="${previews}"><input name='{"kind":"FlowPreview","x":"' value='"}'></form>`,
      );
    });
    await new Promise<void>((resolve) => attacker.listen(0, "127.0.0.1", resolve));
    try {
      const other = await context.newPage();
      await other.goto(`http://127.0.0.1:${(attacker.address() as AddressInfo).port}/`);
      const answers = await other.evaluate(async (target) => {
        const body = '{"kind":"FlowPreview","spec":{}}';
        const tries = [
          { mode: "no-cors", headers: { "content-type": "text/plain" } },
          { mode: "cors", headers: { "content-type": "application/json" } },
        ] as const;
        return await Promise.all(
          tries.map((one) =>
            fetch(target, { ...one, method: "POST", body, credentials: "include" }).then(
              ({ type, status }) => `${type} ${status}`,
              () => "refused",
            ),
          ),
        );
      }, previews);
      expect(answers).toEqual(["refused", "refused"]);
      const submitted = other.waitForResponse(previews);
      await other.evaluate("document.forms[0].submit()");
      expect((await submitted).status()).toBe(403);
    } finally {
      attacker.close();
      attacker.closeAllConnections();
    }
  });

  it("compares flows before and after a time, side by side, and leads to them", async () => {
    const { page } = await open();
    await page.locator(".rows [role=row]").first().waitFor();
    await page.keyboard.press("g");
    await page.keyboard.press("c");
    const field = page.getByLabel("before and after");
    const clock = new Date(mark);
    const parts = [clock.getHours(), clock.getMinutes(), clock.getSeconds()];
    await field.fill("25:00");
    await field.press("Enter");
    await page.getByText("write a time such as 10:42").waitFor();
    expect(await axeProblems(page)).toEqual([]);
    await field.fill(parts.map((part) => String(part).padStart(2, "0")).join(":"));
    await field.press("Enter");
    const row = (name: RegExp) => page.getByRole("row", { name });
    await row(/^shop\/web pay\/ledger 443\/TCP ≠ verdict changed → allow 20 ⊘ deny/).waitFor();
    await row(/^shop\/new pay\/db 5432\/TCP \+ new none → allow 3$/).waitFor();
    await row(/^shop\/old pay\/db 5432\/TCP − gone → allow 4 none/).waitFor();
    await row(/^shop\/web pay\/db 5432\/TCP = same → allow 30 → allow 30$/).waitFor();
    expect(await page.locator("img").count()).toBe(0);
    expect(await axeProblems(page)).toEqual([]);
    await shoot(page, "compare");
    await page.getByRole("button", { name: "Gone 1" }).press("Enter");
    await expect.poll(() => page.locator("tbody tr").count()).toBe(1);
    expect(page.url()).toContain("differences=gone");
    await page.reload();
    await page.getByRole("button", { name: "shop/old" }).press("Enter");
    await expect.poll(() => queryIn(page)).toMatch(/^from:shop\/old to:pay\/db port:5432 proto:tcp since:\S+ until:/);
    await page.locator(".rows [role=row]").first().waitFor();
  });

  it("compares at a run of vendorctl, and for as long as is chosen", async () => {
    const startedAt = new Date(mark).toISOString();
    const common = { procedure: "switch", command: "vendorctl switch", outcome: "done", heading: "forward" } as const;
    const run = { ...common, id: "switch-1", title: "Switch the data plane", isCutOff: false, steps: [], next: [] };
    const runs = async () => ({ runs: [{ ...run, startedAt, changedAt: startedAt }] });
    const { page } = await open("#screen=compare", { runs });
    await page.getByRole("button", { name: /Switch the data plane$/ }).press("Enter");
    await expect.poll(() => page.url()).toContain(`mark=${mark}`);
    await page.getByRole("button", { name: "Verdict changed 1" }).waitFor();
    await page.getByRole("button", { name: "5 min", exact: true }).press("Enter");
    await expect.poll(() => page.url()).toContain("span=5");
    await page.getByText("There are no flows before or after.").waitFor();
  });

  it("says so where nothing is known on one side of a time", async () => {
    const { page } = await open(`#screen=compare&mark=${Date.now() - 50 * MINUTE_MS}`);
    await page.getByText(/Nothing is known before or after/).waitFor();
    await page.getByRole("button", { name: "Choose another time" }).press("Enter");
    await page.getByText("What did a change do to the traffic?").waitFor();
    expect(await axeProblems(page)).toEqual([]);
  });

  it("the strip is used by keys: arrows move, shift widens, Enter writes the time, c compares", async () => {
    const { page } = await open();
    const strip = page.getByRole("slider", { name: "Time in the strip" });
    await strip.waitFor();
    const text = () => strip.getAttribute("aria-valuetext");
    expect(await text()).toBe("no time is chosen");
    await strip.press("ArrowLeft");
    await expect.poll(text).toMatch(/^\d\d:\d\d:\d\d to .*: 0 connections allowed/);
    const first = await text();
    await strip.press("ArrowLeft");
    await expect.poll(text).not.toBe(first);
    const second = await text();
    await strip.press("Shift+ArrowRight");
    await expect.poll(async () => (await text())?.slice(0, 8)).toBe(second?.slice(0, 8));
    expect(await text()).not.toBe(second);
    expect(await axeProblems(page)).toEqual([]);
    await shoot(page, "strip-keys");
    await strip.press("Enter");
    await expect.poll(() => queryIn(page)).toMatch(/^since:\S+Z until:\S+Z$/);
    await strip.press("Home");
    for (let at = 0; at < 2; at++) await strip.press("PageDown");
    await strip.press("c");
    await expect.poll(() => page.url()).toMatch(/screen=compare.*mark=\d+/);
    await page.getByRole("columnheader", { name: "difference" }).waitFor();
  });

  it("lights up the flows of a rule that is looked at, and leads to them", async () => {
    const { page } = await open("#query=port:8443");
    await page.locator(".rows [role=row]").first().waitFor();
    await page.keyboard.press("j");
    await page.locator(".rows [aria-selected=true]").waitFor();
    await page.keyboard.press("e");
    const rule = page
      .locator(".trace")
      .getByRole("button", { name: /pay\/guard/ })
      .first();
    await rule.focus();
    await page.locator(".rows .lit").first().waitFor();
    await page.getByRole("button", { name: "Close" }).focus();
    await expect.poll(() => page.locator(".rows .lit").count()).toBe(0);
    await rule.hover();
    await page.locator(".rows .lit").first().waitFor();
    await rule.press("Enter");
    await expect.poll(() => queryIn(page)).toBe('rule:"pay/guard#ingress[0]"');
  });

  it("shows flows of a policy that is looked at, by keys and by the pointer", async () => {
    const { page } = await open("#screen=policies");
    const look = page.locator(".rule-flows");
    await page.getByRole("button", { name: "pay/guard", exact: true }).focus();
    await look.getByText("⊘ shop/web to pay/ledger 8443/TCP").waitFor();
    await page.getByRole("button", { name: "pay/lock", exact: true }).hover();
    await look.getByText("⊘ shop/web to pay/ledger 443/TCP").waitFor();
    expect(await axeProblems(page)).toEqual([]);
    await shoot(page, "policies-look");
  });

  it("axe finds nothing in the panels and the comparison in the dark theme", async () => {
    for (const [hash, ready] of [
      ["#panel=propose", ".drawer pre"],
      ["#panel=preview&gone=KubernetesNetworkPolicy/pay/guard", ".drawer textarea"],
      [`#screen=compare&mark=${mark}`, "tbody tr"],
    ] as const) {
      const { page } = await open(hash, { scheme: "dark" });
      await page.locator(ready).first().waitFor();
      expect([hash, await axeProblems(page)]).toEqual([hash, []]);
      await shoot(page, `dark-${ready.replace(/\W/g, "")}`);
    }
  });
});

const shopWeb = workload("shop", "web");
const [db, ledger] = [workload("pay", "db"), workload("pay", "ledger")];

function row(key: Partial<FlowKey>, started: number) {
  const own = { from: shopWeb, to: db, port: 5_432, verdict: "Allow", policies: [], ...key } as const;
  return flowRow(own, { started, packets: 2 * started + 2 });
}

function firstRows() {
  return [
    row({}, 30),
    row({ port: 5_433 }, 2),
    row({ to: ledger, port: 443 }, 20),
    row({ from: workload("shop", "old") }, 4),
  ];
}

function thenRows() {
  const guarded = policyHit({ kind: "KubernetesNetworkPolicy", name: "guard", rule: 0 });
  return [
    row({}, 30),
    row({ port: 5_433 }, 2),
    row({ to: ledger, port: 443, verdict: "Deny", policies: [policyHit()] }, 0),
    row({ to: ledger, port: 8_443, verdict: "Deny", policies: [guarded] }, 0),
    row({ from: workload("shop", "new") }, 3),
    row({ from: workload("shop", HOSTILE), port: 99 }, 1),
    row({ from: workload("shop", HOSTILE), port: 98, verdict: "Deny", policies: [policyHit()] }, 0),
  ];
}

async function createObjects(flows: FlowsApi): Promise<void> {
  const transport = flows.api.server.transport();
  const send = async (method: "POST" | "PATCH", path: string, body: object) => {
    const type = method === "PATCH" ? "application/merge-patch+json" : "application/json";
    const headers = { "content-type": type };
    const response = await transport.request({ method, path, headers, body: JSON.stringify(body) });
    expect(response.status, await response.text()).toBeLessThan(300);
  };
  await send("POST", "/api/v1/nodes", {
    metadata: { name: "node-1" },
    status: { addresses: [{ type: "InternalIP", address: "172.16.0.1" }] },
  });
  for (const [index, [namespace, app]] of (
    [
      ["shop", "web"],
      ["pay", "db"],
      ["pay", "ledger"],
    ] as const
  ).entries()) {
    const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: `${app}-5d8f`, uid: app, controller: true };
    const pods = `/api/v1/namespaces/${namespace}/pods`;
    const name = `${app}-5d8f-x2x`;
    await send("POST", pods, {
      metadata: { name, namespace, labels: { app, "pod-template-hash": "5d8f" }, ownerReferences: [owner] },
      spec: { nodeName: "node-1", containers: [{ name: "main", image: "main" }] },
    });
    const ip = `10.244.1.${7 + index}`;
    await send("PATCH", `${pods}/${name}/status`, { status: { phase: "Running", podIP: ip, podIPs: [{ ip }] } });
  }
  await send("POST", "/apis/networking.k8s.io/v1/namespaces/pay/networkpolicies", {
    metadata: { name: "guard", namespace: "pay" },
    spec: {
      podSelector: { matchLabels: { app: "ledger" } },
      policyTypes: ["Ingress"],
      ingress: [{ ports: [{ protocol: "TCP", port: 443 }] }],
    },
  });
}

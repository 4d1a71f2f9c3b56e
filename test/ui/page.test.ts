import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { FlowExplanation, RuleReference } from "../../src/api/protocol/flow-explanation.ts";
import type { PageRun } from "../../src/api/protocol/page-runs.ts";
import { flowBatch, flowRow, outside, policyHit, workload } from "../../src/flows/flow.fixture.ts";
import { pageFiles } from "../../tools/build.mjs";
import { axeProblems } from "../support/axe-problems.ts";
import { findChromium, openBrowser } from "../support/browser.ts";
import { type FlowPage, type FlowPageOptions, serveFlowPage } from "../support/flow-page.ts";
import { type FlowsApi, startFlowsApi } from "../support/flows-api.ts";

/** The page in a browser, in front of a real vendor-flow-logs: ana has the role view in shop, the auditor everywhere. */

/** A folder, for pictures of all screens. */
const SHOTS = process.env["FLOW_UI_SHOTS"];
const LARGEST = 120 * 1_024;

it("the whole page is smaller than 120 kB", async () => {
  const files = await pageFiles();
  expect(files.map(({ path }) => basename(path)).sort()).toEqual([
    "index.html",
    "page-worker.js",
    "page.css",
    "page.js",
  ]);
  const sizes = files.map(({ contents }) => gzipSync(contents, { level: 9 }).length);
  expect(sizes.reduce((sum, size) => sum + size)).toBeLessThan(LARGEST);
});

const program = findChromium();
if (!program) it("the page in a browser", ({ skip }) => skip("needs chromium"));

describe.skipIf(!program)("the page in a browser (needs chromium)", () => {
  let flows: FlowsApi;
  let folder = "";
  let browser: Browser;
  let interval = 0;
  const opened: { page: FlowPage; context: BrowserContext; problems: string[] }[] = [];

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "flow-ui-"));
    for (const { path, contents } of await pageFiles()) writeFileSync(join(folder, basename(path)), contents);
    flows = await startFlowsApi(["ana", "auditor"]);
    await flows.bind("ana", "view", "shop");
    await flows.bind("auditor", "view");
    await createPolicies(flows);
    await send(baseline());
    browser = await openBrowser(program as string);
  });
  afterEach(async () => {
    const left = opened.splice(0);
    for (const { page, context } of left) {
      await context.close();
      await page.close();
    }
    // Of every page that a test opened: violations of the policy, errors, and requests to elsewhere.
    expect(left.flatMap(({ problems }) => problems)).toEqual([]);
  });
  afterAll(async () => {
    await browser?.close();
    await flows?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const send = (rows: ReturnType<typeof flowRow>[]) =>
    flows.send(flowBatch(rows, { interval: ++interval, until: Date.now() }));

  async function open(
    hash = "",
    options: Partial<FlowPageOptions> & { scheme?: "light" | "dark" } = {},
  ): Promise<Page> {
    const { scheme = "light", ...some } = options;
    const served = await serveFlowPage({
      ...{ folder, kubeconfig: flows.kubeconfig(flows.tokenOf("auditor")) },
      ...some,
    });
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, colorScheme: scheme });
    const page = await context.newPage();
    const problems: string[] = [];
    opened.push({ page: served, context, problems });
    page.on("pageerror", (error) => problems.push(`error: ${error.stack ?? error.message}`));
    page.on("console", (message) => {
      if (/Content Security|violat/i.test(message.text())) problems.push(`console: ${message.text()}`);
    });
    page.on("request", (request) => {
      if (!request.url().startsWith(served.url) && !request.url().startsWith("data:"))
        problems.push(`requested ${request.url()}`);
    });
    await page.goto(`${served.url}${hash}`);
    return page;
  }

  const rows = (page: Page) => page.locator(".rows [role=row]");
  const chosen = (page: Page) => page.locator(".rows [aria-selected=true]");

  async function shoot(page: Page, name: string): Promise<void> {
    if (!SHOTS) return;
    mkdirSync(SHOTS, { recursive: true });
    await page.screenshot({ path: join(SHOTS, `${name}.png`) });
  }

  it("lists flows, newest first, and shows new ones as they come", async () => {
    const page = await open();
    await rows(page).first().waitFor();
    await page.getByText("● live").waitFor();
    const before = await page.locator(".status output").textContent();
    await send([
      flowRow({
        from: workload("shop", "late"),
        to: workload("shop", "cart"),
        port: 8_081,
        verdict: "Allow",
        policies: [],
      }),
    ]);
    await page.getByText("shop/late").waitFor();
    expect(await page.locator(".status output").textContent()).not.toBe(before);
  });

  it("announces new denials, and says why by one key", async () => {
    const page = await open();
    await page.getByText("● live").waitFor();
    await send([flowRow({ from: workload("shop", "intruder"), to: workload("pay", "db"), port: 5_432 })]);
    const alarm = page.getByRole("button", { name: "1 new denial: why?" });
    await alarm.waitFor();
    await alarm.press("Enter");
    await page.getByRole("heading", { name: /Denied: shop\/intruder to pay\/db/ }).waitFor();
    await page.locator(".trace .stop").first().waitFor();
    expect(await alarm.count()).toBe(0);
  });

  it("announces nothing where notifications are disabled", async () => {
    const page = await open("#query=quiet", { notifications: false });
    await page.getByText("No flow matches the query").waitFor();
    await send([flowRow({ from: workload("shop", "quiet"), to: workload("pay", "db"), port: 5_432 })]);
    await rows(page).first().waitFor();
    expect(await page.getByRole("button", { name: /why\?/ }).count()).toBe(0);
  });

  it("shows an explanation: tiers, a rule that nearly matched with its line, and what would allow it", async () => {
    const page = await open("#query=verdict:deny", {
      answers: ({ path }) =>
        path.endsWith("/explain") ? { status: 200, body: JSON.stringify(EXPLANATION) } : undefined,
    });
    await rows(page).first().waitFor();
    await page.keyboard.press("j");
    await chosen(page).waitFor();
    await page.keyboard.press("Enter");
    await page.getByText(EXPLANATION.sentence).waitFor();
    await page.getByText("pay/lock#ingress[0] allows TCP port 8080; this is 5432").waitFor();
    expect(await page.locator("mark.bad").textContent()).toBe("17  - action: Allow\n");
    await page.getByText("Add port 5432 to rule 0 of pay/lock.").waitFor();
    await page.getByText("policies that you may not read").waitFor();
    await page.getByText("Policy has changed since: now it is allowed.").waitFor();
    expect(await axeProblems(page)).toEqual([]);
    await shoot(page, "explanation");
  });

  it("is used by keys alone: choose a flow, ask why, go on with the pair, close", async () => {
    const page = await open();
    await rows(page).first().waitFor();
    await page.keyboard.press("j");
    await chosen(page).waitFor();
    const first = await chosen(page).getAttribute("id");
    await page.keyboard.press("j");
    await expect.poll(() => chosen(page).getAttribute("id")).not.toBe(first);
    await page.keyboard.press("k");
    await expect.poll(() => chosen(page).getAttribute("id")).toBe(first);
    await page.keyboard.press("e");
    await page.getByRole("complementary", { name: "Why" }).getByRole("heading").first().waitFor();
    await shoot(page, "why");
    const pair = page.getByRole("button", { name: "Only this pair" });
    await pair.focus();
    await page.keyboard.press("Enter");
    await expect.poll(() => page.url()).toContain("query=from");
    await page.keyboard.press("Escape");
    await expect.poll(() => page.getByRole("complementary", { name: "Why" }).count()).toBe(0);
    await page.keyboard.press("?");
    await page.getByRole("heading", { name: "Keys" }).waitFor();
    await page.keyboard.press("Escape");
    await expect.poll(() => page.getByRole("heading", { name: "Keys" }).count()).toBe(0);
    await page.keyboard.press("g");
    await page.keyboard.press("m");
    await page.locator(".map canvas").waitFor();
    await page.keyboard.press("g");
    await page.keyboard.press("p");
    await page.getByRole("columnheader", { name: "policy and rule" }).waitFor();
    await page.goBack();
    await page.locator(".map canvas").waitFor();
    await page.goForward();
    await page.getByRole("columnheader", { name: "policy and rule" }).waitFor();
  });

  it("completes a query, and points at the character that it cannot read", async () => {
    const page = await open();
    await rows(page).first().waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("verd");
    await page.getByRole("option").first().waitFor();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.getByRole("option", { name: "deny" }).waitFor();
    await page.keyboard.type("deny from:shop/w");
    await page.getByRole("option", { name: "shop/web" }).waitFor();
    await shoot(page, "completions");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await expect.poll(() => rows(page).count()).toBe(2);
    await page.keyboard.press("/");
    await page.keyboard.press("End");
    await page.keyboard.type(" prot:tcp");
    await page.keyboard.press("Enter");
    await page.getByText('did you mean "port"?').waitFor();
    expect(await page.locator(".caret").textContent()).toBe("prot");
    await shoot(page, "problem");
    expect(await axeProblems(page)).toEqual([]);
  });

  it("pauses, says how many flows wait, and goes on", async () => {
    const page = await open("#query=paused");
    await page.getByText("No flow matches the query").waitFor();
    await send([flowRow({ from: workload("shop", "paused-a"), verdict: "Allow", policies: [] })]);
    await rows(page).first().waitFor();
    await page.keyboard.press("Space");
    await page.getByRole("button", { name: "Go on" }).waitFor();
    await send([flowRow({ from: workload("shop", "paused-b"), verdict: "Allow", policies: [] })]);
    await page.getByRole("button", { name: "Go on: 1 waiting" }).waitFor();
    expect(await rows(page).count()).toBe(1);
    await page.keyboard.press("Space");
    await expect.poll(() => rows(page).count()).toBe(2);
  });

  it("says which term leaves nothing, and goes on without it", async () => {
    const page = await open("#query=from:shop/web+port:1");
    await page.getByText("Without port:1 there are some").waitFor();
    await shoot(page, "empty");
    expect(await axeProblems(page)).toEqual([]);
    await page.getByRole("button", { name: /Without port:1/ }).click();
    await rows(page).first().waitFor();
  });

  it("shows a reader of one namespace that namespace, and names the right that another one needs", async () => {
    const page = await open("", { kubeconfig: flows.kubeconfig(flows.tokenOf("ana")), namespace: "shop" });
    await rows(page).first().waitFor();
    const field = page.getByLabel("namespace", { exact: true });
    expect(await field.inputValue()).toBe("shop");
    await field.fill("pay");
    await field.press("Enter");
    await page
      .getByText('cannot list resource "flows" in API group "flows.vendor.io" in the namespace "pay"')
      .waitFor();
    expect(await axeProblems(page)).toEqual([]);
  });

  it("asks for a token where the server does not know the user, and keeps it out of the URL and of storage", async () => {
    const page = await open("", { kubeconfig: flows.kubeconfig(""), signIn: true });
    await page.getByLabel(/A token of the cluster/).waitFor();
    expect(await page.getByRole("alert").textContent()).toBe("");
    await page.getByLabel(/A token of the cluster/).fill("guess");
    await page.keyboard.press("Enter");
    await page.getByText("Unauthorized").waitFor();
    expect(await axeProblems(page)).toEqual([]);
    await page.getByLabel(/A token of the cluster/).fill(flows.tokenOf("auditor"));
    await page.keyboard.press("Enter");
    await rows(page).first().waitFor();
    expect(page.url()).not.toContain("token");
    const stored = await page.evaluate("JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])");
    expect(stored).not.toContain("token-of");
    await page.reload();
    await page.getByLabel(/A token of the cluster/).waitFor();
  });

  it("shows names of users as text, whatever they are", async () => {
    await send([
      flowRow({ from: workload("shop", "<img src=x onerror=alert(1)>"), verdict: "Allow", policies: [], port: 99 }),
    ]);
    const page = await open("#query=port:99");
    await page.getByText("shop/<img src=x onerror=alert(1)>").waitFor();
    expect(await page.locator("img").count()).toBe(0);
  });

  it("the map has a line for each pair, and the same as a table that writes queries", async () => {
    const page = await open("#screen=map");
    await page.getByRole("img", { name: /Map: \d+ workloads in/ }).waitFor();
    await shoot(page, "map");
    await page.locator(".map canvas").focus();
    for (const key of ["f", "+", "-", "ArrowLeft"]) await page.keyboard.press(key);
    await page.keyboard.press("t");
    await page.getByRole("columnheader", { name: "one end" }).waitFor();
    await shoot(page, "map-table");
    await page.locator("tbody button").first().press("Enter");
    await expect.poll(() => page.url()).toContain("query=");
  });

  it("a click on a namespace of the map writes the query", async () => {
    const page = await open("#screen=map&query=namespace:pay+from:shop/web");
    const canvas = page.locator(".map canvas");
    await page.getByRole("img", { name: /Map: [1-9]/ }).waitFor();
    const { width, height } = (await canvas.boundingBox()) as { width: number; height: number };
    // Two boxes lie next to each other; the middle of each half is in one.
    await canvas.click({ position: { x: width * 0.3, y: height * 0.5 } });
    await expect.poll(() => page.url()).toMatch(/query=(?:namespace|either|from)/);
  });

  it("policies show rules that were never hit, and lead to the flows of a rule", async () => {
    const page = await open("#screen=policies");
    await page.getByRole("row", { name: /pay\/never-hit/ }).waitFor();
    await shoot(page, "policies");
    await page.getByRole("button", { name: "Never hit" }).press("Enter");
    await expect.poll(() => page.url()).toContain("rules=never");
    await page.getByRole("button", { name: "All" }).press("Enter");
    await page.getByRole("button", { name: "ingress rule 2" }).first().press("Enter");
    await expect.poll(() => new URLSearchParams(new URL(page.url()).hash.slice(1)).get("query")).toMatch(/^rule:/);
    await rows(page).first().waitFor();
  });

  it("shows what a run cost the traffic, why it stopped and what to type, and marks it in the strip", async () => {
    const page = await open("", { runs: async () => ({ runs: stoppedRuns() }) });
    await page.getByRole("img", { name: /^The last hour: .*: Switch the data plane/ }).waitFor();
    await shoot(page, "flows-with-runs");
    await page.keyboard.press("g");
    await page.keyboard.press("r");
    await page.getByRole("row", { name: "pod-remote TCP 24 0 41 ms" }).waitFor();
    expect(await page.locator(".measured td.bad").allTextContents()).toEqual(["3 of 900", "3 of 900"]);
    await page.getByText("In 3 min 12 s: 0 of 24 connections lost, 3 of 900 datagrams unanswered").waitFor();
    await page.getByText("over budget [CANARY_OVER_BUDGET]").waitFor();
    expect(await page.locator(".next code").allTextContents()).toEqual(["vendorctl resume", "vendorctl rollback"]);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.getByRole("button", { name: "Copy vendorctl resume" }).press("Enter");
    await page.getByText("Copied.").waitFor();
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe("vendorctl resume");
    await page.keyboard.press("j");
    await expect.poll(() => page.url()).toContain("run=install-1");
    await page.getByText("Nothing was measured during this run.").waitFor();
    await page.keyboard.press("k");
    await page.getByRole("row", { name: /pod-remote/ }).waitFor();
    expect(await axeProblems(page)).toEqual([]);
    await shoot(page, "runs-stopped");
  });

  it("has no tab for runs where none can be asked for, and says where they are", async () => {
    const page = await open("#screen=runs");
    await page.getByText("Runs are shown by vendorctl ui").waitFor();
    expect(await page.getByRole("link", { name: "Runs" }).count()).toBe(0);
    expect(await axeProblems(page)).toEqual([]);
  });

  it("the strip writes the time that is dragged into the query", async () => {
    const page = await open();
    await page.locator(".u-over").waitFor();
    await page.getByRole("img", { name: /^The last hour: .* packets denied/ }).waitFor();
    const box = (await page.locator(".u-over").boundingBox()) as { x: number; y: number; width: number };
    await expect
      .poll(async () => {
        await page.mouse.move(box.x + box.width * 0.2, box.y + 20);
        await page.mouse.down();
        await page.mouse.move(box.x + box.width * 0.6, box.y + 20, { steps: 4 });
        await page.mouse.up();
        return page.url();
      })
      .toMatch(/since%3A20.*until%3A20/);
    await page.getByRole("button", { name: "any time" }).press("Enter");
    await expect.poll(() => page.url()).not.toContain("since");
  });

  it.each(["light", "dark"] as const)("axe finds nothing on any screen in the %s theme", async (scheme) => {
    for (const [screen, ready] of [
      ["flows", ".rows [role=row]"],
      ["map", ".map canvas"],
      ["policies", "tbody tr"],
    ] as const) {
      const page = await open(`#screen=${screen}`, { scheme });
      await page.locator(ready).first().waitFor();
      expect([screen, await axeProblems(page)]).toEqual([screen, []]);
      await shoot(page, `${screen}-${scheme}`);
      if (screen !== "flows") continue;
      await page.keyboard.press("j");
      await chosen(page).waitFor();
      await page.keyboard.press("e");
      await page.locator(".drawer dl").waitFor();
      expect(["why", await axeProblems(page)]).toEqual(["why", []]);
      await shoot(page, `why-${scheme}`);
    }
  });

  it("forced colours and print leave everything readable", async () => {
    const page = await open();
    await rows(page).first().waitFor();
    await page.emulateMedia({ forcedColors: "active" });
    expect(await axeProblems(page)).toEqual([]);
    await shoot(page, "forced-colors");
    await page.emulateMedia({ forcedColors: "none", media: "print" });
    expect(await rows(page).first().isVisible()).toBe(true);
    expect(await page.getByRole("navigation").isVisible()).toBe(false);
  });
});

const LOCK: RuleReference = {
  ...{ kind: "NetworkPolicy", tier: "default", namespace: "pay", name: "lock", direction: "Ingress", action: "Allow" },
  ...{ rule: 0, path: "spec.ingress[0]", line: 17, yaml: "- action: Allow\n  destination:\n    ports: [8080]\n" },
};

const EXPLANATION: FlowExplanation = {
  ...{ apiVersion: "flows.vendor.io/v1", kind: "FlowExplanation", metadata: { name: "a", namespace: "pay" } },
  sentence: "Denied: no policy in tier default allows shop/web to pay/db on TCP port 5432.",
  ...{ recorded: { verdict: "Deny" }, now: { verdict: "Allow", policies: [] }, changed: true },
  ends: [
    {
      ...{ direction: "Ingress", pod: "pay/db-0", node: "node-1", verdict: "Deny" },
      steps: [
        {
          ...{ of: "Workload", tier: "default", policies: [LOCK], hidden: true, result: "Deny", by: "EndOfTier" },
          text: "end of tier: deny",
        },
      ],
    },
  ],
  nearMisses: [
    {
      rule: LOCK,
      criteria: [{ name: "dstPorts", wanted: "8080", found: "5432" }],
      text: "pay/lock#ingress[0] allows TCP port 8080; this is 5432",
    },
  ],
  remedies: [{ kind: "ChangeRule", direction: "Ingress", text: "Add port 5432 to rule 0 of pay/lock.", rule: LOCK }],
  notes: ["addresses of the other end are left out"],
};

/** A switch that lost datagrams and stopped, after an install. */
function stoppedRuns(): PageRun[] {
  const at = (minutesAgo: number) => new Date(Date.now() - minutesAgo * 60_000).toISOString();
  const row = { reached: true, opened: 0, lost: 0, replaced: 0, silenceMs: 41, sent: 0, unanswered: 0 };
  const common = { heading: "forward", isCutOff: false } as const;
  return [
    {
      ...{ ...common, id: "switch-2", title: "Switch the data plane from BPF to Nftables", procedure: "switch" },
      ...{ command: "vendorctl switch --to standard", outcome: "stopped", startedAt: at(20), changedAt: at(16) },
      why: { code: "CANARY_OVER_BUDGET", message: "canary traffic is over budget" },
      steps: [
        { id: "canary", title: "Start traffic", state: "confirmed", ms: 1_800 },
        { id: "node-1", title: "Switch node-1", state: "intended" },
        { id: "node-2", title: "Switch node-2", state: "pending" },
      ],
      traffic: {
        rows: [
          { ...row, way: "pod-remote", protocol: "tcp", opened: 24 },
          { ...row, way: "service-remote", protocol: "udp", sent: 900, unanswered: 3 },
        ],
        sum: { opened: 24, lost: 0, sent: 900, unanswered: 3, silenceMs: 41 },
        ms: 192_000,
      },
      next: ["vendorctl resume", "vendorctl rollback"],
    },
    {
      ...{ ...common, id: "install-1", title: "Install", procedure: "install", command: "vendorctl install" },
      ...{ outcome: "done", startedAt: at(40), changedAt: at(38), next: [] },
      steps: [{ id: "operator", title: "Start the operator", state: "confirmed", ms: 9_000 }],
    },
  ];
}

/** A small shop, its payments, and what is outside. */
function baseline() {
  const apps = ["web", "cart", "search", "mail"];
  const allowed = (from: ReturnType<typeof workload>, to: ReturnType<typeof workload>, port: number) =>
    flowRow(
      {
        ...{ from, to, port, verdict: "Allow" },
        policies: [policyHit({ namespace: to.namespace, name: "allow", rule: 0, action: "Allow" })],
      },
      { bytes: port * 1_000, replyBytes: port * 9_000, started: 12, live: 2 },
    );
  return [
    ...apps.flatMap((name, at) =>
      apps.slice(at + 1).map((other) => allowed(workload("shop", name), workload("shop", other), 8_080 + at)),
    ),
    allowed(workload("shop", "cart"), workload("pay", "api"), 443),
    allowed(workload("pay", "api"), workload("pay", "db"), 5_432),
    flowRow({ from: workload("shop", "web"), to: workload("pay", "db"), port: 5_432 }),
    flowRow({ from: workload("shop", "web"), to: workload("pay", "api"), port: 444, policies: [endOfTier] }),
    flowRow({ from: outside, to: workload("shop", "web"), port: 443, verdict: "Allow", policies: [] }),
  ];
}

const { rule: _, ...endOfTier } = policyHit({ kind: "EndOfTier", namespace: "", name: "" });

async function createPolicies(flows: FlowsApi): Promise<void> {
  const transport = flows.api.server.transport();
  for (const [name, ports] of [
    ["lock", [8_080, 8_081, 8_082]],
    ["never-hit", [1]],
  ] as const) {
    const policy = {
      ...{ apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy", metadata: { name, namespace: "pay" } },
      spec: {
        podSelector: {},
        policyTypes: ["Ingress"],
        ingress: ports.map((port) => ({ ports: [{ port, protocol: "TCP" }] })),
      },
    };
    const response = await transport.request({
      ...{ method: "POST", path: "/apis/networking.k8s.io/v1/namespaces/pay/networkpolicies" },
      ...{ headers: { "content-type": "application/json" }, body: JSON.stringify(policy) },
    });
    expect(response.status, await response.text()).toBe(201);
  }
}

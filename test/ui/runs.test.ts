import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { VERSION } from "../../src/api/tables/release.ts";
import type { Handler } from "../../src/apiserver/http.ts";
import { type LocalCluster, startCluster } from "../../src/local/cluster.ts";
import { pageRunsReader } from "../../src/procedures/run/page-runs.ts";
import type { RunRecord, StepRecord } from "../../src/procedures/run/run-record.ts";
import { pageFiles } from "../../tools/build.mjs";
import { outcomeOf, stepSigns } from "../../ui/runs/run-text.ts";
import { axeProblems } from "../support/axe-problems.ts";
import { findChromium, openBrowser } from "../support/browser.ts";
import { serveFlowPage } from "../support/flow-page.ts";
import { type InProcessVendorctl, inProcessVendorctl } from "../support/in-process-vendorctl.ts";

/** Runs of vendorctl on an embedded cluster, watched in a browser while they run and after. */

const SHOTS = process.env["FLOW_UI_SHOTS"];
/** The page asks again after 15 seconds, and a machine may have more to do. */
const PATIENCE_MS = 120_000;

const program = findChromium();
if (!program) it("runs in a browser", ({ skip }) => skip("needs chromium"));

/** As `history ID -o json` has it. */
type HistoryRun = Omit<RunRecord, "steps"> & { steps: (StepRecord & { title: string })[] };

describe.skipIf(!program)("runs in a browser (needs chromium)", () => {
  let folder = "";
  let cluster: LocalCluster;
  let tool: InProcessVendorctl;
  let browser: Browser;
  const gate = installationGate();
  const opened: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "flow-ui-runs-"));
    for (const { path, contents } of await pageFiles()) writeFileSync(join(folder, basename(path)), contents);
    cluster = await startCluster({ name: "runs", kind: "generic", nodes: 2, front: gate.front });
    tool = inProcessVendorctl(cluster.kubeconfig);
    browser = await openBrowser(program as string);
  });
  afterEach(async () => {
    gate.open();
    for (const close of opened.splice(0).reverse()) await close();
  });
  afterAll(async () => {
    await browser?.close();
    tool?.close();
    await cluster?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  async function open(hash: string, scheme: "light" | "dark" = "light"): Promise<Page> {
    const runs = pageRunsReader({ client: cluster.client, tool: VERSION });
    const served = await serveFlowPage({ folder, kubeconfig: cluster.kubeconfig, runs });
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, colorScheme: scheme });
    opened.push(
      () => served.close(),
      () => context.close(),
    );
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    await page.goto(`${served.url}${hash}`);
    return page;
  }

  async function shoot(page: Page, name: string): Promise<void> {
    if (!SHOTS) return;
    mkdirSync(SHOTS, { recursive: true });
    await page.screenshot({ path: join(SHOTS, `${name}.png`) });
  }

  const history = async (id: string) => JSON.parse(await tool.ok("history", id, "-o", "json")) as HistoryRun;

  /** Outcome and steps as a screen reader says them. */
  async function shown(page: Page) {
    const steps = await page.locator(".steps li").evaluateAll((items) =>
      items.map((item) => ({
        id: item.getAttribute("data-step"),
        state: item.getAttribute("data-state"),
        text: item.querySelector(".sign + span")?.textContent,
      })),
    );
    return { outcome: (await page.locator(".run .outcome").textContent())?.slice(2), steps };
  }

  function asShown({ outcome, heading, steps, ...run }: HistoryRun) {
    const page = { ...run.plan, ...run, outcome, heading, steps, isCutOff: false, next: [] };
    const signs = stepSigns(page);
    return {
      outcome: outcomeOf(page).word,
      steps: steps.map(({ id, title, state }, at) => ({ id, state, text: `${title} , ${signs[at]?.word}` })),
    };
  }

  /** Begins it, and comes back when the gate holds it in the middle. */
  async function heldAt(...command: string[]): Promise<{ ended: Promise<string> }> {
    const held = gate.close();
    const ended = tool.ok(...command);
    await Promise.race([held, ended.then(() => Promise.reject(new Error("it was not held")))]);
    return { ended };
  }

  it("follows an install and then a switch: what the page shows is what vendorctl history says", async () => {
    const { ended } = await heldAt("install", "-y");
    const page = await open("#screen=runs");
    await page.locator(".top .running a").waitFor();
    expect(await page.locator(".top .running a").textContent()).toMatch(/^◐ running: Install/);
    const [running] = JSON.parse(await tool.ok("history", "-o", "json")) as RunRecord[];
    await expect.poll(() => shown(page)).toEqual(asShown(await history(running!.id)));
    expect((await shown(page)).outcome).toBe("running");
    expect(await axeProblems(page)).toEqual([]);
    await shoot(page, "runs-running");

    gate.open();
    await ended;
    await page.locator(".run .outcome.done").waitFor();
    expect(await shown(page)).toEqual(asShown(await history(running!.id)));
    expect(await page.locator(".top .running a").count()).toBe(0);
    expect(await page.locator(".next").count()).toBe(0);

    const switching = await heldAt("switch", "--to", "standard", "-y");
    // Found by the page itself, which says it once and goes to what is newest.
    await page.locator(".top .running a", { hasText: "data plane" }).waitFor();
    await page.locator(".run .outcome.running").waitFor();
    gate.open();
    await switching.ended;
    await page.locator(".run .outcome.done").waitFor();
    const [newest, first] = JSON.parse(await tool.ok("history", "-o", "json")) as RunRecord[];
    expect(first?.id).toBe(running?.id);
    expect(await shown(page)).toEqual(asShown(await history(newest!.id)));
  });

  it("is used by keys alone, and a link leads to one run", async () => {
    const [newest, first] = JSON.parse(await tool.ok("history", "-o", "json")) as RunRecord[];
    const page = await open("");
    await page.getByRole("link", { name: "Runs" }).waitFor();
    await page.keyboard.press("g");
    await page.keyboard.press("r");
    const chosen = page.locator(".run-list [aria-current]");
    await expect.poll(() => chosen.getAttribute("data-run")).toBe(newest?.id);
    await page.keyboard.press("j");
    await expect.poll(() => chosen.getAttribute("data-run")).toBe(first?.id);
    const link = new URL(page.url()).hash;
    expect(link).toContain(`run=${first?.id}`);
    await page.keyboard.press("k");
    await expect.poll(() => chosen.getAttribute("data-run")).toBe(newest?.id);
    await page.locator(`[data-run="${first?.id}"]`).press("Enter");
    await expect.poll(() => new URL(page.url()).hash).toBe(link);
    const other = await open(link);
    await expect.poll(() => other.locator("#run-title").textContent()).toBe(first?.plan.title);
  });

  it.each(["light", "dark"] as const)("axe finds nothing in the %s theme", async (scheme) => {
    const page = await open("#screen=runs", scheme);
    await page.locator(".steps li").first().waitFor();
    expect(await axeProblems(page)).toEqual([]);
    await shoot(page, `runs-${scheme}`);
  });
});

/** Holds what vendorctl writes to the Installation while it is closed, so that a run is in its middle. */
function installationGate() {
  let release: () => void = () => {};
  let passage = Promise.resolve();
  let isHeld: () => void = () => {};
  return {
    front: (handler: Handler): Handler => ({
      async handle(incoming) {
        const { method, path, search, headers } = incoming;
        const isWrite = method !== "GET" && /\/installations(?:\/default)?$/.test(path) && !search.includes("dryRun");
        if (isWrite && headers["user-agent"]?.startsWith("vendorctl")) {
          isHeld();
          await passage;
        }
        return await handler.handle(incoming);
      },
    }),
    /** Resolves when something waits. */
    close(): Promise<void> {
      passage = new Promise((resolve) => {
        release = resolve;
      });
      return new Promise((resolve) => {
        isHeld = resolve;
      });
    },
    open: () => release(),
  };
}

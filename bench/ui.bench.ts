import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Page } from "playwright-core";
import type { Incoming, Reply } from "../src/apiserver/call.ts";
import { flowKey, NOTHING, policyHit, randomFrom, workload } from "../src/flows/flow.fixture.ts";
import { findChromium, openBrowser } from "../test/support/browser.ts";
import { serveFlowPage } from "../test/support/flow-page.ts";
import type { Row } from "./run.ts";

const FRAMES = 120;
const APPS = ["web", "api", "cart", "checkout", "search", "auth", "mail", "orders", "stock", "ads"];

/** The page in Debian's Chromium: what its thread takes for a frame, when the first rows are there, and how large it is. */
export async function run(): Promise<Row[]> {
  const quick = process.argv.includes("--quick");
  const contents = readdirSync("dist/page").map((name) => readFileSync(join("dist/page", name)));
  const sizes = contents.map((content) => gzipSync(content, { level: 9 }).length);
  const size: Row = { name: "page and worker, compressed", value: sizes.reduce((a, b) => a + b) / 1_000, unit: "kB" };
  const program = findChromium();
  if (!program) return [size];
  const browser = await openBrowser(program);
  const flows = pagesOf(quick ? 10_000 : 100_000);
  const served = await serveFlowPage({
    ...{ folder: "dist/page", kubeconfig: NO_CLUSTER, answers: (incoming) => answer(flows, incoming) },
  });
  const open = async (hash: string) => {
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
    await page.addInitScript(NOTE_FIRST_ROW);
    await page.goto(served.url + hash);
    return page;
  };
  try {
    const table = await open("");
    await table.getByText("● live").waitFor({ timeout: 120_000 });
    const first = await table.evaluate<number>("globalThis.firstRowAt");
    const jumping = await threadTime(
      table,
      `
      const grid = document.querySelector(".grid");
      grid.scrollTop = (grid.scrollHeight * ((frame * 37) % ${FRAMES})) / ${FRAMES};
    `,
    );
    const elements = await table.evaluate<number>("document.querySelectorAll('*').length");
    await table.close();
    const map = await open("#screen=map");
    await map.getByText("● live").waitFor({ timeout: 120_000 });
    await map.getByRole("img", { name: /Map: [1-9]/ }).waitFor({ timeout: 120_000 });
    const far = await threadTime(map, wheel(1));
    await map.evaluate(`(() => { ${wheel(-1_200)} })()`);
    const near = await threadTime(map, wheel(1));
    return [
      { name: "first rows", value: first, unit: "ms" },
      { name: "a frame, jumping through all rows", value: jumping, unit: "ms of the page's thread" },
      { name: "elements in the document", value: elements, unit: "" },
      { name: "a frame of the map, far", value: far, unit: "ms of the page's thread" },
      { name: "a frame of the map, near", value: near, unit: "ms of the page's thread" },
      size,
    ];
  } finally {
    await browser.close();
    await served.close();
  }
}

const NOTE_FIRST_ROW = `
  new MutationObserver(() => {
    if (globalThis.firstRowAt === undefined && document.querySelector(".rows .row")) globalThis.firstRowAt = performance.now();
  }).observe(document, { childList: true, subtree: true });
`;

function wheel(delta: number): string {
  return `
    const canvas = document.querySelector(".map canvas");
    canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: ${delta}, clientX: 700, clientY: 500, cancelable: true }));
  `;
}

/** For a frame, of all that the page's thread does; what other processes take is not in it. */
async function threadTime(page: Page, work: string): Promise<number> {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Performance.enable", { timeDomain: "threadTicks" });
  const taken = async () => {
    const { metrics } = await devtools.send("Performance.getMetrics");
    return metrics.find(({ name }) => name === "TaskDuration")?.value ?? 0;
  };
  const before = await taken();
  await page.evaluate(`(async () => {
    for (let frame = 0; frame < ${FRAMES}; frame++) {
      (() => { ${work} })();
      await new Promise(requestAnimationFrame);
    }
  })()`);
  return (((await taken()) - before) * 1_000) / FRAMES;
}

const PAGE = 2_000;
const WORKLOADS = 2_000;
const NAMESPACES = 40;

/** Lists as the API writes them, page by page. */
function pagesOf(count: number): string[] {
  const random = randomFrom(42);
  const any = (most: number) => Math.floor(random() * most);
  const end = (at: number) =>
    workload(`team-${at % NAMESPACES}`, `${APPS[at % APPS.length]}-${Math.floor(at / NAMESPACES)}`);
  const now = Date.now();
  const flow = (at: number) => {
    const from = any(WORKLOADS);
    // Most speak to few others.
    const to = (from + NAMESPACES * (1 + any(3))) % WORKLOADS;
    // A pair that is denied is denied each time.
    const isDenied = (from * 31 + to) % 25 === 0;
    const policies = [policyHit({ rule: any(9), action: isDenied ? "Deny" : "Allow" })];
    return {
      ...{
        ...flowKey({
          from: end(from),
          to: end(to),
          port: 1_024 + any(50),
          verdict: isDenied ? "Deny" : "Allow",
          policies,
        }),
      },
      ...{
        ...NOTHING,
        bytes: any(1e8),
        started: any(40),
        sourceAddresses: ["10.244.1.7"],
        destinationAddresses: ["10.244.2.9"],
      },
      ...{
        metadata: { name: at.toString(16).padStart(24, "0") },
        lastSeen: new Date(now - any(3_600_000)).toISOString(),
      },
    };
  };
  return Array.from({ length: count / PAGE }, (_, page) => {
    const items = Array.from({ length: PAGE }, (_item, at) => flow(page * PAGE + at));
    const next = page + 1 < count / PAGE ? { continue: String(page + 1) } : {};
    const metadata = { ...COVERAGE, ...next, resourceVersion: "1", totals: { flows: count } };
    return JSON.stringify({ items, metadata });
  });
}

const COVERAGE = {
  historyFrom: 0,
  shed: { ports: false, addresses: false, names: false },
  nodes: { silent: [], late: [], skewed: [] },
};

/** All that is asked of it is answered here. */
const NO_CLUSTER = JSON.stringify({
  ...{ apiVersion: "v1", kind: "Config", "current-context": "c" },
  ...{ clusters: [{ name: "c", cluster: { server: "https://127.0.0.1:1" } }], users: [{ name: "u", user: {} }] },
  contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
});

const SESSION = { cluster: "demo", release: "v3.31.3", signIn: false, namespace: "default", wholeCluster: true };

function answer(pages: readonly string[], { path, search }: Incoming): Reply | undefined {
  const headers = { "content-type": "application/json" };
  const params = new URLSearchParams(search);
  if (path === "/session") return { status: 200, headers, body: JSON.stringify(SESSION) };
  if (!path.startsWith("/apis/")) return undefined;
  // A watch in which nothing happens.
  if (params.has("watch")) return { status: 200, headers, stream: () => {} };
  const list = path.endsWith("/flows") ? pages[Number(params.get("continue") ?? 0)] : undefined;
  return { status: 200, headers, body: list ?? JSON.stringify({ points: [], hints: [], rules: [] }) };
}

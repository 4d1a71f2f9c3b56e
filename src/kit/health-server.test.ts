import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { type HealthServerOptions, healthServer } from "./health-server.ts";
import { createMetrics } from "./metrics.ts";

const started: Server[] = [];
afterEach(() => {
  for (const server of started.splice(0)) server.close();
});

async function serve(options: HealthServerOptions) {
  const server = healthServer(options);
  started.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return async (path: string, init?: RequestInit) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, init);
    return { status: response.status, text: await response.text(), type: response.headers.get("content-type") };
  };
}

describe("a health server", () => {
  it("is alive and ready where nothing says otherwise", async () => {
    const get = await serve({});
    expect(await get("/livez")).toMatchObject({ status: 200, text: "ok" });
    expect(await get("/readyz")).toMatchObject({ status: 200, text: "ok" });
  });

  it("names every check when one fails, and judges anew each time", async () => {
    let leader: string | undefined = "another replica leads";
    const get = await serve({ ready: { informers: () => undefined, leader: async () => leader } });
    expect(await get("/readyz")).toMatchObject({
      status: 503,
      text: "[+]informers ok\n[-]leader failed: another replica leads\nreadyz failed\n",
    });
    expect((await get("/livez")).status).toBe(200);
    leader = undefined;
    expect(await get("/readyz")).toMatchObject({ status: 200, text: "ok" });
    expect((await get("/readyz?verbose")).text).toBe("[+]informers ok\n[+]leader ok\nreadyz passed\n");
  });

  it("answers for one check alone", async () => {
    const get = await serve({ ready: { a: () => undefined, b: () => "no" } });
    expect((await get("/readyz/a")).status).toBe(200);
    expect((await get("/readyz/b")).status).toBe(503);
    expect((await get("/readyz/toString")).status).toBe(404);
  });

  it("takes a check that throws for one that fails", async () => {
    const get = await serve({
      live: {
        store: () => {
          throw new Error("disk is full");
        },
      },
    });
    expect(await get("/livez")).toMatchObject({ status: 503, text: expect.stringContaining("disk is full") });
  });

  it("prints metrics where there are any, and nothing else", async () => {
    const metrics = createMetrics();
    metrics.counter("starts_total", "Starts.").add();
    const get = await serve({ metrics: () => metrics.text() });
    const answer = await get("/metrics");
    expect(answer.text).toContain("starts_total 1");
    expect(answer.type).toContain("version=0.0.4");
    expect((await get("/secret")).status).toBe(404);
    expect((await get("/livez", { method: "POST" })).status).toBe(405);
    expect((await (await serve({}))("/metrics")).status).toBe(404);
  });
});

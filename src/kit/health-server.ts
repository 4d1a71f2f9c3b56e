import { createServer, type Server, type ServerResponse } from "node:http";
import { METRICS_CONTENT_TYPE, type Metrics } from "./metrics.ts";

/** Nothing when all is well, else one sentence that says what is not. A check that throws is not well either. */
export type HealthCheck = () => string | undefined | Promise<string | undefined>;
export type HealthChecks = Readonly<Record<string, HealthCheck>>;

export interface HealthServerOptions {
  /** What only a restart can heal. None: a program that answers is alive. */
  live?: HealthChecks;
  /** What must be so before others should rely on us. */
  ready?: HealthChecks;
  metrics?: Metrics;
}

/**
 * `/livez` and `/readyz` answer 200 or 503, with one line per check (`[+]leader ok`, `[-]informers failed: …`) when something is wrong or
 * `?verbose` is asked for; `/livez/NAME` and `/readyz/NAME` ask one check. `/metrics` prints the metrics. Not started: `world.listen` does.
 */
export function healthServer({ live = {}, ready = {}, metrics }: HealthServerOptions): Server {
  return createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://local");
    const [, first = "", ...rest] = pathname.split("/");
    const only = rest.join("/");
    if (request.method !== "GET" && request.method !== "HEAD")
      return answer(response, 405, "only GET is served here\n");
    if (first === "metrics" && metrics) return answer(response, 200, metrics.text(), METRICS_CONTENT_TYPE);
    const checks = first === "livez" ? live : first === "readyz" ? ready : undefined;
    const asked = checks && only !== "" ? one(checks, only) : checks;
    if (!asked) return answer(response, 404, "there is /livez, /readyz and /metrics\n");
    void runHealthChecks(asked).then(({ well, lines }) => {
      const text =
        well && !searchParams.has("verbose") ? "ok" : `${lines.join("\n")}\n${first} ${well ? "passed" : "failed"}\n`;
      answer(response, well ? 200 : 503, text);
    });
    return undefined;
  });
}

function one(checks: HealthChecks, name: string): HealthChecks | undefined {
  const check = Object.hasOwn(checks, name) ? checks[name] : undefined;
  return check && { [name]: check };
}

/** Asks all of them at once. */
export async function runHealthChecks(checks: HealthChecks): Promise<{ well: boolean; lines: string[] }> {
  const results = await Promise.all(
    Object.entries(checks).map(async ([name, check]) => ({ name, problem: await problemOf(check) })),
  );
  return {
    well: results.every(({ problem }) => problem === undefined),
    lines: results.map(({ name, problem }) =>
      problem === undefined ? `[+]${name} ok` : `[-]${name} failed: ${problem}`,
    ),
  };
}

async function problemOf(check: HealthCheck): Promise<string | undefined> {
  try {
    return await check();
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function answer(response: ServerResponse, status: number, body: string, type = "text/plain; charset=utf-8"): void {
  response.writeHead(status, { "content-type": type, "x-content-type-options": "nosniff" });
  response.end(body);
}

import type { Server } from "node:http";
import { type FrontReply, type FrontRequest, httpFront } from "./http-front.ts";
import type { Log } from "./log.ts";
import { METRICS_CONTENT_TYPE } from "./metrics.ts";

/** Nothing when all is well, else one sentence that says what is not. A check that throws is not well either. */
export type HealthCheck = () => string | undefined | Promise<string | undefined>;
export type HealthChecks = Readonly<Record<string, HealthCheck>>;

export interface HealthServerOptions {
  /** What only a restart can heal. None: a program that answers is alive. */
  live?: HealthChecks;
  /** What must be so before others should rely on us. */
  ready?: HealthChecks;
  /** Answered at `/readyz/NAME` too, and no part of `/readyz`: what other containers of the pod wait for. */
  readyFor?: HealthChecks;
  /** The text of `/metrics`; left out, there is none on this port. */
  metrics?: () => string | Promise<string>;
  log?: Pick<Log, "warn">;
}

/**
 * `/livez` and `/readyz` answer 200 or 503, with one line per check (`[+]leader ok`, `[-]informers failed: …`) when something is wrong or
 * `?verbose` is asked for; `/livez/NAME` and `/readyz/NAME` ask one check. `/metrics` prints the metrics if there are any. Not started: `world.listen` does.
 */
export function healthServer({ live = {}, ready = {}, readyFor = {}, metrics, log }: HealthServerOptions): Server {
  const answer = async ({ path, query }: FrontRequest): Promise<FrontReply> => {
    const [, first = "", ...rest] = path.split("/");
    const only = rest.join("/");
    if (first === "metrics" && only === "" && metrics) return metricsReply(await metrics());
    const checks = first === "livez" ? live : first === "readyz" ? ready : undefined;
    const asked = checks && only !== "" ? one(first === "readyz" ? { ...ready, ...readyFor } : checks, only) : checks;
    if (!asked) return { status: 404, body: `there is /livez${metrics ? ", /readyz and /metrics" : " and /readyz"}\n` };
    const { well, lines } = await runHealthChecks(asked);
    const body = well && !query.has("verbose") ? "ok" : `${lines.join("\n")}\n${first} ${well ? "passed" : "failed"}\n`;
    return { status: well ? 200 : 503, body };
  };
  return httpFront({ answer, ...(log && { log }) });
}

/** `/metrics`, and nothing else. */
export function metricsServer(metrics: () => string | Promise<string>, log?: Pick<Log, "warn">): Server {
  return httpFront({
    answer: async ({ path }) =>
      path === "/metrics" || path === "/"
        ? metricsReply(await metrics())
        : { status: 404, body: "there is /metrics\n" },
    ...(log && { log }),
  });
}

function metricsReply(body: string): FrontReply {
  return { status: 200, body, type: METRICS_CONTENT_TYPE };
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

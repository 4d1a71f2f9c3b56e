import type { Server } from "node:http";
import type { Program, ProgramContext } from "../cluster/program.ts";
import { programTls } from "../cluster/program-tls.ts";
import { healthServer } from "../kit/health-server.ts";
import { httpFront } from "../kit/http-front.ts";
import { readFlowsConfig } from "./config.ts";

/**
 * What stands where flow logs and their page will be, so that what the operator provisions is whole: it answers health, and to
 * everything else it says honestly that it does nothing yet.
 */
export const flowLogsPlaceholder: Program = (world) =>
  placeholder(world, { port: 7443, message: "flow logs are not part of this release", tls: true });

export const flowUIPlaceholder: Program = (world) =>
  placeholder(world, { port: 8081, message: "the flow UI is not part of this release", tls: false });

interface Part {
  port: number;
  message: string;
  /** Serves with the key pair it was given; without one, plainly. */
  tls: boolean;
}

async function placeholder(world: ProgramContext, part: Part): Promise<void> {
  const { log } = world;
  const { port, healthHost, healthPort } = readFlowsConfig(world.env, part.port);
  await world.listen(answeringServer(world, part), port);
  await world.listen(healthServer({ log }), healthPort, healthHost);
  log.info({ port, healthPort }, `answering health, and 501 to everything else: ${part.message}`);
  if (world.signal.aborted) return;
  await new Promise<void>((resolve) => world.signal.addEventListener("abort", () => resolve(), { once: true }));
}

function answeringServer({ env, log }: ProgramContext, { message, tls }: Part): Server {
  const body = `${JSON.stringify({ code: 501, reason: "NotImplemented", message })}\n`;
  const pair = tls ? programTls(env) : undefined;
  return httpFront({
    answer: () => ({ status: 501, body, type: "application/json" }),
    log,
    ...(pair && { tls: { cert: pair.certificate, key: pair.key } }),
  });
}

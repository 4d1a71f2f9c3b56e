import type { Program } from "../cluster/program.ts";
import { healthServer } from "../kit/health-server.ts";
import { httpFront } from "../kit/http-front.ts";
import { readFlowUIConfig } from "./config.ts";

const MESSAGE = "the flow UI is not part of this release";

/** Stands where the page will be, so that what the operator provisions is whole: it answers health, and to everything else it says honestly that it does nothing yet. */
export const flowUIPlaceholder: Program = async (world) => {
  const { log, signal } = world;
  const { port, healthHost, healthPort } = readFlowUIConfig(world.env);
  const body = `${JSON.stringify({ code: 501, reason: "NotImplemented", message: MESSAGE })}\n`;
  await world.listen(httpFront({ answer: () => ({ status: 501, body, type: "application/json" }), log }), port);
  await world.listen(healthServer({ log }), healthPort, healthHost);
  log.info({ port, healthPort }, `answering health, and 501 to everything else: ${MESSAGE}`);
  if (signal.aborted) return;
  await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
};

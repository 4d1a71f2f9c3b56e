import { spawn } from "node:child_process";
import { join } from "node:path";
import type { Program, ProgramContext } from "../cluster/program.ts";
import { realKernel } from "../kernel/kernel.ts";
import { healthServer, metricsServer } from "../kit/health-server.ts";
import { type AgentConfig, readAgentConfig } from "./config.ts";
import { openDataplanes } from "./dataplanes.ts";
import { type RunningAgent, startAgent } from "./start-agent.ts";

/** vendor-node: the agent of one node, in the node's own network namespace. */
export const nodeProgram: Program = async (world) => {
  const config = readAgentConfig(world.env);
  const kernel = realKernel();
  const agent = await startAgent(world, {
    config,
    kernel,
    dataplanes: await openDataplanes(kernel, config),
    startWatchdog: () => startWatchdog(world),
    failover: {
      usual: () => world.transport(),
      at: (address) => world.transport(address),
      file: join(config.directories.state, "api-addresses.json"),
    },
  });
  await serveHealth(world, config, agent);
  await untilAborted(world.signal);
  await agent.stop();
};

/** Its own process, in a group of its own: it outlives this one. */
function startWatchdog({ log }: ProgramContext): void {
  const [node, executable = ""] = process.argv;
  const child = spawn(node as string, [executable, "node", "rollback-watchdog"], { detached: true, stdio: "ignore" });
  child.on("error", (error) => log.error({ error }, "the rollback watchdog could not be started"));
  child.unref();
}

async function serveHealth(world: ProgramContext, config: AgentConfig, agent: RunningAgent): Promise<void> {
  const live = { loops: () => agent.stuck() };
  const ready = { model: () => agent.notReady() };
  const readyFor = { services: () => agent.servicesNotWatched() };
  const { log } = world;
  await world.listen(healthServer({ live, ready, readyFor, log }), config.healthPort, config.healthHost);
  if (config.metricsPort === undefined) return;
  const text = async () => {
    await agent.refreshMetrics();
    return agent.metrics.text();
  };
  await world.listen(metricsServer(text, log), config.metricsPort, config.metricsHost);
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

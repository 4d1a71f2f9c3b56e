import { StatusError } from "../api/status.ts";
import { type Client, createClient } from "../cluster/client.ts";
import { electLeader } from "../cluster/leader.ts";
import type { Program } from "../cluster/program.ts";
import { systemClock } from "../kit/clock.ts";
import { healthServer, metricsServer } from "../kit/health-server.ts";
import { programMetrics } from "../kit/process-metrics.ts";
import { MANAGER } from "./apply.ts";
import { type OperatorConfig, readOperatorConfig } from "./config.ts";
import { errors } from "./errors.ts";
import { createObserver, type Observer } from "./observe.ts";
import { operatorMetrics } from "./operator-metrics.ts";
import { type Running, runOperator } from "./run-operator.ts";
import { readActiveNamespace, reportRefusal } from "./single-operator.ts";

const LEASE = "vendor-operator";

/** The operator: one copy acts, the others wait for its lease. Ends when asked to, or when another operator has the cluster. */
export const operatorProgram: Program = async (world) => {
  const { log, signal } = world;
  const config = readOperatorConfig(world.env);
  const { clock = systemClock } = world;
  const client = createClient(world.transport(), { userAgent: `${MANAGER}/${config.version}`, clock });
  const registry = programMetrics();
  const metrics = operatorMetrics(registry);
  let observer: Observer | undefined;
  let running: Running | undefined;
  let unanswered: string | undefined = "the API server has not answered yet";
  let fail: (error: unknown) => void = () => {};
  const failed = new Promise<never>((_, reject) => {
    fail = reject;
  });
  failed.catch(() => {});

  const lead = async (ended: AbortSignal): Promise<void> => {
    metrics.leading(true);
    observer = createObserver({
      ...{ client, config, clock, log },
      transport: (at) => world.transport(at),
      onChange: () => running?.changed(),
    });
    try {
      await observer.start(ended);
      running = runOperator({ client, config, observer, metrics, clock, log });
      log.info({ version: config.version, namespace: config.namespace }, "managing the cluster");
      await Promise.race([untilAborted(ended), running.fatal]);
    } catch (error) {
      if (!ended.aborted) fail(error);
    } finally {
      await running?.stop();
      await observer.stop();
      running = undefined;
      observer = undefined;
      metrics.leading(false);
    }
  };

  await refuseToBeSecond(client, config);
  const ready = () => unanswered ?? readiness(observer, running);
  await world.listen(healthServer({ ready: { operator: ready }, log }), config.healthPort, config.healthHost);
  if (config.metricsPort !== undefined) {
    await world.listen(
      metricsServer(() => registry.text(), log),
      config.metricsPort,
      config.metricsHost,
    );
  }
  const election = electLeader(
    {
      client,
      namespace: config.namespace,
      name: LEASE,
      identity: config.identity,
      clock,
      onAnswer: () => {
        unanswered = undefined;
      },
      onError: (error) => {
        if (!(error instanceof StatusError)) unanswered = `the API server does not answer: ${reasonOf(error)}`;
        log.warn({ error }, "cannot hold the lease, retrying");
      },
    },
    lead,
  );
  try {
    await Promise.race([untilAborted(signal), failed]);
  } finally {
    await election.stop();
    client.close();
    log.info({}, "stopped");
  }
};

/** A copy that waits for its turn is as ready as it will get. */
function readiness(observer: Observer | undefined, running: Running | undefined): string | undefined {
  if (running || !observer) return undefined;
  const missing = observer.missingDefinitions();
  if (missing.length > 0) return `waiting for CRDs: ${missing.join(", ")}; apply operator-crds.yaml`;
  return "reading the cluster";
}

async function refuseToBeSecond(client: Client, config: OperatorConfig): Promise<void> {
  // If the lookup fails now, for lack of rights or of an answer, the conflict is reported at the first write.
  const active = await readActiveNamespace(client).catch(() => undefined);
  if (active === undefined || active === config.namespace) return;
  await reportRefusal(client, config.namespace, Date.now(), MANAGER).catch(() => {});
  throw errors.SECOND_OPERATOR(config.namespace, active);
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

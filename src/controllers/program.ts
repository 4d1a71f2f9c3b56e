import { randomUUID } from "node:crypto";
import { vendorNames } from "../api/names.ts";
import { createClient } from "../cluster/client.ts";
import { electLeader } from "../cluster/leader.ts";
import type { Program } from "../cluster/program.ts";
import { loadEtcdDatastore } from "../datastore/load-datastore.ts";
import { lockableTransport } from "../datastore/lockable-transport.ts";
import { systemClock } from "../kit/clock.ts";
import { healthServer } from "../kit/health-server.ts";
import { programMetrics } from "../kit/process-metrics.ts";
import { severityLog } from "../kit/severity-log.ts";
import { readControllersConfig } from "./config.ts";
import { controllersMetrics } from "./controllers-metrics.ts";
import { metricsPort } from "./metrics-port.ts";
import type { Settings } from "./settings/effective-settings.ts";
import { type RunningControllers, startControllers } from "./start-controllers.ts";

const NAME = vendorNames.workloads.kubeControllers;

/** Less than the probe that asks would wait. */
const API_ANSWER_MS = 3_000;

/** vendor-kube-controllers: any number of copies, of which one holds the lease and works. */
export const controllersProgram: Program = async (world) => {
  const { clock = systemClock } = world;
  const config = readControllersConfig(world.env);
  const allMetrics = programMetrics();
  const metrics = controllersMetrics(allMetrics);
  const serving = metricsPort(world, allMetrics, config);
  let severity: Settings["logSeverityScreen"] = "Info";
  const log = severityLog(world.log, () => severity);
  const kubernetes = world.transport();
  const datastore = await loadEtcdDatastore(config.etcd, kubernetes);
  if (datastore) log.info({}, "the datastore is etcd: what agents read of Kubernetes is copied there");
  const client = createClient(datastore?.transport ?? lockableTransport(kubernetes), { userAgent: NAME, clock });
  let running: RunningControllers | undefined;

  const ready = {
    // Any answer will do: it proves that the API server is reachable.
    api: async () => {
      await client.raw({ method: "GET", path: "/version", signal: AbortSignal.timeout(API_ANSWER_MS) });
      return undefined;
    },
    // A copy that waits for the lease is ready: it would take over at once.
    informers: () => {
      const kinds = running?.waitingFor() ?? [];
      return kinds.length === 0 ? undefined : `waiting for the first list of ${kinds.join(", ")}`;
    },
  };
  const health = healthServer({ ready, metrics: serving.alongside, log: world.log });
  await world.listen(health, config.healthPort, config.healthHost);

  const lead = async (signal: AbortSignal): Promise<void> => {
    log.info({}, "leading");
    metrics.leading.set(1);
    const controllers = startControllers({ client, ...(datastore && { datastore }), config, metrics, clock, log });
    running = controllers;
    controllers.settings.onChange(() => {
      const { logSeverityScreen, prometheusMetricsPort } = controllers.settings.current();
      severity = logSeverityScreen;
      serving.use(prometheusMetricsPort);
    });
    await untilAborted(signal);
    running = undefined;
    await controllers.stop();
    metrics.leading.set(0);
    log.info({}, "no longer leading");
  };

  metrics.leading.set(0);
  const electing = {
    client,
    namespace: config.namespace,
    name: NAME,
    identity: `${config.podName}_${randomUUID()}`,
    clock,
    onError: (error: unknown) => log.warn({ error }, "the lease could not be taken or renewed"),
  };
  const election = electLeader(electing, lead);
  await untilAborted(world.signal);
  await election.stop();
  serving.close();
  client.close();
};

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

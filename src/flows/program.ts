import { randomUUID } from "node:crypto";
import { Access } from "../aggregated/access.ts";
import { serveAggregated } from "../aggregated/serve.ts";
import { vendorNames } from "../api/names.ts";
import type { FlowBatch } from "../api/protocol/flow.ts";
import { writeBatch } from "../api/protocol/flow-wire.ts";
import { parseVersion } from "../api/tables/version.ts";
import { Documents } from "../apiserver/documents.ts";
import { Registry } from "../apiserver/registry.ts";
import { createClient } from "../cluster/client.ts";
import type { Program, ProgramContext } from "../cluster/program.ts";
import { programTls } from "../cluster/program-tls.ts";
import { sleep, systemClock } from "../kit/clock.ts";
import { healthServer } from "../kit/health-server.ts";
import { programMetrics } from "../kit/process-metrics.ts";
import { FLOW_SUBRESOURCES, flowKind } from "./api/flow-kind.ts";
import { TABLE_COLUMNS } from "./api/flow-object.ts";
import { FlowsFront } from "./api/flows-front.ts";
import { readFlowLogsConfig } from "./config.ts";
import { writeInThread } from "./disk/files-thread.ts";
import { FlowDisk } from "./disk/flow-disk.ts";
import { errors } from "./errors.ts";
import { clusterObjects } from "./explain/cluster-objects.ts";
import { explainFlow } from "./explain/flow-explanations.ts";
import { exportProgress } from "./export/export-progress.ts";
import { FlowExport } from "./export/flow-export.ts";
import { otlpSender } from "./export/otlp-sender.ts";
import { flowLogsMetrics } from "./flow-logs-metrics.ts";
import { agentPort } from "./ingest/agent-port.ts";
import { flowPace } from "./ingest/flow-pace.ts";
import { knownRules } from "./known-rules.ts";
import { flowPreviews } from "./preview/flow-previews.ts";
import { proposePolicies } from "./propose/flow-proposals.ts";
import { flowServices } from "./public-grpc/flow-services.ts";
import { reportCollection } from "./report-collection.ts";
import { FlowStore } from "./store/flow-store.ts";

const RENEWED_MS = 60_000;

/** `vendor flow-logs`: takes flows from agents, keeps the last hour in memory and where asked more on disk, and serves them as `flows.vendor.io/v1`. */
export const flowLogsProgram: Program = async (world) => {
  const { log, signal, clock = systemClock } = world;
  const config = readFlowLogsConfig(world.env);
  const transport = world.transport();
  const client = createClient(transport, { userAgent: vendorNames.workloads.flowLogs });
  const store = new FlowStore({ clock, memory: config.memory });
  const metrics = programMetrics();
  const counts = flowLogsMetrics(metrics, store);
  const pace = flowPace();
  const { otlp, version: release } = config;
  const exported =
    otlp &&
    new FlowExport({
      ...{ sender: otlpSender(otlp), progress: exportProgress(client), version: release },
      ...{ clock, log, metrics },
    });
  const disk =
    config.disk && (await FlowDisk.open({ ...config.disk, historyMs: store.reach, write: writeInThread, clock, log }));
  let isRestored = false;
  const history = () => (isRestored ? undefined : "reading what is on disk");
  const keep = async (batch: FlowBatch, text?: string) => {
    // What comes again is there, or is being written.
    if (disk && !store.has(batch)) await disk.keep(batch, text ?? writeBatch(batch, batch.until));
    const taken = store.add(batch);
    counts.received(batch, taken);
    if (taken === "added") exported?.offer(batch);
  };
  try {
    await world.listen(
      healthServer({ log, ready: { history }, metrics: () => metrics.text() }),
      config.healthPort,
      config.healthHost,
    );
    const restored = await disk?.restore((batch, arrived) => store.add(batch, arrived));
    isRestored = true;
    const agents = agentPort({
      ...{ tls: tlsOf(world), agents: vendorNames.workloads.node, instance: randomUUID(), pace, log },
      lastOf: (node, boot) => store.lastOf(node, boot),
      keep,
      others: flowServices({ source: store, clock, keep }),
    });
    const listening = await world.listen(agents, config.port);
    const kind = flowKind(TABLE_COLUMNS);
    const registry = new Registry();
    registry.add([kind]);
    const { major = 0, minor = 0 } = parseVersion(config.version) ?? {};
    const version = { major: String(major), minor: String(minor), gitVersion: config.version };
    const access = new Access(transport, clock, () => counts.accessReviews.add());
    const objects = clusterObjects(client, clock);
    const front = new FlowsFront({
      ...{ kind, store, pace, metrics, access, stopping: signal, knownRules: knownRules(client, clock) },
      explain: (asked) => explainFlow(asked, { access, objects, release: config.version }),
      propose: (asked) => proposePolicies(asked, store, { access, objects }),
      preview: flowPreviews({ access, objects, store, release: config.version }),
      documents: new Documents(registry, version, () => ({ subresources: FLOW_SUBRESOURCES, foreign: [] })),
      ready: {},
    });
    log.info({ ...listening, ...(restored !== undefined && { restored }) }, "taking flows from agents");
    await Promise.all([
      serveAggregated(world, { front, client, port: config.apiPort, name: "flows.vendor.io/v1" }),
      reportCollection({
        ...{ client, store, clock, log, signal },
        received: () => counts.sums(),
        looked: counts.looked,
        exported: () => exported?.state(),
        onDisk: () => disk?.state(),
      }),
      disk?.run(signal),
      exported?.run(signal),
      renewing(world, (tls) => agents.setSecureContext(tls)),
    ]);
  } finally {
    await disk?.close();
    pace.end();
    transport.close();
  }
};

interface AgentTls {
  certificate: string;
  key: string;
  ca: string;
}

function tlsOf({ env }: ProgramContext): AgentTls {
  const own = programTls(env);
  if (!own?.ca) throw errors.FLOWS_NO_AUTHORITY();
  return { certificate: own.certificate, key: own.key, ca: own.ca };
}

/** Certificates are renewed while we run. */
async function renewing(
  world: ProgramContext,
  apply: (tls: { cert: string; key: string; ca: string }) => void,
): Promise<void> {
  const { signal, log, clock = systemClock } = world;
  let known = JSON.stringify(tlsOf(world));
  while (!signal.aborted) {
    await sleep(clock, RENEWED_MS, signal);
    if (signal.aborted) return;
    try {
      const tls = tlsOf(world);
      if (JSON.stringify(tls) === known) continue;
      apply({ cert: tls.certificate, key: tls.key, ca: tls.ca });
      known = JSON.stringify(tls);
    } catch (error) {
      log.warn({ error }, "keeping the certificate we have");
    }
  }
}

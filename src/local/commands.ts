import { createWriteStream } from "node:fs";
import { resolve as absolute, join } from "node:path";
import { VERSION } from "../api/tables/release.ts";
import type { Listening } from "../apiserver/http.ts";
import { createClient } from "../cluster/client.ts";
import { httpsTransport } from "../cluster/https-transport.ts";
import { NODES } from "../cluster/kinds.ts";
import { loadConnection } from "../cluster/kubeconfig.ts";
import { readPageFiles } from "../flows/page/page-files.ts";
import { serveOwnPage } from "../flows/page/serve-own-page.ts";
import { type Log, openLog } from "../kit/log.ts";
import { pageRunsReader } from "../procedures/run/page-runs.ts";
import { type ClusterOptions, type ClusterStep, startCluster } from "./cluster.ts";
import {
  ClusterFolder,
  type ClusterRecord,
  clusterNames,
  isRunning,
  processStart,
  readKeys,
  writeKeys,
} from "./cluster-state.ts";
import { stateDirectory } from "./config.ts";
import type { Node } from "./controllers/workload-types.ts";
import { detach } from "./detach.ts";
import { errors } from "./errors.ts";
import { followFile } from "./follow-file.ts";
import { installMethod } from "./installed/install-method.ts";
import { oldRelease } from "./installed/old-release.ts";
import { type ReleaseBefore, writeReleaseBefore } from "./installed/release-before.ts";
import type { ProxyChoice } from "./platform-profile.ts";
import { chooseRuntime, type RuntimeChoice, removeRealNodes } from "./runtime-choice.ts";

/** `vendorctl cluster …`: clusters on this machine, each a process and a folder. */

export interface UpOptions {
  name: string;
  kind: string;
  nodes: number;
  runtime: RuntimeChoice;
  detach: boolean;
  proxy?: ProxyChoice;
  datastore?: "api" | "etcd";
  installed?: string;
  method?: string;
  temporaryPolicy?: boolean;
  userEdits?: boolean;
  oldNodes?: number;
  windowsNodes?: number;
  dualStack?: boolean;
  subnets?: number;
  dataDir?: string;
  port?: number;
}

export type Report = (
  event:
    | { event: "step"; id: string; state: "running" | "done" | "failed"; text: string }
    | { event: "note"; text: string },
) => void;

export interface Run {
  signal: AbortSignal;
  report: Report;
}

export interface ClusterSummary {
  name: string;
  kind: string;
  state: string;
  nodes: number;
  nodesReady: number;
  server: string;
  kubeconfig: string;
  /** Nodes are simulated: everything but packets. */
  simulated?: boolean;
  /** Where its flow UI is, for this user of this machine; it shows something once flow logs are enabled. */
  flowUI?: string;
}

const STEPS: Record<ClusterStep, string> = {
  api: "API server",
  platform: "platform objects",
  nodes: "nodes",
  installed: "older installation",
  ready: "nodes and system pods started",
};

export async function up(asked: UpOptions, run: Run): Promise<{ cluster: ClusterSummary; stopped?: Promise<void> }> {
  const folder = new ClusterFolder(asked.name);
  const before = folder.read();
  if (before && isRunning(before)) throw errors.CLUSTER_RUNNING(asked.name);
  const { runtime, why } = await chooseRuntime(asked);
  const options = { ...asked, runtime };
  const chosen = { ...clusterOptions(options), runtime };
  // Leftovers of a cluster that is gone. Without a record the folder is new, made by our parent.
  if (before) folder.remove();
  folder.create();
  if (why !== undefined) run.report({ event: "note", text: `nodes are simulated, everything but packets: ${why}` });
  if (options.detach) {
    await detach(options, folder, run);
    return { cluster: await summary(folder.read()!) };
  }
  return await upHere(chosen, options, folder, run);
}

/** Everything wrong with the request, before anything is made. */
function clusterOptions(options: UpOptions): ClusterOptions {
  const { datastore } = options;
  if (options.installed !== undefined) oldRelease(options.installed);
  const { name, kind, nodes, oldNodes, windowsNodes, dualStack, subnets } = options;
  return {
    name,
    kind,
    nodes,
    ...(oldNodes !== undefined && { oldNodes }),
    ...(windowsNodes !== undefined && { windowsNodes }),
    ...(dualStack !== undefined && { dualStack }),
    ...(subnets !== undefined && { subnets }),
    ...(options.proxy !== undefined && { proxy: options.proxy }),
    ...(options.installed !== undefined && {
      installed: {
        version: options.installed,
        method: installMethod(options.method, datastore),
        cameFromBeforeV314: options.temporaryPolicy ?? false,
        userEdits: options.userEdits ?? false,
      },
    }),
    ...(options.dataDir !== undefined && { dataDir: absolute(options.dataDir) }),
    ...(options.port !== undefined && { port: options.port }),
  };
}

async function upHere(chosen: ClusterOptions, options: UpOptions, folder: ClusterFolder, run: Run) {
  const file = createWriteStream(folder.log, { flags: "a", mode: 0o600 });
  const log = await openLog({ level: "info", format: "text", write: (line) => void file.write(line) });
  const keysFolder = chosen.dataDir ?? folder.path;
  const keys = readKeys(keysFolder);
  const cluster = await startCluster({
    ...chosen,
    ...(keys && { keys }),
    log,
    note: (text) => run.report({ event: "note", text }),
    report: (step, state) => run.report({ event: "step", id: step, state, text: STEPS[step] }),
  });
  writeKeys(keysFolder, cluster.keys);
  folder.writeKubeconfig(cluster.kubeconfig);
  const page = await servePage(options.name, folder.kubeconfig, log);
  const record: ClusterRecord = {
    name: options.name,
    kind: options.kind,
    nodes: cluster.nodeNames.length,
    pid: process.pid,
    processStart: processStart(process.pid) ?? "",
    server: cluster.url,
    simulated: chosen.runtime === "paper",
    flowUI: page.url,
    ready: true,
  };
  folder.write(record);
  log.info({ server: cluster.url, nodes: record.nodes }, "the cluster is ready");
  const stopped = stopWith(run.signal, async () => {
    await page.close();
    await cluster.close();
    log.info({}, "the cluster has stopped");
    await new Promise((done) => file.end(done));
    folder.remove();
  });
  return { cluster: await summary(record), stopped };
}

/** With the rights of the cluster's kubeconfig, which is its owner's. */
async function servePage(cluster: string, kubeconfig: string, log: Log): Promise<Pick<Listening, "url" | "close">> {
  const transport = httpsTransport(loadConnection({ kubeconfig }));
  const client = createClient(transport, { userAgent: "vendorctl" });
  const page = await serveOwnPage({
    ...{ files: readPageFiles(), transport, log, port: 0 },
    runs: pageRunsReader({ client, tool: VERSION }),
    about: { cluster, release: VERSION, namespace: "default", notifications: true },
  });
  return {
    url: page.url,
    close: async () => {
      await page.close();
      transport.close();
    },
  };
}

function stopWith(signal: AbortSignal, stop: () => Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    const go = () => void stop().then(resolve, reject);
    if (signal.aborted) go();
    else signal.addEventListener("abort", go, { once: true });
  });
}

export async function down({ name }: { name: string }, run: Run): Promise<boolean> {
  const folder = new ClusterFolder(name);
  const record = folder.read();
  if (!record) {
    folder.remove();
    return await removeRealNodes(name);
  }
  if (isRunning(record)) {
    run.report({ event: "step", id: "stop", state: "running", text: `stopping ${name}` });
    process.kill(record.pid, "SIGTERM");
    await gone(record, run.signal);
    run.report({ event: "step", id: "stop", state: "done", text: `stopped ${name}` });
  }
  folder.remove();
  await removeRealNodes(name);
  return true;
}

const STOP_PATIENCE_MS = 15_000;
const POLL_MS = 50;

async function gone(record: ClusterRecord, signal: AbortSignal): Promise<void> {
  const until = Date.now() + STOP_PATIENCE_MS;
  while (isRunning(record)) {
    signal.throwIfAborted();
    if (Date.now() > until) throw errors.CLUSTER_WILL_NOT_STOP(record.name, record.pid);
    await new Promise((wake) => setTimeout(wake, POLL_MS));
  }
}

export async function list(): Promise<ClusterSummary[]> {
  const records = clusterNames().map((name) => new ClusterFolder(name).read());
  return await Promise.all(records.filter((record) => record !== undefined).map(summary));
}

async function summary(record: ClusterRecord): Promise<ClusterSummary> {
  const { name, kind, nodes, server, simulated, flowUI } = record;
  const { kubeconfig } = new ClusterFolder(name);
  const nodesReady = isRunning(record) ? await readyNodes(kubeconfig) : undefined;
  const state = !isRunning(record) ? "stopped" : nodesReady === undefined ? "silent" : "running";
  return { name, kind, state, nodes, nodesReady: nodesReady ?? 0, server, kubeconfig, simulated, flowUI };
}

/** Asked of the cluster itself; undefined when it does not answer. */
async function readyNodes(kubeconfig: string): Promise<number | undefined> {
  const client = createClient(httpsTransport(loadConnection({ kubeconfig })), { userAgent: "vendorctl" });
  try {
    const { items } = await client.list<Node>(NODES);
    return items.filter((node) =>
      node.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True"),
    ).length;
  } catch {
    return undefined;
  } finally {
    client.close();
  }
}

export async function kubeconfig({ name }: { name: string }): Promise<string> {
  const folder = new ClusterFolder(name);
  if (!folder.read()) throw errors.CLUSTER_NOT_FOUND(name);
  return folder.kubeconfig;
}

/** The release before this one, to be installed and upgraded from. */
export function releaseBefore(): Promise<ReleaseBefore> {
  return writeReleaseBefore(join(stateDirectory(), "releases"));
}

export async function* logs(options: {
  name: string;
  tail?: number;
  follow: boolean;
  signal: AbortSignal;
}): AsyncIterable<string> {
  const folder = new ClusterFolder(options.name);
  if (!folder.read()) throw errors.CLUSTER_NOT_FOUND(options.name);
  yield* followFile(folder.log, options);
}

import { mkdtemp, rm } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createClusterKeys } from "../src/local/certificates.ts";
import { CLUSTER_NODE_FLAGS } from "../src/local/node-flags.ts";
import { type Figures, measure } from "./apiserver/measure.ts";
import { realCluster } from "./apiserver/real-cluster.ts";
import { ServerProcess, serve } from "./apiserver/server-process.ts";
import { median, type Row } from "./run.ts";

/** A real API server with its etcd, measured on two cores of this size. */
const REAL = { creates: 280, gets: 960, watchP50: 9, memory: 370 };
const STARTS = 3;

interface Measured extends Figures {
  readyMs: number;
  memory: { ready: number; pods: number; after: number; peak: number };
  /** How many cores something else kept busy meanwhile: what to think of the rates. */
  otherCores: number;
}

/** The API server over HTTPS with client certificates, in a process of its own: with a data directory, and without. */
export async function run(): Promise<Row[]> {
  if (process.argv[2] === "serve") {
    await serve();
    process.exit();
  }
  const workDir = await mkdtemp(join(tmpdir(), "bench-apiserver-"));
  try {
    const durable = await measureOurs(join(workDir, "data"));
    const inMemory = await measureOurs(undefined);
    const real = await realCluster();
    return rows(
      durable,
      inMemory,
      real ? await measure(real, { loaded: () => {}, cpuMs: () => Number.NaN }) : undefined,
    );
  } finally {
    await rm(workDir, { recursive: true });
  }
}

async function measureOurs(dataDir: string | undefined): Promise<Measured> {
  const program = fileURLToPath(import.meta.url);
  const keys = createClusterKeys(["localhost", "127.0.0.1"], new Date());
  const starts: number[] = [];
  for (let i = 1; i < STARTS; i++) {
    const server = await ServerProcess.start(program, { keys, dataDir }, CLUSTER_NODE_FLAGS);
    starts.push(server.readyMs);
    await server.stop();
  }
  const server = await ServerProcess.start(program, { keys, dataDir }, CLUSTER_NODE_FLAGS);
  starts.push(server.readyMs);
  const memory = { ready: server.memory().now, pods: 0 };
  const othersBefore = othersMs(server);
  const begun = performance.now();
  const figures = await measure(server.endpoint, {
    loaded: () => {
      memory.pods = server.memory().now;
    },
    cpuMs: () => server.cpuMs(),
  });
  const otherCores = (othersMs(server) - othersBefore) / (performance.now() - begun);
  const { now: after, peak } = server.memory();
  await server.stop();
  return { ...figures, readyMs: median(starts), memory: { ...memory, after, peak }, otherCores };
}

/** CPU time this machine has spent on neither the server nor its client. */
function othersMs(server: ServerProcess): number {
  const busy = cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0);
  const { user, system } = process.cpuUsage();
  return busy - server.cpuMs() - (user + system) / 1e3;
}

function rows(durable: Measured, inMemory: Measured, real: Figures | undefined): Row[] {
  const beside = (value: number | undefined) =>
    value === undefined ? {} : { beside: { name: "API server + etcd", value } };
  const told = { ...REAL, ...real } as Partial<Figures> & typeof REAL;
  const both = (name: string, unit: string, key: keyof Figures): Row[] => [
    { name, value: durable[key], unit, ...beside(told[key]) },
    { name: `${name}, no data directory`, value: inMemory[key], unit, ...beside(told[key]) },
  ];
  const cpu = (name: string, value: number): Row => ({ name: `CPU of the server for ${name}`, value, unit: "µs" });
  const memory = (name: string, key: keyof Measured["memory"]): Row => {
    return { name: `memory ${name}`, value: durable.memory[key], unit: "MB", ...beside(REAL.memory) };
  };
  return [
    ...both("creates, 32 at once", "1/s", "creates"),
    ...both("updates, 32 at once", "1/s", "updates"),
    ...both("gets, 32 at once", "1/s", "gets"),
    cpu("a create", durable.createCpuUs),
    cpu("an update", durable.updateCpuUs),
    cpu("a get", durable.getCpuUs),
    ...both("list of 10,000 pods", "ms", "listMs"),
    ...both("list of 10,000 pods", "MB/s", "listMBps"),
    ...both("list of 10,000 pods by 500", "ms", "pagedMs"),
    { name: "size of a pod", value: durable.podBytes, unit: "B" },
    ...both("write to 200 watchers, p50", "ms", "watchP50"),
    ...both("write to 200 watchers, p99", "ms", "watchP99"),
    memory("when ready", "ready"),
    memory("with 10,000 pods", "pods"),
    memory("after all of it", "after"),
    memory("at its highest", "peak"),
    {
      name: "memory at its highest, no data directory",
      value: inMemory.memory.peak,
      unit: "MB",
      ...beside(REAL.memory),
    },
    { name: "start to ready", value: durable.readyMs, unit: "ms" },
    {
      name: "cores busy with something else",
      value: (durable.otherCores + inMemory.otherCores) / 2,
      unit: `of ${cpus().length}`,
    },
  ];
}

import { readdirSync, readFileSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { createMetrics, type Metrics } from "./metrics.ts";

/** How exactly the event loop is watched: a timer so often. */
const RESOLUTION_MS = 50;
const NS = 1e9;
const US = 1e6;

/** Metrics of a program, with those of its process, which are read at each scrape. */
export function programMetrics(): Metrics {
  const metrics = createMetrics();
  const refresh = processMetrics(metrics);
  return {
    ...metrics,
    text() {
      refresh();
      return metrics.text();
    },
  };
}

/** Under the names that Prometheus' client libraries give them, so that dashboards of others show them. Returns what reads them. */
export function processMetrics(metrics: Metrics): () => void {
  const cpu = metrics.counter("process_cpu_seconds_total", "Processor time of the process, of user and system.");
  const started = metrics.gauge("process_start_time_seconds", "When the process started, in seconds since the epoch.");
  const resident = metrics.gauge("process_resident_memory_bytes", "Resident memory of the process.");
  const virtual = metrics.gauge("process_virtual_memory_bytes", "Virtual memory of the process.");
  const openFds = metrics.gauge("process_open_fds", "Open file descriptors of the process.");
  const maxFds = metrics.gauge("process_max_fds", "How many file descriptors the process may have open.");
  const heapTotal = metrics.gauge("nodejs_heap_size_total_bytes", "Size of the JavaScript heap.");
  const heapUsed = metrics.gauge("nodejs_heap_size_used_bytes", "Used part of the JavaScript heap.");
  const external = metrics.gauge("nodejs_external_memory_bytes", "Memory of buffers, outside the JavaScript heap.");
  const lagMean = metrics.gauge(
    "nodejs_eventloop_lag_mean_seconds",
    "Mean delay of the event loop since the last scrape.",
  );
  const lagMost = metrics.gauge(
    "nodejs_eventloop_lag_max_seconds",
    "Longest delay of the event loop since the last scrape.",
  );
  const lagP99 = metrics.gauge(
    "nodejs_eventloop_lag_p99_seconds",
    "Delay of the event loop since the last scrape that 99 of 100 turns stay below.",
  );
  const version = metrics.gauge("nodejs_version_info", "1, with the version of Node.");
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delays.enable();
  // Each measurement has the time that was waited for in it. Without one there is none: the mean is not a number then.
  const lag = (ns: number) => (Number.isFinite(ns) ? Math.max(0, ns / NS - RESOLUTION_MS / 1_000) : 0);
  return () => {
    const { user, system } = process.cpuUsage();
    cpu.copy((user + system) / US);
    started.set(Math.round(Date.now() / 1000 - process.uptime()));
    const memory = process.memoryUsage();
    resident.set(memory.rss);
    heapTotal.set(memory.heapTotal);
    heapUsed.set(memory.heapUsed);
    external.set(memory.external);
    const bytes = virtualMemory(readOwn("status"));
    if (bytes !== undefined) virtual.set(bytes);
    const most = openFilesLimit(readOwn("limits"));
    if (most !== undefined) maxFds.set(most);
    openFds.set(openFiles());
    lagMean.set(lag(delays.mean));
    lagMost.set(lag(delays.max));
    lagP99.set(lag(delays.percentile(99)));
    delays.reset();
    version.set(1, { version: process.version });
  };
}

function readOwn(file: "status" | "limits"): string {
  try {
    return readFileSync(`/proc/self/${file}`, "utf8");
  } catch {
    // No Linux, as a laptop's: then there is no such metric.
    return "";
  }
}

function openFiles(): number {
  try {
    return readdirSync("/proc/self/fd").length;
  } catch {
    return 0;
  }
}

function virtualMemory(status: string): number | undefined {
  const kibibytes = /^VmSize:\s+(\d+) kB$/m.exec(status)?.[1];
  return kibibytes === undefined ? undefined : Number(kibibytes) * 1024;
}

function openFilesLimit(limits: string): number | undefined {
  const soft = /^Max open files\s+(\d+)/m.exec(limits)?.[1];
  return soft === undefined ? undefined : Number(soft);
}

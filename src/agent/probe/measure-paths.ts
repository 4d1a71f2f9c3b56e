import type { TrafficSnapshot } from "../../api/protocol/traffic-report.ts";
import type { MeasuredPath } from "./measured-path.ts";
import { MeasuredTcp } from "./measured-tcp.ts";
import { MeasuredUdp } from "./measured-udp.ts";
import { PauseMeter } from "./pause-meter.ts";

/** A way with its name, and the ports of a probe's server at its end. */
export interface PathToMeasure {
  path: string;
  host: string;
  tcp: number;
  udp: number;
}

export interface MeasureOptions {
  /** Milliseconds between two messages of a kept connection, two connections that come and go, and two snapshots. */
  every: number;
  churn: number;
  report: number;
  onSnapshot(snapshot: TrafficSnapshot): void;
  signal: AbortSignal;
}

/**
 * Sends over every path, by TCP and UDP, until it is stopped: a long-lived connection with a message every few milliseconds, and new ones
 * as well. It keeps counts and nothing else, so it may run for days.
 */
export async function measurePaths(ways: readonly PathToMeasure[], options: MeasureOptions): Promise<void> {
  const began = performance.now();
  const awake = new PauseMeter(options.every, began);
  const measured: MeasuredPath[] = ways.flatMap(({ path: way, host, tcp, udp }) => [
    new MeasuredTcp({ path: way, host, port: tcp }, awake),
    new MeasuredUdp({ path: way, host, port: udp }, awake),
  ]);
  const report = () => {
    const now = performance.now();
    options.onSnapshot({ seconds: Math.round((now - began) / 100) / 10, rows: measured.map((one) => one.row(now)) });
  };
  const timers = [
    setInterval(() => {
      const now = performance.now();
      awake.note(now);
      for (const one of measured) one.tick(now);
    }, options.every),
    setInterval(() => {
      for (const one of measured) one.churn();
    }, options.churn),
    setInterval(report, options.report),
  ];
  await new Promise<void>((resolve) => {
    if (options.signal.aborted) resolve();
    else options.signal.addEventListener("abort", () => resolve(), { once: true });
  });
  for (const timer of timers) clearInterval(timer);
  report();
  for (const one of measured) one.close();
}

import { gzipSync } from "node:zlib";
import type { FlowBatch } from "../../api/protocol/flow.ts";
import { type Backoff, backoffDelay } from "../../kit/backoff.ts";
import { type Clock, sleep } from "../../kit/clock.ts";
import type { Log } from "../../kit/log.ts";
import type { Metrics } from "../../kit/metrics.ts";
import type { ExportProgress, Position } from "./export-progress.ts";
import { logsRequest, recordEncoder } from "./log-records.ts";
import type { OtlpSender } from "./otlp-sender.ts";

export interface FlowExportParts {
  sender: OtlpSender;
  progress: ExportProgress;
  version: string;
  clock: Clock;
  log: Log;
  metrics: Metrics;
  limits?: Partial<ExportLimits>;
}

export interface ExportLimits {
  /** Of rows that are not encoded yet; of requests that wait, in bytes. */
  rows: number;
  waitingBytes: number;
  /** Of one request, before it is compressed. */
  requestBytes: number;
  /** Until a request that is not full is sent. */
  lingerMs: number;
}

export interface ExportState {
  sent: number;
  dropped: number;
  waiting: number;
  /** Why the last attempt failed, and since when they fail; absent: it did not. */
  failure?: { why: string; since: number };
  /** Why the collector took some records not, the last time. */
  refusal?: string;
}

interface Request {
  body: Buffer;
  records: number;
  positions: Position[];
}

const LIMITS: ExportLimits = {
  rows: 200_000,
  waitingBytes: 64 * 2 ** 20,
  requestBytes: 512 * 1024,
  lingerMs: 2_000,
};
const BACKOFF: Backoff = { initialMs: 1_000, maxMs: 30_000, jitter: 0.5 };
const SAVED_MS = 15_000;
/** Rows that are encoded before others get their turn. */
const AT_A_TIME = 200;
const LAST_WORDS_MS = 3_000;
const LONGEST_SLEEP_MS = 60_000;

/**
 * Sends each row once it is in the store to a collector, in the order it came. What the collector does not take waits, compressed, and the oldest is
 * dropped and counted when that is too much. Where it is, is written down: a restart goes on from there.
 */
export class FlowExport {
  readonly #parts: FlowExportParts;
  readonly #limits: ExportLimits;
  #batches: FlowBatch[] = [];
  #rows = 0;
  #records: Buffer[] = [];
  #recordBytes = 0;
  #openedAt = 0;
  #positions: Position[] = [];
  #waiting: Request[] = [];
  #waitingBytes = 0;
  #waitingRecords = 0;
  #inFlight: Request | undefined;
  #sent = 0;
  #dropped = 0;
  #failure: ExportState["failure"];
  #refusal: string | undefined;
  #wake: () => void = () => undefined;
  #wakeSender: () => void = () => undefined;
  readonly #counts: ReturnType<typeof exportMetrics>;

  constructor(parts: FlowExportParts) {
    this.#parts = parts;
    this.#limits = { ...LIMITS, ...parts.limits };
    this.#counts = exportMetrics(parts.metrics);
  }

  state(): ExportState {
    return {
      sent: this.#sent,
      dropped: this.#dropped,
      waiting: this.#rows + this.#records.length + this.#waitingRecords,
      ...(this.#failure && { failure: this.#failure }),
      ...(this.#refusal && { refusal: this.#refusal }),
    };
  }

  /** A batch that was added to the store. */
  offer(batch: FlowBatch): void {
    if (batch.rows.length === 0) return;
    this.#batches.push(batch);
    this.#rows += batch.rows.length;
    while (this.#rows > this.#limits.rows && this.#batches.length > 1) {
      const { rows } = this.#batches.shift() as FlowBatch;
      this.#rows -= rows.length;
      this.#drop(rows.length, "overflow");
    }
    this.#wake();
  }

  /** Until the program ends. */
  async run(signal: AbortSignal): Promise<void> {
    const wake = () => {
      this.#wake();
      this.#wakeSender();
    };
    signal.addEventListener("abort", wake, { once: true });
    await this.#load(signal);
    await Promise.all([this.#encoding(signal), this.#sending(signal), this.#saving(signal)]);
    await this.#save(AbortSignal.timeout(LAST_WORDS_MS));
    this.#parts.sender.close();
  }

  async #load(signal: AbortSignal): Promise<void> {
    const { progress, clock, log } = this.#parts;
    for (let failures = 1; !signal.aborted; failures++) {
      try {
        return await progress.load(signal);
      } catch (error) {
        if (!signal.aborted) log.warn({ error }, "how far flows were exported could not be read");
      }
      await sleep(clock, backoffDelay(BACKOFF, failures, Math.random()), signal);
    }
  }

  async #encoding(signal: AbortSignal): Promise<void> {
    const { clock, progress } = this.#parts;
    while (!signal.aborted) {
      const batch = this.#batches[0];
      if (!batch) {
        const came = new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        const left = this.#records.length > 0 ? this.#openedAt + this.#limits.lingerMs - clock.now() : Number.MAX_VALUE;
        const lingering = new AbortController();
        await Promise.race([came, sleep(clock, Math.max(0, Math.min(left, LONGEST_SLEEP_MS)), lingering.signal)]);
        lingering.abort();
        if (this.#openedAt + this.#limits.lingerMs <= clock.now()) this.#pack();
        continue;
      }
      this.#batches.shift();
      if (progress.isNew(batch)) await this.#encode(batch);
      this.#rows -= batch.rows.length;
    }
  }

  async #encode(batch: FlowBatch): Promise<void> {
    const record = recordEncoder(batch, this.#parts.clock.now());
    for (const [index, row] of batch.rows.entries()) {
      const content = record(row, index);
      if (this.#records.length === 0) this.#openedAt = this.#parts.clock.now();
      this.#records.push(content);
      this.#recordBytes += content.length;
      if (this.#recordBytes >= this.#limits.requestBytes) this.#pack();
      if (index % AT_A_TIME === AT_A_TIME - 1) await new Promise((resolve) => setImmediate(resolve));
    }
    const { node, boot, interval } = batch;
    this.#positions.push({ node, boot, interval });
    if (this.#records.length === 0) this.#waiting.at(-1)?.positions.push(...this.#positions.splice(0));
  }

  #pack(): void {
    if (this.#records.length === 0) return;
    const body = gzipSync(logsRequest(this.#records, this.#parts.version), { level: 4 });
    this.#waiting.push({ body, records: this.#records.length, positions: this.#positions });
    this.#waitingBytes += body.length;
    this.#waitingRecords += this.#records.length;
    [this.#records, this.#recordBytes, this.#positions] = [[], 0, []];
    while (this.#waitingBytes > this.#limits.waitingBytes) {
      const oldest = this.#waiting.find((request) => request !== this.#inFlight);
      if (!oldest || oldest === this.#waiting.at(-1)) break;
      this.#drop(oldest.records, "overflow");
      this.#done(oldest);
    }
    this.#counts.waiting.set(this.#waitingBytes);
    this.#wakeSender();
  }

  async #sending(signal: AbortSignal): Promise<void> {
    let failures = 0;
    while (!signal.aborted) {
      const request = this.#waiting[0];
      if (!request) {
        await new Promise<void>((resolve) => {
          this.#wakeSender = resolve;
        });
        continue;
      }
      this.#inFlight = request;
      const waitMs = await this.#attempt(request, signal);
      this.#inFlight = undefined;
      failures = waitMs === undefined ? 0 : failures + 1;
      if (waitMs === undefined) continue;
      await sleep(this.#parts.clock, Math.max(waitMs, backoffDelay(BACKOFF, failures, Math.random())), signal);
    }
  }

  /** How long to wait at least before the next attempt; undefined: there is none. */
  async #attempt(request: Request, signal: AbortSignal): Promise<number | undefined> {
    const { sender, clock, log } = this.#parts;
    const delivery = await sender.send(request.body, signal);
    if (signal.aborted && delivery.kind === "failed") return 0;
    this.#counts.requests.add({ result: delivery.kind });
    if (delivery.kind === "failed") {
      if (!this.#failure) log.warn({ why: delivery.why }, "flows cannot be exported");
      this.#failure = { why: delivery.why, since: this.#failure?.since ?? clock.now() };
      return delivery.waitMs ?? 0;
    }
    if (this.#failure) log.info({}, "flows are exported again");
    this.#failure = undefined;
    const rejected = delivery.kind === "refused" ? request.records : Math.min(delivery.rejected, request.records);
    if (rejected > 0) {
      this.#refusal = delivery.why || "the collector says not why";
      log.warn({ why: this.#refusal, records: rejected }, "the collector refused flows");
      this.#drop(rejected, "refused");
    }
    this.#sent += request.records - rejected;
    this.#counts.records.add({}, request.records - rejected);
    this.#done(request);
    return undefined;
  }

  #done(request: Request): void {
    this.#waiting.splice(this.#waiting.indexOf(request), 1);
    this.#waitingBytes -= request.body.length;
    this.#waitingRecords -= request.records;
    this.#counts.waiting.set(this.#waitingBytes);
    for (const position of request.positions) this.#parts.progress.mark(position);
  }

  #drop(records: number, reason: "overflow" | "refused"): void {
    this.#dropped += records;
    this.#counts.dropped.add({ reason }, records);
  }

  async #saving(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(this.#parts.clock, SAVED_MS, signal);
      if (!signal.aborted) await this.#save(signal);
    }
  }

  async #save(signal: AbortSignal): Promise<void> {
    try {
      await this.#parts.progress.save(signal);
    } catch (error) {
      this.#parts.log.warn({ error }, "how far flows are exported could not be written");
    }
  }
}

/** With those of vendor-flow-logs. */
export function exportMetrics(metrics: Metrics) {
  return {
    records: metrics.counter("vendor_flow_logs_exported_records_total", "Flows that a collector took, by OTLP."),
    dropped: metrics.counter(
      "vendor_flow_logs_export_dropped_records_total",
      "Flows that were not exported: too many waited, or the collector refused them.",
    ),
    requests: metrics.counter("vendor_flow_logs_export_requests_total", "Requests to the collector, by their result."),
    waiting: metrics.gauge("vendor_flow_logs_export_waiting_bytes", "Compressed requests that wait for the collector."),
  };
}

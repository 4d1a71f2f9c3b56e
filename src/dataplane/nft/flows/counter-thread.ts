import { Worker } from "node:worker_threads";
import type { ConnectionSockets } from "../../../kernel/conntrack/connection-counts.ts";
import { errors } from "../errors.ts";
import type { SweepRequest, Swept } from "./flow-counter.ts";

export const EVENTS_MS = 100;

export interface CounterOptions {
  /** Another thread opened them, and closes them. */
  sockets: ConnectionSockets;
  directory: string;
  /** Our table of nftables. */
  table: string;
}

export interface CounterOrder {
  id: number;
  /** It is the last. */
  close?: true;
  load?: true;
  read?: SweepRequest;
  commit?: { texts: readonly string[]; next: number | undefined };
}

export interface CounterAnswer {
  id: number;
  result?: unknown;
  failed?: string;
}

interface Waiting {
  resolve(result: unknown): void;
  reject(error: Error): void;
}

/** A counter in a thread: reading a million entries takes seconds. */
export class CounterThread {
  private readonly worker: Worker;
  private readonly waiting = new Map<number, Waiting>();
  private orders = 0;
  private ended: Error | undefined;

  constructor(file: URL, options: CounterOptions) {
    this.worker = new Worker(file, { workerData: options });
    this.worker.unref();
    this.worker.on("message", ({ id, result, failed }: CounterAnswer) => {
      const waiting = this.waiting.get(id);
      this.waiting.delete(id);
      if (failed === undefined) waiting?.resolve(result);
      else waiting?.reject(errors.NFT_FLOWS_NOT_COUNTED(failed));
    });
    this.worker.on("error", (error) => this.end(error.message));
    this.worker.on("exit", () => this.end("its thread has ended"));
  }

  /** Whether an earlier life counted. */
  async load(): Promise<boolean> {
    return (await this.order({ load: true })) as boolean;
  }

  async read(read: SweepRequest): Promise<Swept> {
    return (await this.order({ read })) as Swept;
  }

  async commit(texts: readonly string[], next: number | undefined): Promise<void> {
    await this.order({ commit: { texts, next } });
  }

  /**
   * After what it is doing, and not before: a thread that is ended in the middle of a call of the kernel ends the whole process. What it has on disk
   * is whole at any moment.
   */
  async close(): Promise<void> {
    if (this.ended) return;
    this.worker.ref();
    const gone = new Promise((resolve) => this.worker.once("exit", resolve));
    this.worker.postMessage({ id: 0, close: true } satisfies CounterOrder);
    await gone;
  }

  private end(why: string): void {
    this.ended ??= errors.NFT_FLOWS_NOT_COUNTED(why);
    for (const { reject } of this.waiting.values()) reject(this.ended);
    this.waiting.clear();
  }

  private order(order: Omit<CounterOrder, "id">): Promise<unknown> {
    if (this.ended) return Promise.reject(this.ended);
    const id = ++this.orders;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.worker.postMessage({ id, ...order });
    });
  }
}

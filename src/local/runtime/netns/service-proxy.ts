import type { Client } from "../../../cluster/client.ts";
import { createInformer, type Informer } from "../../../cluster/informer.ts";
import { ENDPOINT_SLICES, SERVICES } from "../../../cluster/kinds.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import type { NftPort } from "../../../kernel/nft-port.ts";
import type { Log } from "../../../kit/log.ts";
import type { EndpointSlice, Service } from "../../controllers/workload-types.ts";
import type { Machine } from "./machine.ts";
import { serviceRules } from "./service-rules.ts";

/** Stands in for the service proxy on all nodes that have one: one watch, however many nodes. */
export class ServiceProxy {
  readonly #kernel: Kernel;
  readonly #log: Log;
  readonly #services: Informer<Service>;
  readonly #slices: Informer<EndpointSlice>;
  readonly #tables = new Map<Machine, NftPort>();
  #synced = false;
  #due = false;
  #writing: Promise<void> = Promise.resolve();

  constructor(kernel: Kernel, client: Client, log: Log) {
    this.#kernel = kernel;
    this.#log = log;
    this.#services = createInformer<Service>(client, SERVICES);
    this.#slices = createInformer<EndpointSlice>(client, ENDPOINT_SLICES);
    void Promise.all([this.#services.synced, this.#slices.synced]).then(() => {
      this.#synced = true;
      this.#changed();
    });
    this.#services.onChange(() => this.#changed());
    this.#slices.onChange(() => this.#changed());
  }

  /** Like the service proxies people have, it leaves its rules when it stops: connections go on, and nobody updates them. */
  serve(machine: Machine): () => Promise<void> {
    this.#tables.set(machine, this.#kernel.nft(machine.netns));
    this.#changed();
    return async () => {
      await this.#writing;
      this.#tables.get(machine)?.close();
      this.#tables.delete(machine);
    };
  }

  async stop(): Promise<void> {
    await Promise.all([this.#services.stop(), this.#slices.stop()]);
    await this.#writing;
    for (const table of this.#tables.values()) table.close();
    this.#tables.clear();
  }

  /** A burst of news is worth one look. */
  #changed(): void {
    if (this.#due || !this.#synced) return;
    this.#due = true;
    this.#writing = this.#writing.then(() => this.#write());
  }

  async #write(): Promise<void> {
    await new Promise((soon) => setImmediate(soon));
    this.#due = false;
    const rules = serviceRules(this.#services.list(), this.#slices.list());
    for (const [machine, table] of this.#tables) {
      try {
        await table.run(rules);
      } catch (error) {
        this.#log.error({ error, node: machine.spec.name }, "the rules of services were refused");
      }
    }
  }
}

import type { Server } from "node:http";
import { HealthCheckPorts, healthCheckedServices, type ListenOnNode } from "../../../../agent/health-check-ports.ts";
import { serveProxyHealth } from "../../../../agent/kube-proxy-health.ts";
import { vendorNames } from "../../../../api/names.ts";
import { type KubeObject, parseGroupVersion } from "../../../../api/object.ts";
import type { ProxySettings } from "../../../../api/protocol/kube-proxy-mode.ts";
import { createCalculator } from "../../../../calc/calculator.ts";
import type { ServicePort } from "../../../../calc/model.ts";
import { removeProxyRules } from "../../../../dataplane/kube-proxy/remove-proxy-rules.ts";
import type { Kernel } from "../../../../kernel/kernel.ts";
import type { Netns } from "../../../../kernel/netns/netns-port.ts";
import type { Clock } from "../../../../kit/clock.ts";
import type { Log } from "../../../../kit/log.ts";
import type { Machine } from "../machine.ts";
import type { ProxyNode } from "./proxy-node.ts";
import { iptablesWriter, nftablesWriter, type ServiceRulesWriter } from "./service-writers.ts";
import { deleteStaleConntrack } from "./stale-conntrack.ts";

export interface NodeProxyOptions {
  kernel: Kernel;
  machine: Pick<Machine, "spec" | "netns" | "run">;
  clock: Clock;
  log: Log;
  mode: ProxySettings["mode"];
  clusterCidrs: readonly string[];
  isNodeEligible(): boolean;
}

/** How often the proxy looks whether its rules are still there. In nftables mode kube-proxy does not: it writes them again with the next change of a Service. */
const POLL_MS = 30_000;
const RETRY_MS = 1_000;

/** The service proxy of one node: what the model says of services, written as such a proxy writes it. */
export class NodeProxy {
  readonly #options: NodeProxyOptions;
  readonly #calculator;
  readonly #rows = new Map<string, ServicePort>();
  readonly #writer: ServiceRulesWriter;
  readonly #health: HealthCheckPorts;
  readonly #stopping = new AbortController();
  #healthPort: Promise<void> = Promise.resolve();
  #turn: Promise<void> = Promise.resolve();
  #due = false;
  #running = false;
  #failed = false;
  #lastWritten = 0;

  constructor(options: NodeProxyOptions) {
    const { kernel, machine, mode, clusterCidrs, log } = options;
    this.#options = options;
    this.#calculator = createCalculator(machine.spec.name, vendorNames, { unguardedServices: true });
    const node: ProxyNode = { clusterCidrs, addresses: machine.spec.internalIPs };
    // Without the kernel's own balancer, which the third mode needs, services are served all the same.
    this.#writer =
      mode === "iptables"
        ? iptablesWriter((command, input = "") => machine.run(command, { input }), node)
        : nftablesWriter(kernel.nft(machine.netns), node);
    const listen = listenIn(kernel, machine.netns);
    this.#health = new HealthCheckPorts({ listen, healthy: () => !this.#failed, log });
  }

  set(object: KubeObject): void {
    this.#calculator.set(object);
    this.#changed();
  }

  remove({ apiVersion, kind, metadata }: KubeObject): void {
    this.#calculator.remove({ group: parseGroupVersion(apiVersion).group, kind }, metadata);
    this.#changed();
  }

  /** After the first full sync. */
  start(): void {
    const { kernel, machine, clock, log, mode, isNodeEligible } = this.#options;
    this.#running = true;
    this.#calculator.inSync();
    this.#changed();
    if (mode !== "nftables") this.#look();
    this.#healthPort = serveProxyHealth({
      ...{ clock, log, signal: this.#stopping.signal, listen: listenIn(kernel, machine.netns) },
      state: () => ({
        lastUpdated: this.#lastWritten,
        healthy: !this.#failed && this.#lastWritten > 0,
        nodeEligible: isNodeEligible(),
      }),
    });
  }

  async stop(): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    this.#stopping.abort();
    await this.#turn;
    await Promise.all([this.#healthPort, this.#health.close()]);
    this.#writer.close();
  }

  /** A burst of news is worth one look. */
  #changed(): void {
    if (this.#due || !this.#running || this.#stopping.signal.aborted) return;
    this.#due = true;
    this.#turn = this.#turn.then(() => this.#write());
  }

  async #write(): Promise<void> {
    await new Promise((soon) => setImmediate(soon));
    this.#due = false;
    if (this.#stopping.signal.aborted) return;
    const changes = this.#calculator.takeDelta()?.services;
    if (!changes && !this.#failed && this.#lastWritten > 0) return;
    for (const row of changes?.set ?? []) this.#rows.set(row.id, row);
    for (const id of changes?.remove ?? []) this.#rows.delete(id);
    if (changes && changes.set.length + changes.remove.length === 0 && !this.#failed && this.#lastWritten > 0) return;
    await this.#put();
  }

  async #put(): Promise<void> {
    const { machine, kernel, clock, log } = this.#options;
    try {
      await this.#writer.write(this.#rows);
      if (this.#lastWritten === 0) await this.#takeOver();
      this.#failed = false;
      this.#lastWritten = clock.now();
      const conntrack = kernel.conntrack(machine.netns);
      await deleteStaleConntrack(conntrack, this.#rows.values()).finally(() => conntrack.close());
    } catch (error) {
      if (!this.#failed) log.error({ error, node: machine.spec.name }, "the rules of services were refused");
      this.#failed = true;
      this.#later(() => this.#changed(), RETRY_MS);
    }
    await this.#health.update(healthCheckedServices(this.#rows.values()));
  }

  /** Rules of another mode would match first, and are never updated. */
  async #takeOver(): Promise<void> {
    const { kernel, machine, mode } = this.#options;
    const others = mode === "iptables" ? "nftables" : "iptables";
    await removeProxyRules({ kernel, netns: machine.netns, mode: others });
  }

  /** Rules that were removed are written again: kube-proxy knows no other owner of them. */
  #look(): void {
    this.#later(() => {
      this.#turn = this.#turn.then(async () => {
        if (this.#stopping.signal.aborted) return;
        if (await this.#writer.areRemoved().catch(() => false)) await this.#put();
      });
      this.#look();
    }, POLL_MS);
  }

  #later(act: () => void, ms: number): void {
    const { signal } = this.#stopping;
    const cancel = this.#options.clock.setTimeout(() => {
      signal.removeEventListener("abort", cancel);
      act();
    }, ms);
    signal.addEventListener("abort", cancel, { once: true });
  }
}

/** A server of this process that answers in a node's network. */
function listenIn(kernel: Kernel, netns: Netns): ListenOnNode {
  return (server: Server, port: number) =>
    new Promise((resolve, reject) => {
      const fd = kernel.netns.bind(netns, { kind: "stream", address: "::", port });
      server.once("error", reject).listen({ fd }, () => {
        server.off("error", reject);
        resolve();
      });
    });
}

import { isNodeEligible } from "../../../../agent/kube-proxy-health.ts";
import { vendorNames } from "../../../../api/names.ts";
import type { KubeObject } from "../../../../api/object.ts";
import { type ProxySettings, readYaml, serviceProxySettings } from "../../../../api/protocol/kube-proxy-mode.ts";
import type { Client } from "../../../../cluster/client.ts";
import { createInformer, type Informer } from "../../../../cluster/informer.ts";
import { CONFIG_MAPS, ENDPOINT_SLICES, NODES, SERVICES } from "../../../../cluster/kinds.ts";
import type { Kernel } from "../../../../kernel/kernel.ts";
import type { Clock } from "../../../../kit/clock.ts";
import type { Log } from "../../../../kit/log.ts";
import type { Pod } from "../../../controllers/workload-types.ts";
import type { Machine } from "../machine.ts";
import { NodeProxy } from "./service-node-proxy.ts";

export interface ServiceProxyOptions {
  kernel: Kernel;
  client: Client;
  clock: Clock;
  log: Log;
}

/** The service proxy of all nodes that have one: one watch, however many nodes; each node its own rules. */
export class ServiceProxy {
  readonly #options: ServiceProxyOptions;
  readonly #informers: Informer<KubeObject>[];
  readonly #nodes: Informer<KubeObject>;
  readonly #proxies = new Set<NodeProxy>();
  readonly #synced: Promise<unknown>;

  constructor(options: ServiceProxyOptions) {
    const { client } = options;
    this.#options = options;
    this.#nodes = createInformer<KubeObject>(client, NODES);
    this.#informers = [this.#nodes, createInformer(client, SERVICES), createInformer(client, ENDPOINT_SLICES)];
    this.#synced = Promise.all(this.#informers.map(({ synced }) => synced));
  }

  /** Like the real kube-proxy, it leaves its rules when it stops: connections continue, and the rules are no longer updated. */
  serve(machine: Machine, pod: Pod): () => Promise<void> {
    const stopping = new AbortController();
    const serving = this.#serve(machine, pod, stopping.signal).catch((error: unknown) => {
      this.#options.log.error({ error, node: machine.spec.name }, "services are not served");
    });
    return async () => {
      stopping.abort();
      await serving;
    };
  }

  async stop(): Promise<void> {
    await Promise.all(this.#informers.map((informer) => informer.stop()));
    await Promise.all([...this.#proxies].map((proxy) => proxy.stop()));
  }

  async #serve(machine: Machine, pod: Pod, signal: AbortSignal): Promise<void> {
    const settings = await this.#settingsOf(pod);
    await this.#synced;
    if (signal.aborted) return;
    const { name } = machine.spec;
    const proxy = new NodeProxy({
      ...{ ...this.#options, machine, ...settings },
      isNodeEligible: () => isNodeEligible(this.#nodes.get(name)),
    });
    this.#proxies.add(proxy);
    const ends = this.#informers.map((informer) =>
      informer.onChange(({ type, object }) => (type === "deleted" ? proxy.remove(object) : proxy.set(object))),
    );
    proxy.start();
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    for (const end of ends) end();
    this.#proxies.delete(proxy);
    await proxy.stop();
  }

  /** As its pod is configured: by flags, or by a ConfigMap. */
  async #settingsOf({ metadata, spec }: Pod): Promise<{ mode: ProxySettings["mode"]; clusterCidrs: string[] }> {
    const namespace = metadata.namespace ?? vendorNames.namespaces.orchestratorSystem;
    const maps = (await this.#options.client.list<KubeObject>(CONFIG_MAPS, { namespace })).items;
    const workload = { apiVersion: "apps/v1", kind: "DaemonSet", metadata, spec: { template: { spec } } };
    const { mode } = serviceProxySettings(workload as never, maps);
    const words = spec.containers.flatMap(({ command = [], args = [] }) => [...command, ...args]);
    const flag = words.map((word) => /^--cluster-cidr=(.*)$/.exec(word)?.[1]).find((cidr) => cidr !== undefined);
    const written = maps
      .flatMap((map) => Object.values((map["data"] ?? {}) as Record<string, string>))
      .map((text) => readYaml<{ kind?: unknown; clusterCIDR?: unknown }>(text))
      .find((settings) => settings?.kind === "KubeProxyConfiguration")?.clusterCIDR;
    const cidrs = flag ?? (typeof written === "string" ? written : "");
    return { mode, clusterCidrs: cidrs.split(",").filter((cidr) => cidr !== "") };
  }
}

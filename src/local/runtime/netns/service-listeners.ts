import { type AddressInfo, createServer, type Server } from "node:net";
import type { ResolveService } from "../../../apiserver/aggregation.ts";
import type { Store } from "../../../apiserver/storage/store.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import { matchesLabels } from "../../controllers/label-selector.ts";
import { isReady } from "../../controllers/pod-state.ts";
import type { Pod, Service } from "../../controllers/workload-types.ts";
import { portNumber } from "../probes.ts";
import { dial } from "./dial.ts";
import type { NodePod } from "./node-pod.ts";

interface Target {
  pod: NodePod;
  port: number;
}

/**
 * The API server is on this machine and pods are on their nodes' networks: a port of loopback for each service it calls, whose connections
 * go on from the node of a ready pod.
 */
export class ServiceListeners {
  readonly #kernel: Kernel;
  readonly #pods: () => Iterable<NodePod>;
  readonly #doors = new Map<string, Server>();
  #closed = false;

  constructor(kernel: Kernel, pods: () => Iterable<NodePod>) {
    this.#kernel = kernel;
    this.#pods = pods;
  }

  resolver(store: () => Store | undefined): ResolveService {
    return (namespace, name, port) => {
      // The API server ends later than its nodes, and still probes what it aggregates.
      if (this.#closed) return undefined;
      const open = store();
      const find = () => open && this.#target(open, namespace, name, port);
      return find() && this.#door(`${namespace}/${name}:${port}`, find);
    };
  }

  close(): void {
    this.#closed = true;
    for (const server of this.#doors.values()) server.close();
  }

  #door(key: string, find: () => Target | undefined): { host: string; port: number } {
    const server = this.#doors.get(key) ?? this.#open(find);
    this.#doors.set(key, server);
    return { host: "127.0.0.1", port: (server.address() as AddressInfo).port };
  }

  /** By a bound socket, since the caller needs its number at once. */
  #open(find: () => Target | undefined): Server {
    const here = this.#kernel.netns.openPath("/proc/self/ns/net");
    const fd = this.#kernel.netns.bind(here, { kind: "stream", address: "127.0.0.1", port: 0 });
    here.close();
    const server = createServer((client) => {
      const target = find();
      const host = target?.pod.podIPs[0] ?? target?.pod.machine.spec.internalIPs[0];
      if (!target || host === undefined) {
        client.destroy();
        return;
      }
      const pod = dial(this.#kernel, target.pod.machine.netns, { host, port: target.port });
      client.on("error", () => pod.destroy()).on("close", () => pod.destroy());
      pod.on("error", () => client.destroy()).on("close", () => client.destroy());
      client.pipe(pod).pipe(client);
    });
    return server.listen({ fd }).unref();
  }

  #target(store: Store, namespace: string, name: string, port: number): Target | undefined {
    const service = read<Service>(store, "/services", namespace, name);
    const asked = service?.spec.ports?.find((one) => one.port === port);
    if (!service?.spec.selector || !asked) return undefined;
    for (const pod of this.#pods()) {
      const { metadata } = pod.pod;
      if (metadata.namespace !== namespace || !matchesLabels(service.spec.selector, metadata.labels)) continue;
      const stored = read<Pod>(store, "/pods", namespace, metadata.name);
      if (!stored || stored.metadata.uid !== metadata.uid || stored.metadata.deletionTimestamp) continue;
      if (!service.spec.publishNotReadyAddresses && !isReady(stored)) continue;
      const ports = stored.spec.containers.map((one) => portNumber(one, asked.targetPort ?? asked.port));
      const found = ports.find((one) => one !== undefined);
      if (found !== undefined) return { pod, port: found };
    }
    return undefined;
  }
}

function read<T>(store: Store, resource: string, namespace: string, name: string): T | undefined {
  const stored = store.get(resource, namespace, name);
  return stored && (JSON.parse(stored.body.toString()) as T);
}

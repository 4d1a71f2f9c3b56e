import type { KubeObject, ResourceKind } from "../../../api/object.ts";
import { groupVersion } from "../../../api/object.ts";
import type { Client } from "../../../cluster/client.ts";
import type { DiscoveredResource } from "../../../cluster/discovery.ts";
import { listWatch } from "../../../cluster/list-watch.ts";
import type { Clock } from "../../../kit/clock.ts";
import type { SharedInformers } from "../shared-informers.ts";
import { type GraphItem, graphItem, itemKey } from "./garbage-graph.ts";

/** Events own nothing, are owned by nothing, and come by the thousand. */
const IGNORED = new Set(["events.", "events.events.k8s.io"]);

export interface MonitorTarget {
  set(item: GraphItem): void;
  remove(key: string): void;
  /** Keys of this resource that the target knows. */
  known(resource: ResourceKind): string[];
  /** A resource has been seen whole for the first time. */
  listed(): void;
}

/** Follows every resource discovery lists, as resources come and go. Keeps only what a graph of owners needs of an object. */
export class GarbageMonitors {
  readonly #client: Client;
  readonly #informers: SharedInformers;
  readonly #target: MonitorTarget;
  readonly #clock: Clock;
  readonly #monitors = new Map<string, { listed: boolean; stop(): Promise<void> | undefined }>();
  #kinds = new Map<string, DiscoveredResource>();

  constructor(client: Client, informers: SharedInformers, target: MonitorTarget, clock: Clock) {
    this.#client = client;
    this.#informers = informers;
    this.#target = target;
    this.#clock = clock;
  }

  /** Every resource that is served has been seen whole: what is not in the graph is then truly not there. */
  get complete(): boolean {
    for (const monitor of this.#monitors.values()) if (!monitor.listed) return false;
    return this.#monitors.size > 0;
  }

  /** Where a kind is served; undefined when it is not, or not now. */
  resourceFor(apiVersion: string, kind: string): ResourceKind | undefined {
    return this.#kinds.get(`${apiVersion} ${kind}`);
  }

  /** Reads discovery again. A resource that is gone from it is no longer watched; what was known of it stays known. */
  async refresh(): Promise<void> {
    const resources = await this.#client.resources();
    this.#kinds = new Map(resources.map((resource) => [`${groupVersion(resource)} ${resource.kind}`, resource]));
    const wanted = new Map<string, DiscoveredResource>();
    for (const resource of resources) {
      const name = `${resource.plural}.${resource.group}`;
      const followable = ["list", "watch", "delete"].every((verb) => resource.verbs.includes(verb));
      if (!followable || IGNORED.has(name) || (wanted.has(name) && !resource.preferred)) continue;
      wanted.set(name, resource);
    }
    for (const [name, monitor] of this.#monitors) {
      if (wanted.has(name)) continue;
      this.#monitors.delete(name);
      await monitor.stop();
    }
    for (const [name, resource] of wanted) if (!this.#monitors.has(name)) this.#follow(name, resource);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#monitors.values()].map((monitor) => monitor.stop()));
    this.#monitors.clear();
  }

  #follow(name: string, resource: ResourceKind): void {
    const shared = this.#informers.following(resource);
    if (shared) {
      const end = shared.onChange(({ type, object }) => this.#take(resource, object, type === "deleted"));
      this.#monitors.set(name, {
        listed: true,
        stop: () => {
          end();
          return undefined;
        },
      });
      return;
    }
    const stopping = new AbortController();
    const monitor = { listed: false, stop: () => stop() };
    const running = listWatch<KubeObject>(
      this.#client,
      resource,
      (finding) => {
        if (finding.found === "all") {
          this.#takeAll(resource, finding.objects);
          const first = !monitor.listed;
          monitor.listed = true;
          if (first) this.#target.listed();
        } else this.#take(resource, finding.object, finding.found === "deleted");
      },
      stopping.signal,
      { clock: this.#clock },
    );
    const stop = async () => {
      stopping.abort();
      await running;
    };
    this.#monitors.set(name, monitor);
  }

  #take(resource: ResourceKind, object: KubeObject, deleted: boolean): void {
    if (deleted) this.#target.remove(itemKey(resource, object.metadata.name, object.metadata.namespace));
    else this.#target.set(graphItem(resource, object));
  }

  #takeAll(resource: ResourceKind, objects: readonly KubeObject[]): void {
    const present = new Set(objects.map(({ metadata }) => itemKey(resource, metadata.name, metadata.namespace)));
    for (const key of this.#target.known(resource)) if (!present.has(key)) this.#target.remove(key);
    for (const object of objects) this.#target.set(graphItem(resource, object));
  }
}

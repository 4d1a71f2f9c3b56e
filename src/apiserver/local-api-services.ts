import { randomUUID } from "node:crypto";
import type { KubeObject } from "../api/object.ts";
import type { ApiService } from "./aggregation.ts";
import { type Core, objectOf, putNow, removeNow, timestamp } from "./core.ts";
import { CUSTOM_PRIORITY, OWN_PRIORITY } from "./discovery.ts";
import { storageKey } from "./registry.ts";
import type { ServedKind } from "./resource.ts";

const AUTOMANAGED = "kube-aggregator.kubernetes.io/automanaged";
const SYSTEM = { name: "system:kube-aggregator", groups: ["system:masters"] };

/** Every group and version served here has an APIService that says so, kept in step with the registry. */
export class LocalApiServices {
  readonly #core: Core;

  constructor(core: Core) {
    this.#core = core;
    core.registry.onChange(() => this.#settle());
    this.#settle();
  }

  #settle(): void {
    const kind = this.#core.registry.find("apiregistration.k8s.io", "v1", "apiservices");
    if (!kind) return;
    const wanted = new Map(this.#core.registry.all().map((served) => [nameOf(served), served]));
    for (const stored of this.#core.store.list(storageKey(kind))) {
      const known = wanted.delete(stored.name);
      if (!known && stored.labels?.[AUTOMANAGED] !== undefined) this.#remove(kind, objectOf(kind, stored));
    }
    for (const [name, served] of wanted) this.#create(kind, name, served);
  }

  #create(kind: ServedKind, name: string, { group, version, custom }: ServedKind): void {
    const now = timestamp(this.#core.now());
    const object: ApiService = {
      apiVersion: "apiregistration.k8s.io/v1",
      kind: "APIService",
      metadata: {
        name,
        uid: randomUUID(),
        creationTimestamp: now,
        labels: { [AUTOMANAGED]: custom ? "true" : "onstart" },
      },
      spec: {
        group,
        version,
        groupPriorityMinimum: custom ? CUSTOM_PRIORITY : OWN_PRIORITY,
        versionPriority: custom ? 100 : 15,
      },
      status: {
        conditions: [
          {
            type: "Available",
            status: "True",
            lastTransitionTime: now,
            reason: "Local",
            message: "Local APIServices are always available",
          },
        ],
      },
    };
    putNow(this.#core, { ...this.#base(kind), operation: "CREATE", object, old: undefined }, "absent");
  }

  #remove(kind: ServedKind, object: KubeObject): void {
    removeNow(
      this.#core,
      { ...this.#base(kind), operation: "DELETE", object, old: object },
      Number(object.metadata.resourceVersion),
    );
  }

  #base(kind: ServedKind) {
    return { kind, subresource: "", user: SYSTEM, dryRun: false } as const;
  }
}

function nameOf({ group, version }: ServedKind): string {
  return group === "" ? `${version}.` : `${version}.${group}`;
}

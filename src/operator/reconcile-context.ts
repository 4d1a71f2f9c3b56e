import { vendorNames } from "../api/names.ts";
import type { KubeObject, ResourceKind } from "../api/object.ts";
import type { Pod, Workload } from "../api/workload-objects.ts";
import { EVENTS, PODS } from "../cluster/kinds.ts";
import { type Applied, type ApplyTools, applyComponent, MANAGER } from "./apply.ts";
import type { Observer } from "./observe.ts";
import type { Observed } from "./observed.ts";
import type { Component } from "./render/inputs.ts";

/** What a reconcile acts with. What it decides from is `Observed`. */
export interface ReconcileContext {
  tools: ApplyTools;
  /** A fresh look, with what was just written. */
  observe(): Observed;
  /** Whether the system namespace can be seen. */
  readonly canSeeNamespace: boolean;
  enterNamespace(): Promise<void>;
  leaveNamespace(): Promise<void>;
  apply(component: Component, wanted: readonly KubeObject[]): Promise<Applied>;
  /**
   * Pods that have addresses eBPF could not carry on. Looked up, not watched: it matters only on the way there. `generation` is
   * that of the installation: a new request for eBPF is evaluated with the pods that exist then.
   */
  podsWithFloatingIPs(generation: number | undefined): Promise<KubeObject[]>;
  lastEvent(pod: Pod): Promise<string | undefined>;
  /** Why the controller of a workload creates no pods: a quota, an admission webhook, PodSecurity, a missing PriorityClass. */
  whyNotCreated(workload: Workload): Promise<string | undefined>;
}

const CACHED_MS = 30_000;

export function createReconcileContext(tools: ApplyTools, observer: Observer): ReconcileContext {
  let looked: { at: number; generation: number | undefined; pods: KubeObject[] } | undefined;
  return {
    tools,
    observe: () => observer.snapshot(),
    get canSeeNamespace() {
      return observer.inside;
    },
    enterNamespace: () => observer.enter(tools.signal),
    leaveNamespace: () => observer.leave(),
    apply: (component, wanted) => applyComponent(tools, component, wanted),
    async podsWithFloatingIPs(generation) {
      const now = observer.snapshot().now;
      const fresh = looked && looked.generation === generation && now - looked.at <= CACHED_MS;
      if (!looked || !fresh) looked = { at: now, generation, pods: await findFloating(tools) };
      return looked.pods;
    },
    lastEvent: (pod) => lastEvent(tools, pod),
    whyNotCreated: (workload) => whyNotCreated(tools, workload, observer.snapshot().now),
  };
}

async function findFloating({ client, signal }: ApplyTools): Promise<KubeObject[]> {
  const found: KubeObject[] = [];
  let next: string | undefined;
  do {
    const page = await client.listPage(PODS, { limit: 500, signal, ...(next ? { continue: next } : {}) });
    found.push(...page.items.filter(({ metadata }) => metadata.annotations?.[vendorNames.annotations.floatingIPs]));
    next = page.continue;
  } while (next !== undefined);
  return found;
}

interface Event extends KubeObject {
  involvedObject?: { kind?: string; name?: string };
  type?: string;
  message?: string;
  lastTimestamp?: string;
  eventTime?: string;
}

async function lastEvent(tools: ApplyTools, pod: Pod): Promise<string | undefined> {
  const { namespace, name } = pod.metadata;
  const [newest] = await warnings(tools, namespace, `involvedObject.name=${name}`);
  return newest && messageOf(newest);
}

/** A controller tries again for as long as pods lack, at first often and later every few minutes. */
const TRIED_WITHIN_MS = 20 * 60_000;

async function whyNotCreated(tools: ApplyTools, workload: Workload, now: number): Promise<string | undefined> {
  const { namespace, name } = workload.metadata;
  const isOfWorkload = ({ involvedObject: { kind, name: owner = "" } = {} }: Event) =>
    kind === workload.kind ? owner === name : kind === "ReplicaSet" && owner.replace(/-[^-]+$/, "") === name;
  const events = await warnings(tools, namespace, "reason=FailedCreate");
  const newest = events.find((event) => isOfWorkload(event) && now - Date.parse(timeOf(event)) < TRIED_WITHIN_MS);
  return newest && messageOf(newest);
}

const timeOf = (event: Event) => event.lastTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp ?? "";
const messageOf = ({ message }: Event) => message?.trim().replace(/\.$/, "");

/** Newest first. Without the right to read events the status says less, but still says it. */
async function warnings(
  { client, signal, log }: ApplyTools,
  namespace: string | undefined,
  fieldSelector: string,
): Promise<Event[]> {
  try {
    const { items } = await client.list<Event>(EVENTS, { namespace, fieldSelector, signal });
    return items.filter(({ type }) => type === "Warning").sort((a, b) => timeOf(b).localeCompare(timeOf(a)));
  } catch (error) {
    log.debug({ namespace, fieldSelector, error }, "cannot read events");
    return [];
  }
}

/** Puts our finalizer on a resource before anything is made for it, so that its removal waits for us. */
export async function keepFinalizer(
  hands: ReconcileContext,
  kind: ResourceKind,
  object: KubeObject,
  finalizer: string,
): Promise<void> {
  const { finalizers = [] } = object.metadata;
  if (!finalizers.includes(finalizer)) await writeFinalizers(hands, kind, object, [...finalizers, finalizer]);
}

export async function dropFinalizer(
  hands: ReconcileContext,
  kind: ResourceKind,
  object: KubeObject,
  finalizer: string,
): Promise<void> {
  const { finalizers = [] } = object.metadata;
  if (!finalizers.includes(finalizer)) return;
  await writeFinalizers(
    hands,
    kind,
    object,
    finalizers.filter((each) => each !== finalizer),
  );
}

/** Not by apply: that would create the resource again if it is gone. The resourceVersion makes sure that no other finalizer is lost. */
async function writeFinalizers(
  { tools }: ReconcileContext,
  kind: ResourceKind,
  object: KubeObject,
  finalizers: string[],
): Promise<void> {
  const { resourceVersion, uid, name } = object.metadata;
  const patch = { metadata: { resourceVersion, uid, finalizers } };
  const written = await tools.client.patch(
    kind,
    { name },
    { type: "merge", patch },
    { fieldManager: MANAGER, signal: tools.signal },
  );
  tools.onWrite("applied");
  if (finalizers.length > 0 || written.metadata.deletionTimestamp === undefined) tools.live.wrote(kind, written);
  else tools.live.deleted(kind, written);
}

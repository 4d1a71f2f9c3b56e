import { createHash } from "node:crypto";
import type { KubeObject } from "../api/object.ts";
import { StatusError } from "../api/status.ts";
import type { Client } from "../cluster/client.ts";
import type { Events } from "../cluster/events.ts";
import { isNotFound } from "../cluster/failures.ts";
import type { Log } from "../kit/log.ts";
import { type Difference, type Drift, differences, whoChanged } from "./field-diff.ts";
import type { LiveObjects } from "./live-objects.ts";
import { MANAGED_KINDS, managedKind, objectName, rankOf } from "./managed-kinds.ts";
import type { Component } from "./render/inputs.ts";
import { ownLabels } from "./render/metadata.ts";

/** The field manager of everything the operator writes. */
export const MANAGER = "vendor-operator";
/** Hash of what we last applied: distinguishes a change of ours from drift. */
const APPLIED = "operator.vendor.io/applied";
/** On an object with the value "true": its fields are people's until they remove it. */
const IGNORE = "unsupported.operator.vendor.io/ignore";

export interface ApplyTools {
  client: Client;
  live: LiveObjects;
  events: Events;
  log: Log;
  signal: AbortSignal;
  /** Called for every field that drifted and was reverted. */
  onDrift(drift: Drift): void;
  onWrite(did: "applied" | "deleted"): void;
}

/** What there still is to wait for after an apply: objects that must leave before they can be made again. */
export type Applied = { waitingFor: string | undefined };

/**
 * Makes the objects of a component what they should be: in order, only those that differ, and then removes what is no longer
 * wanted. A component that is as it should be costs no request.
 */
export async function applyComponent(
  tools: ApplyTools,
  component: Component,
  wanted: readonly KubeObject[],
): Promise<Applied> {
  const waiting: string[] = [];
  for (const object of [...wanted].sort((a, b) => rankOf(a) - rankOf(b))) {
    tools.signal.throwIfAborted();
    if ((await applyObject(tools, object)) === "leaving") waiting.push(objectName(object));
  }
  const names = new Set(wanted.map(objectName));
  for (const object of componentObjects(tools.live, component)) {
    if (!names.has(objectName(object)) && !isLeftAlone(object)) await deleteObject(tools, object);
  }
  return { waitingFor: waiting.length === 0 ? undefined : `${waiting.join(", ")} to be deleted` };
}

/** Everything that carries our labels for a component, in the order of its removal. */
export function componentObjects(live: LiveObjects, component: Component): KubeObject[] {
  const labels = Object.entries(ownLabels(component));
  return MANAGED_KINDS.flatMap((kind) => live.list(kind))
    .filter(({ metadata }) => labels.every(([key, value]) => metadata.labels?.[key] === value))
    .sort((a, b) => rankOf(b) - rankOf(a));
}

/** Objects of a component that are not written, because people annotated them. With the component they go all the same. */
export function leftAlone(live: LiveObjects, component: Component): string[] {
  return componentObjects(live, component).filter(isLeftAlone).map(objectName);
}

function isLeftAlone({ metadata }: KubeObject): boolean {
  return metadata.annotations?.[IGNORE] === "true";
}

export async function applyObject(tools: ApplyTools, wanted: KubeObject): Promise<"same" | "applied" | "leaving"> {
  const kind = managedKind(wanted);
  const object = stamped(wanted);
  const live = tools.live.get(kind, object.metadata);
  if (live?.metadata.deletionTimestamp !== undefined) return "leaving";
  if (live && isLeftAlone(live)) return "same";
  const found = live ? differences(object, live, MANAGER) : [];
  if (live && (found.length === 0 || isHopeless(tools.live, object, live))) return "same";
  try {
    const written =
      // A Secret that is not there is created: should it be there after all, its keys must not be lost.
      !live && object.kind === "Secret"
        ? await tools.client.create(kind, object, { fieldManager: MANAGER, signal: tools.signal })
        : await tools.client.apply(kind, object, { fieldManager: MANAGER, force: true, signal: tools.signal });
    tools.onWrite("applied");
    tools.live.wrote(kind, written);
    tools.log.info(
      { object: objectName(object), fields: found.slice(0, 5).map(({ path }) => path) },
      live ? "changed" : "created",
    );
    if (live) reportDrift(tools, object, live, found);
    rememberHopeless(tools, object, written);
    return "applied";
  } catch (error) {
    if (!live || !isImmutable(error)) throw error;
    await deleteObject(tools, live);
    return "leaving";
  }
}

/** Drift: we applied this very object before and it is no longer equal. */
function reportDrift(tools: ApplyTools, wanted: KubeObject, live: KubeObject, found: readonly Difference[]): void {
  if (live.metadata.annotations?.[APPLIED] !== wanted.metadata.annotations?.[APPLIED]) return;
  for (const difference of found) {
    const drift = { object: objectName(wanted), path: difference.path, ...whoChanged(live, difference, MANAGER) };
    tools.log.warn({ ...drift }, "reverted drift");
    tools.onDrift(drift);
  }
}

export async function deleteObject(tools: ApplyTools, object: KubeObject): Promise<void> {
  if (object.metadata.deletionTimestamp !== undefined) return;
  const kind = managedKind(object);
  const { uid } = object.metadata;
  try {
    await tools.client.delete(kind, object.metadata, {
      propagationPolicy: "Background",
      ...(uid ? { preconditions: { uid } } : {}),
      signal: tools.signal,
    });
    tools.onWrite("deleted");
    tools.log.info({ object: objectName(object) }, "deleted");
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
  tools.live.deleted(kind, object);
}

function stamped(object: KubeObject): KubeObject {
  const hash = createHash("sha256").update(JSON.stringify(object)).digest("hex").slice(0, 16);
  const annotations = { ...object.metadata.annotations, [APPLIED]: hash };
  return { ...object, metadata: { ...object.metadata, annotations } };
}

/** States in which a server would not take our value as we write it: applying again would change nothing, for ever. */
const hopeless = new WeakMap<LiveObjects, Map<string, string>>();

function rememberHopeless(tools: ApplyTools, wanted: KubeObject, written: KubeObject): void {
  const left = differences(wanted, written, MANAGER);
  const known = hopeless.get(tools.live) ?? new Map<string, string>();
  hopeless.set(tools.live, known);
  if (left.length === 0) known.delete(objectName(wanted));
  else {
    known.set(objectName(wanted), stateOf(wanted, written));
    tools.log.warn(
      { object: objectName(wanted), fields: left.map(({ path }) => path) },
      "the API server stores another value than was applied",
    );
  }
}

function isHopeless(live: LiveObjects, wanted: KubeObject, object: KubeObject): boolean {
  return hopeless.get(live)?.get(objectName(wanted)) === stateOf(wanted, object);
}

function stateOf(wanted: KubeObject, live: KubeObject): string {
  return `${wanted.metadata.annotations?.[APPLIED]} ${live.metadata.uid} ${live.metadata.generation ?? live.metadata.resourceVersion}`;
}

/** An immutable field: the object has to be replaced. */
function isImmutable(error: unknown): boolean {
  return (
    error instanceof StatusError && error.code === 422 && /immutable|may not change|cannot change/i.test(error.message)
  );
}

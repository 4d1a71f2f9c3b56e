import { isDeepStrictEqual } from "node:util";
import { vendorNames } from "../api/names.ts";
import { type Condition, groupVersion, type KubeObject, type ResourceKind } from "../api/object.ts";
import { isAlreadyExists, isNotFound } from "../cluster/failures.ts";
import { type ApplyTools, leftAlone, MANAGER } from "./apply.ts";
import { misnamedOutcome } from "./controllers/misnamed.ts";
import type { Drift } from "./field-diff.ts";
import { storedKind } from "./managed-kinds.ts";
import { type Observed, theOne } from "./observed.ts";
import { type Outcome, PARTS, type Part } from "./outcome.ts";
import { changesOf, conditionsOf } from "./outcome-conditions.ts";
import { firstFew } from "./workload-health.ts";

const STATUSES = storedKind("status");

/** The resource that requests a part, and whose status reports it too. */
const REQUESTS: Record<Part, { kind: ResourceKind; of(observed: Observed): readonly KubeObject[] } | undefined> = {
  network: { kind: storedKind("installation"), of: ({ installations }) => installations },
  ippools: undefined,
  apiserver: { kind: storedKind("apiServer"), of: ({ apiServers }) => apiServers },
  "flow-logs": { kind: storedKind("flowLogs"), of: ({ flowLogs }) => flowLogs },
  "flow-ui": { kind: storedKind("flowUI"), of: ({ flowUIs }) => flowUIs },
  "service-proxy": undefined,
};

/**
 * The only place that writes status. What is already there is not written again. `observed` is the snapshot the outcome was computed from:
 * its generations become observedGeneration, while what is written to is the newest version of the object.
 */
export async function reportOutcome(
  tools: ApplyTools,
  part: Part,
  observed: Observed,
  outcome: Outcome,
  reverted: readonly Drift[],
): Promise<void> {
  const ignored = part === "service-proxy" ? [] : leftAlone(tools.live, part);
  const reported = withIgnored(withDrift(outcome, reverted), ignored);
  const request = REQUESTS[part];
  const generation = theOne(request?.of(observed) ?? observed.installations)?.metadata.generation;
  await reportStatus(tools, part, observed.now, reported, generation);
  if (!request) return;
  for (const object of request.of(observed)) {
    const mine = object.metadata.name === vendorNames.singleton;
    await reportOnRequest(tools, request.kind, object, mine ? reported : misnamedOutcome(object), observed);
  }
}

/** With the installation go the reports of every part that no resource requests any more. */
export async function removeReports(tools: ApplyTools, observed: Observed): Promise<void> {
  for (const part of PARTS) {
    const requests = part === "network" ? [] : (REQUESTS[part]?.of(observed) ?? []);
    const live = tools.live.get(STATUSES, { name: part });
    if (live && requests.length === 0) await removeStatus(tools, live);
  }
}

async function reportStatus(
  tools: ApplyTools,
  part: Part,
  now: number,
  outcome: Outcome,
  generation: number | undefined,
): Promise<void> {
  const live = tools.live.get(STATUSES, { name: part });
  if (outcome.kind === "absent") return live ? removeStatus(tools, live) : undefined;
  const status = live ?? (await createStatus(tools, part));
  const { conditions: before, checked: checkedBefore = [] } = (status["status"] ?? {}) as ComponentStatus;
  const conditions = conditionsOf(outcome, before, { main: "Available", now, generation });
  const checked = outcome.kind === "ready" ? outcome.checked : [];
  if (isDeepStrictEqual(conditions, before) && isDeepStrictEqual(checked, checkedBefore)) return;
  await writeStatus(tools, STATUSES, status, { ...(checked.length > 0 ? { checked } : {}), conditions });
  sayWhatChanged(tools, status, before, conditions);
}

interface ComponentStatus {
  conditions?: Condition[];
  checked?: readonly string[];
}

function sayWhatChanged(
  { events }: ApplyTools,
  about: KubeObject,
  before: readonly Condition[] | undefined,
  now: readonly Condition[],
): void {
  for (const change of changesOf(before ?? [], now)) events.changed(about, change);
}

async function createStatus({ client, live, signal, onWrite }: ApplyTools, name: string): Promise<KubeObject> {
  const fresh = {
    apiVersion: groupVersion(vendorNames.groups.operator),
    kind: STATUSES.kind,
    metadata: { name },
    spec: {},
  };
  const options = { fieldManager: MANAGER, signal };
  const created = await client.create<KubeObject>(STATUSES, fresh, options).catch(async (error: unknown) => {
    if (!isAlreadyExists(error)) throw error;
    return client.get<KubeObject>(STATUSES, { name });
  });
  onWrite("applied");
  live.wrote(STATUSES, created);
  return created;
}

async function removeStatus({ client, live, signal, onWrite }: ApplyTools, status: KubeObject): Promise<void> {
  if (status.metadata.deletionTimestamp !== undefined) return;
  await client.delete(STATUSES, status.metadata, { signal }).catch((error: unknown) => {
    if (!isNotFound(error)) throw error;
  });
  onWrite("deleted");
  live.deleted(STATUSES, status);
}

/** Replaced, not merged: a merge would take the null of `hostPorts` for "remove". The version keeps us from overwriting. */
async function writeStatus(tools: ApplyTools, kind: ResourceKind, object: KubeObject, status: object): Promise<void> {
  const { client, live, signal } = tools;
  const wanted = { ...object, status };
  const written = await client.replace<KubeObject>(kind, wanted, {
    subresource: "status",
    fieldManager: MANAGER,
    signal,
  });
  tools.onWrite("applied");
  live.wrote(kind, written);
}

async function reportOnRequest(
  tools: ApplyTools,
  kind: ResourceKind,
  object: KubeObject,
  outcome: Outcome,
  { now, self }: Observed,
): Promise<void> {
  // The reconcile may have added a finalizer: the newest version is the one to write to.
  const live = tools.live.get(kind, object.metadata);
  if (!live || outcome.kind === "absent") return;
  const before = (live["status"] ?? {}) as { conditions?: Condition[]; computed?: unknown };
  const conditions = conditionsOf(outcome, before.conditions, {
    main: "Ready",
    now,
    generation: object.metadata.generation,
  });
  const installed = kind.kind === vendorNames.kinds.installation.kind ? installedBy(outcome, live, self.version) : {};
  const status = { ...before, ...installed, conditions };
  if (isDeepStrictEqual(plain(status), plain(before))) return;
  await writeStatus(tools, kind, live, status);
  sayWhatChanged(tools, live, before.conditions, conditions);
}

/** The version counts as installed when all of it works; the effective configuration when it was accepted. */
function installedBy(outcome: Outcome, installation: KubeObject, version: string): object {
  const accepted = "accepted" in outcome ? outcome.accepted : undefined;
  const spec = installation["spec"] as { variant?: string };
  const mtu = accepted?.computed.vendorNetwork?.mtu;
  return {
    ...accepted,
    ...(mtu === undefined ? {} : { mtu }),
    ...(outcome.kind === "ready" ? { version, variant: spec.variant } : {}),
  };
}

function withDrift(outcome: Outcome, reverted: readonly Drift[]): Outcome {
  if (outcome.kind !== "ready" || reverted.length === 0) return outcome;
  const reported = reverted.map(
    ({ object, path, manager, time }) => `${object} ${path}, changed by ${manager}${time ? ` at ${time}` : ""}`,
  );
  return { ...outcome, message: `${outcome.message} Drift reverted: ${reported.join("; ")}.` };
}

/** Fields of such an object may be anything: nobody looks at them. */
function withIgnored(outcome: Outcome, ignored: readonly string[]): Outcome {
  if (ignored.length === 0 || !("message" in outcome)) return outcome;
  return { ...outcome, message: `${outcome.message} Left as it is, because of its annotation: ${firstFew(ignored)}.` };
}

/** A server may keep or drop a null inside what it does not know; to us the two are the same. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  const kept = Object.entries(value).filter(([, inner]) => inner !== null && inner !== undefined);
  return Object.fromEntries(kept.map(([key, inner]) => [key, plain(inner)]));
}

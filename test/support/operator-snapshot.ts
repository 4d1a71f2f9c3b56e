import { isDeepStrictEqual } from "node:util";
import type { KubeObject } from "../../src/api/object.ts";
import { StatusError } from "../../src/api/status.ts";
import type { Client } from "../../src/cluster/client.ts";

/** Every object there is, by `Kind namespace/name`. */
export type Contents = ReadonlyMap<string, KubeObject>;

/** Written all the time by those who are alive: leases are how they breathe, events are what they say. */
const BREATHING = new Set(["Event", "Lease"]);

/** Lists every resource of discovery. An aggregated API that goes away meanwhile has nothing. */
export async function listEverything(client: Client): Promise<Contents> {
  const found = new Map<string, KubeObject>();
  const resources = (await client.resources()).filter(({ verbs, preferred }) => preferred && verbs.includes("list"));
  for (const resource of resources) {
    if (BREATHING.has(resource.kind)) continue;
    const { items } = await client.list(resource).catch((error: unknown) => {
      if (error instanceof StatusError) return { items: [] };
      throw error;
    });
    const kind = resource.group.includes(".vendor.io") || resource.group === "vendor.io" ? resource.group : "";
    for (const item of items) found.set(`${nameOf(item)}${kind && ` (${kind})`}`, item);
  }
  return found;
}

function nameOf({ kind, metadata }: KubeObject): string {
  return `${kind} ${[metadata.namespace, metadata.name].filter(Boolean).join("/")}`;
}

/** Which objects came, went or were changed between two looks; what the orchestrator says of how they do is no change. */
export function written(before: Contents, after: Contents): string[] {
  const names = new Set([...before.keys(), ...after.keys()]);
  return [...names].filter((name) => !isSame(before.get(name), after.get(name))).sort();
}

/** Pods follow their workloads, which are compared, endpoints follow pods, and nodes say every few seconds that they are alive. */
const FOLLOWING = new Set(["EndpointSlice", "Endpoints", "Node", "Pod"]);

function isSame(old: KubeObject | undefined, now: KubeObject | undefined): boolean {
  if (FOLLOWING.has((old ?? now)?.kind ?? "")) return true;
  if (!old || !now || old.metadata.uid !== now.metadata.uid) return false;
  if (old.metadata.resourceVersion === now.metadata.resourceVersion) return true;
  return isDeepStrictEqual(asked(old), asked(now));
}

function asked({ metadata, status: _, ...object }: KubeObject): unknown {
  const { resourceVersion: __, managedFields = [], ...kept } = metadata;
  return { ...object, metadata: kept, owners: managedFields.filter(({ subresource }) => !subresource) };
}

/** Waits until nothing is written any more. */
export async function untilQuiet(client: Client): Promise<Contents> {
  let before = await listEverything(client);
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
    const after = await listEverything(client);
    if (versionsOf(before) === versionsOf(after)) return after;
    before = after;
  }
}

const QUIET_MS = 300;

/** Programs report in their status twice a minute how they do. */
const REPORTED_IN = new Set(["Node", "FlowLogs"]);

/** What a cluster is at, to the last write. */
export function versionsOf(contents: Contents): string {
  const all = [...contents].filter(([, { kind }]) => !REPORTED_IN.has(kind));
  return all.map(([name, { metadata }]) => `${name} ${metadata.resourceVersion}`).join("\n");
}

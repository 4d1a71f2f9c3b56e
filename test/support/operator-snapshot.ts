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

/** Which objects came, went or were written between two looks. Nodes say every few seconds that they are alive. */
export function written(before: Contents, after: Contents): string[] {
  const changed = (name: string) => {
    const [old, now] = [before.get(name), after.get(name)];
    if (old?.kind === "Node" && now) return false;
    return old?.metadata.uid !== now?.metadata.uid || old?.metadata.resourceVersion !== now?.metadata.resourceVersion;
  };
  return [...new Set([...before.keys(), ...after.keys()])].filter(changed).sort();
}

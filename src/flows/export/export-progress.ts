import { gunzipSync, gzipSync } from "node:zlib";
import { vendorNames } from "../../api/names.ts";
import { groupVersion, type KubeObject } from "../../api/object.ts";
import { flowLogs } from "../../api/resources/flow-logs.ts";
import { placesOf } from "../../api/resources/resource.ts";
import type { Client } from "../../cluster/client.ts";
import { isNotFound } from "../../cluster/failures.ts";
import { CONFIG_MAPS } from "../../cluster/kinds.ts";

/** The last interval of each life of each node that was exported. */
export interface ExportProgress {
  isNew(position: Position): boolean;
  mark(position: Position): void;
  load(signal: AbortSignal): Promise<void>;
  /** Writes nothing if nothing changed. */
  save(signal?: AbortSignal): Promise<void>;
}

export interface Position {
  node: string;
  boot: string;
  interval: number;
}

const PLACE = { name: `${vendorNames.workloads.flowLogs}-export`, namespace: vendorNames.namespaces.system };
const FIELD = "progress";
const BOOTS = 4;
const MOST_NODES = 20_000;
const MOST_BYTES = 16 * 2 ** 20;

/** Kept in a ConfigMap: agents send the last five minutes again to a server that has started, and what was exported is not exported again. */
export function exportProgress(client: Client): ExportProgress {
  const nodes = new Map<string, Map<string, number>>();
  let isChanged = false;
  return {
    isNew: ({ node, boot, interval }) => interval > (nodes.get(node)?.get(boot) ?? -1),
    mark({ node, boot, interval }) {
      isChanged = true;
      note(nodes, node, boot, interval);
    },
    async load(signal) {
      try {
        const found = await client.get<KubeObject>(CONFIG_MAPS, PLACE, { signal });
        for (const [node, boot, interval] of read(found)) note(nodes, node, boot, interval);
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    },
    async save(signal) {
      if (!isChanged) return;
      isChanged = false;
      const rows = [...nodes].flatMap(([node, boots]) => [...boots].map(([boot, interval]) => [node, boot, interval]));
      const binaryData = { [FIELD]: gzipSync(JSON.stringify(rows)).toString("base64") };
      try {
        await write(client, binaryData, signal);
      } catch (error) {
        isChanged = true;
        throw error;
      }
    },
  };
}

async function write(client: Client, binaryData: Record<string, string>, signal?: AbortSignal): Promise<void> {
  const options = signal ? { signal } : {};
  try {
    await client.patch(CONFIG_MAPS, PLACE, { type: "merge", patch: { binaryData } }, options);
  } catch (error) {
    if (!isNotFound(error)) throw error;
    // It goes with the resource that asked for it.
    const owner = await client.get<KubeObject>(
      placesOf(flowLogs, vendorNames).stored,
      { name: vendorNames.singleton },
      options,
    );
    const { group, version } = placesOf(flowLogs, vendorNames).stored;
    const { name, uid = "" } = owner.metadata;
    const ownerReferences = [
      { apiVersion: groupVersion({ group, version }), kind: owner.kind, name, uid, blockOwnerDeletion: false },
    ];
    const metadata = { ...PLACE, ownerReferences };
    await client.create<KubeObject>(
      CONFIG_MAPS,
      { apiVersion: "v1", kind: "ConfigMap", metadata, binaryData },
      options,
    );
  }
}

/** What cannot be read is as if it were not there: then some is exported twice, and nothing is lost. */
function read(object: KubeObject): [node: string, boot: string, interval: number][] {
  try {
    const { [FIELD]: packed = "" } = (object["binaryData"] ?? {}) as Record<string, string>;
    const rows = JSON.parse(
      gunzipSync(Buffer.from(packed, "base64"), { maxOutputLength: MOST_BYTES }).toString(),
    ) as unknown[];
    return rows.filter(isRow);
  } catch {
    return [];
  }
}

function isRow(row: unknown): row is [string, string, number] {
  return Array.isArray(row) && typeof row[0] === "string" && typeof row[1] === "string" && Number.isSafeInteger(row[2]);
}

function note(nodes: Map<string, Map<string, number>>, node: string, boot: string, interval: number): void {
  const boots = nodes.get(node) ?? new Map<string, number>();
  boots.delete(boot);
  boots.set(boot, interval);
  for (const oldest of boots.keys()) if (boots.size > BOOTS) boots.delete(oldest);
  // The node that was silent longest goes first.
  nodes.delete(node);
  nodes.set(node, boots);
  for (const oldest of nodes.keys()) if (nodes.size > MOST_NODES) nodes.delete(oldest);
}

import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** What this node has made for one interface of one container: enough to know it again, and to undo it, with no memory and no API server. */
export interface PodRecord {
  containerId: string;
  ifname: string;
  namespace: string;
  pod: string;
  /** Path of the network namespace. */
  netns: string;
  /** Host side of the interface. */
  interfaceName: string;
  mac: string;
  mtu: number;
  handle: string;
  addresses: string[];
  /** `adding`: begun, and maybe never ended. `removing`: the interface is gone, the addresses are not given back yet. */
  state: "adding" | "ready" | "removing";
}

export interface PodRecords {
  list(): PodRecord[];
  get(containerId: string, ifname: string): PodRecord | undefined;
  put(record: PodRecord): void;
  remove(record: Pick<PodRecord, "containerId" | "ifname">): void;
}

/** One file each, written whole or not at all. */
export function podRecords(directory: string): PodRecords {
  const records = new Map<string, PodRecord>();
  for (const name of existsSync(directory) ? readdirSync(directory) : []) {
    const record = name.endsWith(".json") ? readRecord(join(directory, name)) : undefined;
    if (record) records.set(keyOf(record), record);
  }
  const pathOf = (record: Pick<PodRecord, "containerId" | "ifname">) => join(directory, `${keyOf(record)}.json`);
  return {
    list: () => [...records.values()],
    get: (containerId, ifname) => records.get(keyOf({ containerId, ifname })),
    put(record) {
      mkdirSync(directory, { recursive: true, mode: 0o700 });
      const fresh = `${pathOf(record)}.new`;
      writeFileSync(fresh, JSON.stringify(record), { mode: 0o600, flush: true });
      renameSync(fresh, pathOf(record));
      records.set(keyOf(record), record);
    },
    remove(record) {
      rmSync(pathOf(record), { force: true });
      records.delete(keyOf(record));
    },
  };
}

function keyOf({ containerId, ifname }: Pick<PodRecord, "containerId" | "ifname">): string {
  return `${containerId}.${ifname}`;
}

/** Undefined for what was being written when a life ended: it was not there yet. */
function readRecord(path: string): PodRecord | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as PodRecord;
  } catch {
    return undefined;
  }
}

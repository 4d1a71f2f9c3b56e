import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
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
  /** The addresses are of the node's own prefix, and in no block. */
  hostLocal?: true;
  /** `adding`: begun, and maybe never ended. `removing`: the interface is gone, the addresses are not given back yet. */
  state: "adding" | "ready" | "removing";
}

export interface PodRecords {
  /** The one written last comes last. */
  list(): PodRecord[];
  /** The record that speaks for a pod: of several sandboxes the newest has the interface. */
  ofPod(namespace: string, pod: string): PodRecord | undefined;
  /** Calls with every record that is written or removed from now on. */
  onChange(changed: (record: Pick<PodRecord, "namespace" | "pod">) => void): void;
  get(containerId: string, ifname: string): PodRecord | undefined;
  put(record: PodRecord): void;
  remove(record: PodRecord): void;
}

/** One file each, written whole or not at all. */
export function podRecords(directory: string): PodRecords {
  const records = new Map<string, PodRecord>();
  const listeners: ((record: PodRecord) => void)[] = [];
  for (const path of filesByAge(directory)) {
    const record = readRecord(path);
    if (record) records.set(keyOf(record), record);
  }
  const pathOf = (record: Pick<PodRecord, "containerId" | "ifname">) => join(directory, `${keyOf(record)}.json`);
  return {
    list: () => [...records.values()],
    ofPod(namespace, pod) {
      const all = [...records.values()].filter((one) => one.namespace === namespace && one.pod === pod);
      return all.filter(({ state }) => state !== "removing").at(-1) ?? all.at(-1);
    },
    onChange: (changed) => void listeners.push(changed),
    get: (containerId, ifname) => records.get(keyOf({ containerId, ifname })),
    put(record) {
      mkdirSync(directory, { recursive: true, mode: 0o700 });
      const fresh = `${pathOf(record)}.new`;
      writeFileSync(fresh, JSON.stringify(record), { mode: 0o600, flush: true });
      renameSync(fresh, pathOf(record));
      records.delete(keyOf(record));
      records.set(keyOf(record), record);
      for (const changed of listeners) changed(record);
    },
    remove(record) {
      rmSync(pathOf(record), { force: true });
      records.delete(keyOf(record));
      for (const changed of listeners) changed(record);
    },
  };
}

/** The oldest first, as they were written. */
function filesByAge(directory: string): string[] {
  const names = existsSync(directory) ? readdirSync(directory).filter((name) => name.endsWith(".json")) : [];
  const written = names.sort().map((name) => {
    const path = join(directory, name);
    return { path, at: statSync(path).mtimeMs };
  });
  return written.sort((a, b) => a.at - b.at).map(({ path }) => path);
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

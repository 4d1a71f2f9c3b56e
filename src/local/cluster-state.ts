import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ClusterKeys } from "./certificates.ts";
import { stateDirectory } from "./config.ts";
import { errors } from "./errors.ts";

/** What a cluster wrote about itself for the commands that come later. */
export interface ClusterRecord {
  name: string;
  kind: string;
  nodes: number;
  pid: number;
  /** Distinguishes this process from a later one with the same number. */
  processStart: string;
  server: string;
  /** Nodes without a kernel of their own; no packet moves. */
  simulated?: boolean;
  /** Where its flow UI is. */
  flowUI?: string;
  ready: boolean;
}

/** The folder of one cluster: `cluster.json`, `kubeconfig`, `cluster.log`, and its keys. */
export class ClusterFolder {
  readonly path: string;

  constructor(name: string) {
    if (!/^[a-z][a-z0-9-]{0,39}$/.test(name)) throw errors.CLUSTER_NAME_INVALID(name);
    this.path = join(stateDirectory(), "clusters", name);
  }

  get kubeconfig(): string {
    return join(this.path, "kubeconfig");
  }

  get log(): string {
    return join(this.path, "cluster.log");
  }

  create(): void {
    try {
      mkdirSync(this.path, { recursive: true, mode: 0o700 });
    } catch (error) {
      throw errors.STATE_NOT_WRITABLE(this.path).from(error);
    }
  }

  read(): ClusterRecord | undefined {
    const file = join(this.path, "cluster.json");
    return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as ClusterRecord) : undefined;
  }

  write(record: ClusterRecord): void {
    writeWhole(join(this.path, "cluster.json"), JSON.stringify(record));
  }

  writeKubeconfig(text: string): void {
    writeWhole(this.kubeconfig, text);
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** Keys live with the data they belong to, so that a cluster that comes back is the same one to its clients. */
export function readKeys(directory: string): ClusterKeys | undefined {
  const file = join(directory, "keys.json");
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as ClusterKeys) : undefined;
}

export function writeKeys(directory: string, keys: ClusterKeys): void {
  writeWhole(join(directory, "keys.json"), JSON.stringify(keys));
}

export function clusterNames(): string[] {
  const folder = join(stateDirectory(), "clusters");
  return existsSync(folder) ? readdirSync(folder).sort() : [];
}

/** Never half a file: a reader sees the old one or the new one. Holds secrets, so only for its owner. */
function writeWhole(path: string, text: string): void {
  try {
    writeFileSync(`${path}.new`, text, { mode: 0o600 });
    renameSync(`${path}.new`, path);
  } catch (error) {
    throw errors.STATE_NOT_WRITABLE(path).from(error);
  }
}

/** When a process started, in the kernel's own count; undefined when there is no such process. */
export function processStart(pid: number): string | undefined {
  if (!existsSync("/proc/self/stat")) return isAlive(pid) ? "some time ago" : undefined;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    // The state is the first field after the name; a zombie is gone for every purpose but its parent's.
    return fields[0] === "Z" ? undefined : fields[19];
  } catch {
    return undefined;
  }
}

/** Where the kernel shows no start times, being there has to do. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

export function isRunning(record: ClusterRecord): boolean {
  return processStart(record.pid) === record.processStart;
}

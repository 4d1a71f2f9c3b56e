import type { ProgressEvent } from "./progress.ts";

/**
 * What `vendorctl cluster …` needs from the embedded cluster. The room below does not know this file: its
 * `commands.ts` exports functions of this shape, and the compiler compares them where they are loaded.
 */
export interface ClusterCommands {
  /** Comes back once the cluster is ready; with `detach`, it then lives in a process of its own. */
  up(options: UpOptions, run: Run): Promise<UpResult>;
  /** Stops the cluster and removes what it left on this machine, except a data directory the user named. False: there was none. */
  down(options: { name: string }, run: Run): Promise<boolean>;
  list(): Promise<ClusterSummary[]>;
  /** Path of the kubeconfig file. */
  kubeconfig(options: { name: string }): Promise<string>;
  /** Lines without their newline; with `follow`, until `signal` aborts. */
  logs(options: { name: string; tail?: number; follow: boolean; signal: AbortSignal }): AsyncIterable<string>;
}

export interface UpOptions {
  name: string;
  kind: string;
  nodes: number;
  paper: boolean;
  detach: boolean;
  proxy?: "iptables" | "nftables" | "ipvs" | "none";
  datastore?: "api" | "etcd";
  /** Seed the cluster as this version left it, such as `v3.27`. */
  installed?: string;
  method?: string;
  temporaryPolicy?: boolean;
  userEdits?: boolean;
  oldNodes?: number;
  windowsNodes?: number;
  dualStack?: boolean;
  dataDir?: string;
  port?: number;
}

export interface Run {
  signal: AbortSignal;
  report(event: ProgressEvent): void;
}

export interface UpResult {
  cluster: ClusterSummary;
  /** Only of a cluster in this process: settles when it has stopped, which aborting `signal` asks for. */
  stopped?: Promise<void>;
}

export interface ClusterSummary {
  name: string;
  kind: string;
  state: string;
  nodes: number;
  nodesReady: number;
  /** URL of the API server. */
  server: string;
  /** Path of the kubeconfig file. */
  kubeconfig: string;
}

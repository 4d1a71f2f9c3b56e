import type { Admission } from "../apiserver/call.ts";
import type { ApiServer } from "../apiserver/server.ts";
import type { Store } from "../apiserver/storage/store.ts";
import type { Client } from "../cluster/client.ts";
import type { Clock } from "../kit/clock.ts";
import type { Log } from "../kit/log.ts";
import type { PlatformProfile, PlatformProfileOptions } from "./platform-profile.ts";
import type { ProgramRunner } from "./programs/program-runner.ts";
import type { NodeRuntime, NodeSpec } from "./runtime/node-runtime.ts";

/** What a cluster runs on: simulated nodes, or this machine's kernel. */
export interface Infrastructure {
  readonly runtime: NodeRuntime;
  /** Our own programs, which really run in their pods on either ground. */
  readonly programs: Pick<ProgramRunner, "kill" | "resolveService">;
  /** Where nodes find the API server, which listens elsewhere for people. */
  apiAddress(listening: HostPort): HostPort;
  /** Sockets of the nodes' own network for the API server to listen on too; made once, and the server's from then on. */
  sockets(platform: PlatformProfileOptions): { fd: number; host: string; port: number }[];
  admissions(store: Store): readonly Admission[];
  /** The nodes as this ground can make them. */
  nodes(planned: readonly NodeSpec[]): readonly NodeSpec[];
  /** The API server answers from here on. */
  attach(cluster: AttachedCluster): void;
  /** Whether pods are ready by rule, so that a new cluster can be waited for until all of its own are. */
  readonly podsBecomeReady: boolean;
  close(): Promise<void>;
}

export interface HostPort {
  host: string;
  port: number;
}

export interface AttachedCluster {
  server: ApiServer;
  client: Client;
  profile: PlatformProfile;
  platform: PlatformProfileOptions;
  clock: Clock;
  log: Log;
}

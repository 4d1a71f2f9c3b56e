import type { KubeObject, ResourceKind } from "../../api/object.ts";
import type { Transport } from "../../api/transport.ts";
import type { ResolveService } from "../../apiserver/aggregation.ts";
import type { ApiServer } from "../../apiserver/server.ts";
import { type ApiAddress, apiServerAddresses } from "../../cluster/api-server-hosts.ts";
import { type Client, createClient } from "../../cluster/client.ts";
import { clusterEnv } from "../../cluster/config.ts";
import { addressRoutes, failoverTransport } from "../../cluster/failover-transport.ts";
import { isNotFound } from "../../cluster/failures.ts";
import { CONFIG_MAPS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, SECRETS } from "../../cluster/kinds.ts";
import { type Listener, listenOn, type ProgramContext } from "../../cluster/program.ts";
import { openLevelOf, runProgram } from "../../cluster/run-program.ts";
import { type Clock, sleep } from "../../kit/clock.ts";
import { type Log, openLog } from "../../kit/log.ts";
import type { PersistentVolume, PersistentVolumeClaim } from "../controllers/workload-types.ts";
import type { ContainerRunner, ContainerStart, RunningContainer } from "../runtime/container-runner.ts";
import { ContainerStartError } from "../runtime/node-runtime.ts";
import { watchProbes } from "../runtime/probes.ts";
import { accountTransport } from "./account-transport.ts";
import { type ApiAddresses, apiRouteFailure } from "./api-route.ts";
import {
  type ConfigMap,
  containerEnv,
  type Environment,
  mountedConfigMap,
  type References,
  type Secret,
} from "./container-env.ts";
import { containerTls } from "./container-tls.ts";
import { errors } from "./errors.ts";
import { Listeners } from "./listeners.ts";
import { isOnEtcd } from "./on-etcd.ts";
import { canRunInstead, type OurProgram, ourProgram } from "./our-program.ts";
import type { ProgramTable } from "./program-table.ts";

/** The cluster whose pods the programs are; known once its server has started. */
export interface RunnerCluster {
  server: ApiServer;
  addresses: ApiAddresses;
  /** Something on the node serves cluster IPs. */
  servicesWorkOn(node: string): boolean;
}

/** Runs the containers of our own image inside the cluster's process, each in the world its pod would give it. */
export interface ProgramRunner extends ContainerRunner {
  attach(cluster: RunnerCluster): void;
  /** For the aggregation layer: a ready pod of ours behind the service. */
  readonly resolveService: ResolveService;
  /** As `kill -9` in every container of the pod that we run: nothing of it is heard of again. False if we run none. */
  kill(podUid: string): boolean;
}

interface Attached extends RunnerCluster {
  kubelet: Client;
  references: References;
}

const KILLED = 137;

export function programRunner({ clock, programs }: { clock: Clock; programs: ProgramTable }): ProgramRunner {
  const listeners = new Listeners();
  const running = new Map<string, Set<ProgramContainer>>();
  let attached: Attached | undefined;

  const start = async (given: ContainerStart, program: OurProgram, cluster: Attached): Promise<RunningContainer> => {
    const env = await environmentOf(given, program, cluster);
    const log = await openLog({
      level: openLevelOf(program.name, env),
      format: "json",
      write: (line) => given.write(line.trimEnd()),
    });
    const container = new ProgramContainer(given, env, log, { cluster, listeners, clock });
    const uid = given.pod.metadata.uid ?? "";
    const ofPod = running.get(uid) ?? new Set();
    running.set(uid, ofPod.add(container));
    void container.ended.then(() => {
      ofPod.delete(container);
      if (ofPod.size === 0) running.delete(uid);
    });
    container.start(programs[program.name]!);
    return container;
  };

  return {
    attach(cluster) {
      const kubelet = createClient(cluster.server.transport(), { userAgent: "kubelet", clock });
      attached = { ...cluster, kubelet, references: referencesOf(kubelet) };
    },
    run(given) {
      const program = ourProgram(given.container);
      if (!program || !attached || !Object.hasOwn(programs, program.name) || !canRunInstead(program)) return undefined;
      if (isOnEtcd(given.container)) return undefined;
      return start(given, program, attached);
    },
    resolveService: (namespace, name, port) =>
      attached && listeners.resolve(attached.server.store, namespace, name, port),
    kill(uid) {
      const found = [...(running.get(uid) ?? [])];
      for (const container of found) container.kill();
      return found.length > 0;
    },
  };
}

async function environmentOf(given: ContainerStart, program: OurProgram, cluster: Attached): Promise<Environment> {
  const volumes = (given.pod.spec["volumes"] as { persistentVolumeClaim?: object }[] | undefined) ?? [];
  if (volumes.some(({ persistentVolumeClaim }) => persistentVolumeClaim))
    throw new ContainerStartError("volume", "simulated nodes have no disks");
  const [host = ""] = cluster.addresses.clusterIPs;
  const env = await containerEnv(given, { host, port: 443 }, cluster.references);
  return { VENDOR_VERSION: program.version, ...env, ...(await containerTls(given, cluster.references)) };
}

export function referencesOf(kubelet: Client): References {
  const read = async <T extends KubeObject>(kind: ResourceKind, namespace: string, name: string) => {
    try {
      return await kubelet.get<T>(kind, { namespace, name });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  };
  return {
    configMap: (namespace, name) => read<ConfigMap>(CONFIG_MAPS, namespace, name),
    secret: (namespace, name) => read<Secret>(SECRETS, namespace, name),
    async volume(namespace, claim) {
      const bound = await read<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIMS, namespace, claim);
      const volume = bound?.spec.volumeName;
      return volume && (await read<PersistentVolume>(PERSISTENT_VOLUMES, "", volume))?.spec.hostPath?.path;
    },
  };
}

interface Surroundings {
  cluster: Attached;
  listeners: Listeners;
  clock: Clock;
}

/** How long a program that was cut off is still waited for, in real time: it can do nothing any more but end. */
const LAST_WAIT_MS = 1_000;

/** One program of ours in one container, from its start to its end. */
class ProgramContainer implements RunningContainer {
  readonly #given: ContainerStart;
  readonly #env: Environment;
  readonly #log: Log;
  readonly #around: Surroundings;
  readonly #stop = new AbortController();
  readonly #over = new AbortController();
  readonly #servers = new Map<Listener, () => void>();
  readonly #addresses = new Map<number, { host: string; port: number }>();
  readonly ended: Promise<void>;
  #end: () => void = () => {};
  #dead = false;
  #killed = false;
  #transport: Transport | undefined;

  constructor(given: ContainerStart, env: Environment, log: Log, around: Surroundings) {
    this.#given = given;
    this.#env = env;
    this.#log = log;
    this.#around = around;
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  start(load: ProgramTable[string]): void {
    const { container, report } = this.#given;
    const program = async (world: ProgramContext) => (await load())(world);
    void watchProbes({
      container,
      addressOf: (port) => this.#addresses.get(port),
      report,
      clock: this.#around.clock,
      signal: this.#over.signal,
    });
    void runProgram(program, this.#world()).then((exitCode) => {
      this.#cutOff();
      if (!this.#killed) report({ is: "exited", exitCode });
      this.#end();
    });
  }

  async stop(graceSeconds: number): Promise<void> {
    this.#stop.abort();
    if (graceSeconds > 0) {
      const given = new AbortController();
      await Promise.race([this.ended, sleep(this.#around.clock, graceSeconds * 1000, given.signal)]);
      given.abort();
    }
    this.#cutOff();
    await Promise.race([this.ended, new Promise((resolve) => setTimeout(resolve, LAST_WAIT_MS).unref())]);
  }

  kill(): void {
    if (this.#killed || this.#dead) return;
    this.#killed = true;
    this.#cutOff();
    this.#stop.abort();
    this.#given.report({ is: "exited", exitCode: KILLED });
  }

  /** From here on nothing the program does has an effect. */
  #cutOff(): void {
    this.#dead = true;
    this.#over.abort();
    for (const [server, forget] of this.#servers) {
      forget();
      server.close();
      server.closeAllConnections();
    }
    this.#servers.clear();
    this.#addresses.clear();
  }

  #world(): ProgramContext {
    const { clock } = this.#around;
    const world = { env: Object.freeze(this.#env), signal: this.#stop.signal, log: this.#log, clock };
    return {
      ...world,
      transport: (at) => {
        if (at) return this.#toServer(at);
        this.#transport ??= this.#followingMap();
        return this.#transport;
      },
      listen: async (server, port) => {
        const address = await listenOn(server, { host: "127.0.0.1", port: 0 });
        if (this.#dead) {
          server.close();
          return address;
        }
        this.#addresses.set(port, address);
        this.#servers.set(server, this.#around.listeners.add(this.#given.pod, port, address));
        return address;
      },
    };
  }

  /** By the endpoint map where it is mounted, as it is now: a kubelet writes a volume again when its ConfigMap has changed. */
  #followingMap(): Transport {
    const { endpointMapDir } = clusterEnv(this.#env, false);
    const map = endpointMapDir && mountedConfigMap(this.#given, endpointMapDir);
    const { references } = this.#around.cluster;
    const routes = async () => {
      const found = map ? await references.configMap(this.#given.pod.metadata.namespace ?? "", map) : undefined;
      return addressRoutes(apiServerAddresses(this.#env, map ? (found?.data ?? {}) : undefined), (address) =>
        this.#toServer(address),
      );
    };
    return map ? failoverTransport(routes, this.#log) : this.#toServer(apiServerAddresses(this.#env, undefined)[0]!);
  }

  #toServer({ host, port }: ApiAddress): Transport {
    const { pod, node, container } = this.#given;
    const { cluster, clock } = this.#around;
    const { serviceAccountDir } = clusterEnv(this.#env, false);
    const mounts = (container["volumeMounts"] as { mountPath: string }[] | undefined) ?? [];
    if (!mounts.some(({ mountPath }) => mountPath === serviceAccountDir))
      throw errors.PROGRAM_HAS_NO_ACCOUNT(pod.metadata.name);
    const dns = pod.spec["dnsConfig"] as { nameservers?: string[] } | undefined;
    const hostNetwork = pod.spec.hostNetwork ?? false;
    const policy = pod.spec["dnsPolicy"] ?? "ClusterFirst";
    // In its node's network, a pod has its node's name servers unless it says otherwise.
    const clusterDns = policy === "ClusterFirstWithHostNet" || (policy === "ClusterFirst" && !hostNetwork);
    const caller = { hostNetwork, nameservers: dns?.nameservers ?? [], clusterDns };
    return accountTransport({
      pod,
      kubelet: cluster.kubelet,
      clock,
      server: `https://${host.includes(":") ? `[${host}]` : host}:${port}`,
      serverFor: (user) => cluster.server.transport(user),
      blocked: () =>
        apiRouteFailure({ host, port }, cluster.addresses, { ...caller, servicesWork: cluster.servicesWorkOn(node) }),
      dead: () => this.#dead,
    });
  }
}

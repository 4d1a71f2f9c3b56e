import type { KubeObject } from "../api/object.ts";
import type { Admission } from "../apiserver/call.ts";
import { kubernetesKinds } from "../apiserver/kubernetes/kinds.ts";
import { type ApiServer, type ApiServerOptions, createApiServer } from "../apiserver/server.ts";
import type { Store } from "../apiserver/storage/store.ts";
import { type Client, createClient } from "../cluster/client.ts";
import { createInformer, type Informer } from "../cluster/informer.ts";
import { DAEMON_SETS, DEPLOYMENTS, NODES, PODS } from "../cluster/kinds.ts";
import { type Clock, systemClock } from "../kit/clock.ts";
import { type Log, silentLog } from "../kit/log.ts";
import { podDefaults, serviceAddresses } from "./admission.ts";
import { bootstrapObjects, createMissing, pointToServer } from "./bootstrap.ts";
import { type ClusterKeys, createClusterKeys } from "./certificates.ts";
import { ServiceAllocator } from "./controllers/services/service-allocator.ts";
import { startControllers } from "./controllers/start-controllers.ts";
import type { DaemonSet, Deployment, Node, Pod } from "./controllers/workload-types.ts";
import type { Infrastructure } from "./infrastructure.ts";
import { type InstalledOptions, seedInstalled } from "./installed/seed-installed.ts";
import { kubeconfigFor } from "./kubeconfig-file.ts";
import {
  type PlatformProfile,
  type PlatformProfileOptions,
  type ProxyChoice,
  platformProfile,
} from "./platform-profile.ts";
import { podSubresources } from "./pod-subresources.ts";
import type { ProgramTable } from "./programs/program-table.ts";
import { type Kubelet, startKubelet } from "./runtime/kubelet.ts";
import type { NodeSpec, RealRuntime } from "./runtime/node-runtime.ts";
import { simulatedInfrastructure } from "./simulated-infrastructure.ts";

export interface ClusterOptions {
  name: string;
  kind: string;
  nodes: number;
  proxy?: ProxyChoice;
  /** Of the nodes, how many eBPF cannot run on, and how many run Windows. */
  oldNodes?: number;
  windowsNodes?: number;
  dualStack?: boolean;
  /** Default: simulated nodes; real ones need root and a kernel that supports them. */
  runtime?: "paper" | RealRuntime;
  /** Real nodes in turn on so many subnets, with a router between them. */
  subnets?: number;
  /** Nodes whose image brings a CNI; otherwise they are not ready until one is installed. Simulated nodes only. */
  cni?: "preinstalled";
  /** Seed it as an older version of the service left it. */
  installed?: Omit<InstalledOptions, "kind" | "nodes">;
  dataDir?: string;
  /** Default: 127.0.0.1 and any free port. */
  host?: string;
  port?: number;
  /** The cluster's keys from a former life; new ones otherwise. */
  keys?: ClusterKeys;
  /** By version, a built checkout: real nodes run its programs under that version. Without one, ours run instead. */
  releases?: Readonly<Record<string, string>>;
  /** Programs of the one image beyond our own, or in their place. */
  programs?: ProgramTable;
  /** What is done to objects as they are written, before the cluster's own: as a mutating webhook would. */
  admissions?: readonly Admission[];
  /** What stands in front of the API server for everything outside this process. */
  front?: ApiServerOptions["front"];
  clock?: Clock;
  log?: Log;
  /** What a person should know of how it came up. */
  note?: (text: string) => void;
  /** Called with progress messages. */
  report?: (step: ClusterStep, state: "running" | "done") => void;
}

export type ClusterStep = "api" | "platform" | "nodes" | "installed" | "ready";

export interface LocalCluster {
  readonly url: string;
  readonly kubeconfig: string;
  readonly keys: ClusterKeys;
  readonly server: ApiServer;
  readonly kubelet: Kubelet;
  readonly programs: Infrastructure["programs"];
  readonly runtime: Infrastructure["runtime"];
  readonly nodeNames: readonly string[];
  /** As the cluster's administrator. */
  readonly client: Client;
  close(): Promise<void>;
}

const HOST = "127.0.0.1";

/** A whole cluster in this process; comes back when its nodes and its own pods are ready. */
export async function startCluster(options: ClusterOptions): Promise<LocalCluster> {
  const { clock = systemClock, log = silentLog, report = () => {} } = options;
  const profile = platformProfile(options.kind);
  const ground = await infrastructureOf(options, profile, clock, log);
  const { runtime, programs } = ground;
  const closers: (() => Promise<void>)[] = [];
  const close = async () => {
    for (const one of closers.splice(0).reverse()) await one();
  };
  closers.push(() => ground.close());
  try {
    report("api", "running");
    const { server, url, keys, platform } = await startServer(options, profile, ground);
    // What runs on the ground ends before the server it talks to.
    closers.unshift(() => server.close());
    report("api", "done");

    report("platform", "running");
    const client = createClient(server.transport(), { userAgent: "vendorctl", clock });
    const isNew = server.store.get("/namespaces", "", "kube-system") === undefined;
    await createMissing(client, bootstrapObjects(keys, platform.apiAddress.port, profile.serviceCidrs[0]!));
    // A cluster that comes back has what its people made of it; the platform does not start over.
    if (isNew) await createMissing(client, profile.objects(platform));
    await pointToServer(client, platform.apiAddress);
    const controllers = startControllers({
      transport: server.transport(),
      clock,
      log,
      rootCa: keys.authority.certificate,
    });
    closers.push(() => controllers.stop());
    for (const behaviour of profile.behaviours) {
      const running = behaviour.start({
        client: createClient(server.transport(), { userAgent: behaviour.name, clock }),
        clock,
        log,
      });
      closers.push(() => running.stop());
    }
    report("platform", "done");

    report("nodes", "running");
    ground.attach({ server, client, profile, platform, clock, log });
    const kubelet = startKubelet({ transport: server.transport(), runtime, clock, log });
    closers.push(() => kubelet.stop());
    const nodes = ground.nodes(profile.nodes(platform)).map((node) => withCni(node, options));
    await Promise.all(nodes.map((node) => kubelet.addNode(node)));
    report("nodes", "done");

    if (options.installed) {
      report("installed", "running");
      await seedInstalled(client, {
        ...options.installed,
        kind: profile.kind,
        nodes: nodes.map(({ name }) => name),
      });
      report("installed", "done");
    }
    report("ready", "running");
    await settled(client, nodes.length, { withPods: ground.podsBecomeReady, networkReady: runtime.networkReady });
    report("ready", "done");
    const kubeconfig = kubeconfigFor(options.name, url, keys);
    const nodeNames = nodes.map(({ name }) => name);
    return { url, kubeconfig, keys, server, kubelet, programs, runtime, nodeNames, client, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function infrastructureOf(
  options: ClusterOptions,
  profile: PlatformProfile,
  clock: Clock,
  log: Log,
): Promise<Infrastructure> {
  if (options.runtime === undefined || options.runtime === "paper")
    return simulatedInfrastructure({ clock, ...(options.programs && { programs: options.programs }) });
  const { netnsInfrastructure } = await import("./netns-infrastructure.ts");
  const { name, runtime, releases = {}, note = () => {} } = options;
  return await netnsInfrastructure({ name, runtime, profile, releases, note, clock, log });
}

async function startServer(options: ClusterOptions, profile: PlatformProfile, ground: Infrastructure) {
  const { host = HOST, port = 0, clock = systemClock } = options;
  const chosen = {
    name: options.name,
    nodes: options.nodes,
    proxy: options.proxy,
    oldNodes: options.oldNodes ?? 0,
    windowsNodes: options.windowsNodes ?? 0,
    dualStack: options.dualStack ?? false,
    subnets: options.subnets ?? 1,
  };
  const asked: PlatformProfileOptions = { ...chosen, apiAddress: ground.apiAddress({ host, port }) };
  // Options the platform does not support are refused here, before there is anything to undo.
  profile.nodes(asked);
  profile.objects(asked);
  const names = profile.serverNames(asked);
  const keys =
    options.keys ?? createClusterKeys([...new Set([HOST, "localhost", host, ...names])], new Date(clock.now()));
  const cidrs = chosen.dualStack ? profile.serviceCidrs : profile.serviceCidrs.slice(0, 1);
  const server = await createApiServer({
    kinds: kubernetesKinds(),
    authorization: "rbac",
    ...(options.dataDir !== undefined && { dataDir: options.dataDir }),
    admissions: (store) => [
      ...(options.admissions ?? []),
      podDefaults(store),
      serviceAddresses(new ServiceAllocator(storedServices(store), { clusterCidrs: cidrs })),
      ...ground.admissions(store),
    ],
    resolveService: ground.programs.resolveService,
    subresources: podSubresources(ground.runtime),
    serviceAccounts: { key: keys.serviceAccountKey, issuer: "https://kubernetes.default.svc.cluster.local" },
    frontProxy: keys.frontProxy,
    ...(options.front && { front: options.front }),
    now: () => new Date(clock.now()),
  });
  try {
    const tls = {
      server: keys.server,
      clientAuthority: keys.authority.certificate,
      frontProxyAuthority: keys.frontProxyAuthority.certificate,
    };
    const listening = await server.listen({ host, port, tls });
    const apiAddress = ground.apiAddress({ host, port: listening.port });
    const platform: PlatformProfileOptions = { ...chosen, apiAddress };
    for (const socket of ground.sockets(platform)) await server.listen({ ...socket, tls });
    return { server, url: listening.url, keys, platform };
  } catch (error) {
    await server.close();
    throw error;
  }
}

function storedServices(store: Store): KubeObject[] {
  return store.list("/services").map((stored) => JSON.parse(stored.body.toString()) as KubeObject);
}

/** An older installation left its CNI configuration on the nodes. Windows nodes bring their own. */
function withCni(node: NodeSpec, { cni, installed }: ClusterOptions): NodeSpec {
  const configured = cni === "preinstalled" || installed !== undefined || node.operatingSystem === "windows";
  return configured ? { ...node, cniConfigured: true } : node;
}

interface Settling {
  withPods: boolean;
  networkReady(node: string): boolean;
}

/**
 * Waits until what was asked for is there: nodes registered, and ready where there is a CNI; workloads rolled out; no pod still on its
 * way but those that wait for a CNI.
 */
async function settled(client: Client, nodeCount: number, { withPods, networkReady }: Settling): Promise<void> {
  const nodes = createInformer<Node>(client, NODES);
  const pods = createInformer<Pod>(client, PODS);
  const deployments = createInformer<Deployment>(client, DEPLOYMENTS);
  const daemonSets = createInformer<DaemonSet>(client, DAEMON_SETS);
  const all: Informer<never>[] = [nodes, pods, deployments, daemonSets] as unknown as Informer<never>[];
  const registered = () =>
    nodes.list().filter((node) => isNodeReady(node) === networkReady(node.metadata.name)).length >= nodeCount;
  const waitsForNetwork = (pod: Pod) =>
    pod.spec.hostNetwork !== true &&
    (pod.spec.nodeName
      ? !networkReady(pod.spec.nodeName)
      : isUnschedulable(pod) && nodes.list().some(({ metadata }) => !networkReady(metadata.name)));
  const isSettled = () =>
    registered() &&
    (!withPods ||
      (deployments.list().every(isRolledOut) &&
        daemonSets.list().every(isSpreadOut) &&
        pods.list().every((pod) => isStarted(pod) || waitsForNetwork(pod))));
  try {
    await Promise.all(all.map((informer) => informer.synced));
    await new Promise<void>((resolve) => {
      let due = false;
      // A look goes through everything there is, so a burst of news is worth one, not one each.
      const look = () => {
        if (due) return;
        due = true;
        setImmediate(() => {
          due = false;
          if (isSettled()) resolve();
        });
      };
      for (const informer of all) informer.onChange(look);
      look();
    });
  } finally {
    await Promise.all(all.map((informer) => informer.stop()));
  }
}

function isNodeReady(node: Node): boolean {
  return node.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") ?? false;
}

function isStarted({ status }: Pod): boolean {
  return status?.phase !== undefined && status.phase !== "Pending";
}

function isUnschedulable({ status }: Pod): boolean {
  return status?.conditions?.some(({ reason }) => reason === "Unschedulable") ?? false;
}

function isRolledOut({ metadata, spec, status }: Deployment): boolean {
  return status?.observedGeneration === metadata.generation && (status?.updatedReplicas ?? 0) >= (spec.replicas ?? 1);
}

function isSpreadOut({ metadata, status }: DaemonSet): boolean {
  if (!status || status.observedGeneration !== metadata.generation) return false;
  return (status.updatedNumberScheduled ?? 0) >= status.desiredNumberScheduled;
}

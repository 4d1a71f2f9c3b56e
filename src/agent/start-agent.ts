import { dirname, join } from "node:path";
import type { Dataplane } from "../api/dataplane.ts";
import { vendorNames } from "../api/names.ts";
import type { Refusal } from "../api/protocol/agent-report.ts";
import { isPodInterface } from "../api/protocol/pod-network.ts";
import { type Calculator, createCalculator } from "../calc/calculator.ts";
import { stagedCalculator } from "../calc/staged-calculator.ts";
import { apiServerNames, resolveHosts } from "../cluster/api-server-hosts.ts";
import { type Client, createClient } from "../cluster/client.ts";
import { createEvents } from "../cluster/events.ts";
import { failoverTransport } from "../cluster/failover-transport.ts";
import { ENDPOINT_SLICES, SERVICES } from "../cluster/kinds.ts";
import type { ProgramContext } from "../cluster/program.ts";
import { logLevelOf } from "../cluster/run-program.ts";
import { ServiceProxyRules } from "../dataplane/kube-proxy/proxy-rules.ts";
import { loadEtcdDatastore } from "../datastore/load-datastore.ts";
import { lockableTransport } from "../datastore/lockable-transport.ts";
import { nodeHolder } from "../ipam/block-holder.ts";
import { NOTHING_IN_USE } from "../ipam/in-use.ts";
import { createIpam } from "../ipam/ipam.ts";
import type { Kernel } from "../kernel/kernel.ts";
import type { NetlinkEvent, NetlinkPort } from "../kernel/netlink/netlink-port.ts";
import { type Clock, systemClock } from "../kit/clock.ts";
import { CodedError } from "../kit/errors.ts";
import { serveLines } from "../kit/line-socket.ts";
import type { Metrics } from "../kit/metrics.ts";
import { programMetrics } from "../kit/process-metrics.ts";
import { severityLog, severityOf } from "../kit/severity-log.ts";
import { adminService, adminSocket } from "./admin.ts";
import { agentEvents } from "./agent-events.ts";
import { agentMetrics } from "./agent-metrics.ts";
import { API_ANSWER_MS, agentTasks, confirmIfProven, refreshMetrics, type TaskParts } from "./agent-tasks.ts";
import { apiRoutes, type FailoverOptions } from "./api-failover.ts";
import { removeBirdRoutes } from "./bgp/bird-routes.ts";
import { type NodeBgp, nodeBgp } from "./bgp/node-bgp.ts";
import { bgpTable } from "./bgp/session-states.ts";
import { watchBpfFileSystem } from "./bpf-file-system.ts";
import { watchCniConfiguration } from "./cni-configuration.ts";
import { cniService } from "./cni-service.ts";
import type { AgentConfig } from "./config.ts";
import { type DataplaneSwitch, dataplaneSwitch } from "./dataplane-switch.ts";
import { type NodeDataplanes, OVERLAY } from "./dataplanes.ts";
import { errors } from "./errors.ts";
import type { FlowCollector } from "./flows/flow-collector.ts";
import { nodeFlows } from "./flows/node-flows.ts";
import { proxyAwayOnDisk } from "./kube-proxy-away.ts";
import { kubeProxyCompat } from "./kube-proxy-compat.ts";
import { isKubeProxyScheduled } from "./kube-proxy-pods.ts";
import { ModelLoop, type ModelTarget } from "./model-loop.ts";
import { followEncapsulation } from "./node/encapsulation-report.ts";
import { overlayPeers } from "./overlay/overlay-peers.ts";
import { watchOverlay } from "./overlay/overlay-watch.ts";
import {
  flowLogsTable,
  type NodeProblems,
  overlayTable,
  podsTable,
  problemsTable,
  servicesTable,
  settingsTable,
  switchoverTable,
} from "./own-tables.ts";
import { type PeriodicTasks, startPeriodicTasks } from "./periodic-tasks.ts";
import { podMtu } from "./pod-mtu.ts";
import { addressesOfNode } from "./pods/addresses-of-node.ts";
import { notedDeletions } from "./pods/noted-deletions.ts";
import { podInterfaces } from "./pods/pod-interface.ts";
import { type PodNetworkParts, podNetwork } from "./pods/pod-network.ts";
import { type PodRecord, type PodRecords, podRecords } from "./pods/pod-records.ts";
import { followPodRoutes } from "./pods/pod-routes.ts";
import { removePortmapRules } from "./pods/portmap-rules.ts";
import { followPolicySync, type PolicySync } from "./policy-sync/policy-sync.ts";
import { watchProblems } from "./problem-watch.ts";
import { refusedPods } from "./refused-pods.ts";
import { rollbackWatchdog } from "./rollback-watchdog.ts";
import { overlayMtu } from "./separate-overlay/settle-overlay.ts";
import { probeServices } from "./service-probe.ts";
import { probeServicesForever, type ServiceProbeLoop } from "./service-probe-loop.ts";
import { watchShares } from "./share-watch.ts";
import { type WatchedObjects, watchObjects } from "./watch-objects.ts";

/** What the agent stands on; a test brings a kernel and data planes of its own. */
export interface AgentParts {
  config: AgentConfig;
  kernel: Kernel;
  dataplanes: NodeDataplanes;
  clock?: Clock;
  /** How the API server is reached where its usual address does not lead there. */
  failover?: FailoverOptions;
  /** Starts the process that reverts to the old data plane unless the new one is confirmed. */
  startWatchdog?: () => void;
}

export interface RunningAgent {
  /** Why others should not rely on it yet; undefined: they may. */
  notReady(): string | undefined;
  /** Why Services are not known yet; undefined: they are watched. */
  servicesNotWatched(): string | undefined;
  /** Why only a restart can help; undefined: it works. */
  stuck(): string | undefined;
  acting(): Dataplane | undefined;
  metrics: Metrics;
  /** Reads the kernel's own counters into the metrics. */
  refreshMetrics(): Promise<void>;
  /** Lets go of everything; what is in the kernel goes on. */
  stop(): Promise<void>;
}

/** A turn of any loop that takes longer than this will not end. */
const STUCK_MS = 120_000;
const SERVICE_KINDS: readonly string[] = [SERVICES.plural, ENDPOINT_SLICES.plural];
const NO_SERVICES_ON_ETCD = "the etcd datastore cannot watch Services";

/** Starts the node's agent: watches the cluster, programs the model, connects pods, and reports the state. */
export async function startAgent(world: ProgramContext, parts: AgentParts): Promise<RunningAgent> {
  const { config, kernel, dataplanes: planes, clock = systemClock } = parts;
  const usual = severityOf[logLevelOf(world.env)];
  const settled: { loop?: ModelLoop } = {};
  const severity = () => settled.loop?.model.settings.configuration.logSeverityScreen;
  const log = severityLog(world.log, () => severity() ?? config.configuration.logSeverityScreen ?? usual);
  for (const name of config.unknownVariables) {
    log.warn({ variable: name }, "no field of the DataplaneConfiguration has this name: the variable has no effect");
  }
  const stopping = new AbortController();
  const allMetrics = programMetrics();
  const metrics = agentMetrics(allMetrics);
  const { failover } = parts;
  const kubernetes = failover ? failoverTransport(() => apiRoutes(failover), log) : world.transport();
  const datastore = await loadEtcdDatastore(config.etcd, kubernetes);
  const client = createClient(datastore?.transport ?? lockableTransport(kubernetes), {
    userAgent: vendorNames.workloads.node,
  });
  // What is followed is followed in one place: with etcd, Kubernetes' objects are copied there.
  const followed = datastore ? createClient(datastore.copies, { userAgent: vendorNames.workloads.node }) : client;
  const create = () =>
    createCalculator(config.nodeName, vendorNames, {
      foreignAddresses: !config.connectsPods,
      routesToNodes: config.connectsNodes,
      bgp: config.bgp,
      configuration: config.configuration,
      hostPorts: config.connectsPods && config.hostPorts,
    });
  const calculator = stagedCalculator(create(), {
    ...{ names: vendorNames, create },
    objects: () => objects.ofCalculation(),
  });
  // Notified when the reported state may have changed; no listener yet.
  const changes = { notify: (): void => {} };
  const proxyRules = new ServiceProxyRules({ kernel, clock, log });
  const filter = dataplaneSwitch({
    ...{ open: planes.open, kernel: planes.kernel, proxy: proxyRules, refusal: refusalOf(parts), clock, log },
    watchdog: rollbackWatchdog({
      directories: config.directories,
      seconds: config.rollbackSeconds,
      pools: () => loop.model.settings.pools.map(({ cidr }) => cidr),
      start: parts.startWatchdog ?? (() => {}),
      log,
    }),
    proxyLeft: () => proxyCompat.answers(),
    proxyAway: proxyAwayOnDisk(config.directories.state),
    proxyScheduled: () => isKubeProxyScheduled(objects.pods.list(), config.nodeName),
    apiAnswers: () => answers(client),
    flows: {
      entering: async (...counting) => await flows.entering(...counting),
      entered: async () => await flows.entered(),
      left: async (...counting) => await flows.left(...counting),
    },
    onChange: () => changes.notify(),
  });
  const netlink = kernel.netlink();
  const sweepBird = () => (config.bgp ? [] : removeBirdRoutes(netlink));
  const target = together(filter, planes.network, sweepBird);
  const loop = new ModelLoop({ calculator, target, clock, log, metrics });
  settled.loop = loop;
  const objects = watchObjects(followed, calculator, () => loop.poke(), { services: !datastore, bgp: config.bgp, log });
  const records = podRecords(join(config.directories.state, "pods"));
  const nodeAddresses = addressesOfNode(config.nodeName, { records, netlink, pods: () => objects.pods.list() });
  const ipam = createIpam(client, nodeHolder(config.nodeName), {
    blocks: () => objects.blocks.list(),
    affinities: () => objects.affinities.list(),
    configuration: () => objects.ipamConfigurations.get(vendorNames.singleton)?.spec,
    pools: () => objects.pools.list(),
    reservations: () => objects.reservations.list(),
    inUse: () => (config.connectsPods ? nodeAddresses() : NOTHING_IN_USE),
  });
  if (datastore) log.info({}, `the datastore is etcd: ${NO_SERVICES_ON_ETCD}, so /readyz/services stays 503`);
  followRecords(records, calculator, () => loop.poke());
  const podRoutes = config.connectsPods ? undefined : followPodRoutes(netlink, calculator, () => loop.poke());
  const reserveApiServers = async () => {
    const addresses = await resolveHosts(apiServerNames(world.env));
    // A name that does not resolve for a moment must not give the addresses away.
    if (addresses.length === 0) return;
    calculator.setApiServers(addresses);
    loop.poke();
  };
  void reserveApiServers();
  const podFacts = factsForPods(config, objects, netlink, loop);
  const waitsFor = (kinds: readonly string[]) =>
    kinds.length > 0 ? `waiting for the first list of ${kinds.join(", ")}` : undefined;
  const pods = podNetwork({
    ...{ client, node: config.nodeName, ipam, records, loop, log },
    notes: notedDeletions(config.directories.run),
    interfaces: podInterfaces(kernel, config.directories.sysctl),
    removePortmapRules: (containerId) => removePortmapRules(kernel, containerId),
    ...podFacts,
  });
  const notReady = (): string | undefined =>
    waitsFor(objects.waitingFor()) ?? (loop.ready ? undefined : "the desired state is not applied yet");
  const proving = probeServicesForever({
    prove: () =>
      probeServices({
        kernel,
        pinDirectory: config.directories.bpf,
        model: () => loop.model,
        pods: () => records.list(),
      }),
    acting: () => filter.acting() === "BPF",
    onProbe: () => observedServices(filter, proving, () => changes.notify()),
    ...{ clock, log, signal: stopping.signal },
  });
  const proxyCompat = kubeProxyCompat({
    ...{ filter, proxyRules, clock, log, metrics, signal: stopping.signal },
    model: () => loop.model,
    node: () => objects.nodes.get(config.nodeName),
    healthy: () => proving.noObjection(),
    onChange: () => changes.notify(),
  });
  const events = agentEvents(createEvents(client, vendorNames.workloads.node, clock, log), {
    node: () => objects.nodes.get(config.nodeName),
    pod: (key) => objects.pods.get(key),
  });
  const shares = watchShares({
    ...{ filter, metrics, clock, log, signal: stopping.signal },
    onChange: () => changes.notify(),
    onLimited: (pod, code, message) => events.problem(`pod ${pod}`, code, message),
  });
  const overlay = watchOverlay({
    ...{ node: config.nodeName, periodMs: config.overlayProbeSeconds * 1_000, frames: kernel.frames() },
    // Between pods of another CNI plugin nothing goes through it.
    link: () => (config.connectsPods ? netlink.link(OVERLAY) : undefined),
    peers: (underlay) =>
      overlayPeers(
        { model: loop.model, node: (name) => objects.nodes.get(name), agentPods: objects.pods.list(config.namespace) },
        underlay,
      ),
    podMtu: podFacts.mtu,
    ...{ metrics, clock, log, signal: stopping.signal },
    onChange: () => changes.notify(),
    onLoss: events.problem,
  });
  const encapsulation = followEncapsulation(loop, netlink, () => changes.notify());
  const flows = nodeFlows({
    ...{ env: world.env, node: config.nodeName, runDirectory: config.directories.run },
    ...{ objects, loop, netlink, accounting: () => filter.flows(), clock, log, signal: stopping.signal },
    staged: () => calculator.staged(),
  });
  const bgp = objects.bgp
    ? nodeBgp({
        ...{ node: config.nodeName, runDirectory: config.directories.run, namespace: config.namespace },
        ...{ client, objects: objects.bgp, loop, metrics, clock, log, signal: stopping.signal },
        nodes: () => objects.nodes.list(),
        pools: () => objects.pools.list(),
        switching: () => isSwitching(filter),
      })
    : undefined;
  const cniConfiguration = config.cniConfiguration
    ? watchCniConfiguration({
        ...{ path: config.cniConfiguration, copy: join(config.directories.state, "cni.conflist") },
        ...{ clock, log, signal: stopping.signal },
        onRestored: events.cniRestored,
      })
    : undefined;
  const unmounted = watchBpfFileSystem(kernel.mounts, dirname(config.directories.bpf));
  const bpfFileSystem = () => (filter.state().wanted === "BPF" ? [unmounted() ?? []].flat() : []);
  const refused = refusedPods(clock);
  const policySync = followPolicySync({
    ...{ node: config.nodeName, version: config.version, kubeletDir: config.kubeletDir, loop, clock, log },
    podOf: podsByUid(objects),
  });
  const upkeep: { current?: PeriodicTasks } = {};
  const allProblems = (): NodeProblems => ({
    ...{ model: loop.model, failed: loop.problems(), fill: filter.fill() },
    ...{
      limited: shares.limited(),
      conflicts: ipam.conflicts(),
      losses: overlay.losses(),
      refused: refused.list().filter(({ pod }) => objects.pods.get(pod)),
    },
    own: [
      ...ownProblems(loop, filter, upkeep.current, policySync),
      ...notSent(flows),
      ...[...(cniConfiguration?.problems() ?? []), ...bpfFileSystem()].map(({ object, error: { code, message } }) => ({
        object,
        code,
        message,
      })),
      ...(bgp?.problems() ?? []),
    ],
  });
  const problems = watchProblems({
    // What is full, who is limited and what the overlay loses is reported by itself.
    problems: () => problemsTable({ ...allProblems(), fill: [], limited: [], losses: [] }).rows,
    ...{ clock, signal: stopping.signal },
    onChange: () => changes.notify(),
    onLasting(object, code, message) {
      log.warn({ object, code }, message);
      events.problem(object, code, message);
    },
  });
  onceKnown(objects, stopping.signal, upkeep, () =>
    startPeriodicTasks(
      agentTasks(
        { ...parts, clock },
        {
          ...{ client, objects, ipam, pods, filter, proving, kubeProxyCompat: proxyCompat, netlink, loop, metrics },
          ...{
            flows,
            shares,
            problems,
            overlay,
            encapsulation,
            events,
            reserveApiServers,
            log,
            refusal: refusalOf(parts),
          },
        },
      ),
      { clock, log, signal: stopping.signal },
    ),
  );
  const watch = netlink.monitor((event) => {
    if (!isOfNode(event, loop.model.settings.podInterfacePrefixes)) return;
    // What waited for a link or an address may continue; the node's own report may have changed.
    loop.poke();
    upkeep.current?.poke();
  });
  changes.notify = () => upkeep.current?.poke();
  const ends = [
    objects.nodes.onChange(({ key }) => key === config.nodeName && upkeep.current?.poke()),
    objects.pools.onChange(() => upkeep.current?.poke()),
  ];
  const turning = loop.run(stopping.signal);
  // Before the first ADD, which may use a container id again.
  if (config.connectsPods) await pods.removeNoted();
  const sockets = await openSockets(
    { config, pods, refused, notReady, metrics, clock, log },
    { filter, loop, records, overlay, bgp, flows, problems: allProblems },
  );
  // A DEL that found no socket until now has written its note by now, or calls the socket next.
  if (config.connectsPods) await pods.removeNoted();
  return {
    notReady,
    servicesNotWatched: () =>
      datastore
        ? `${NO_SERVICES_ON_ETCD}; READY 1/2 is expected`
        : waitsFor(objects.waitingFor().filter((kind) => SERVICE_KINDS.includes(kind))),
    stuck: () => loop.stuck(STUCK_MS) ?? stuckTasks(upkeep.current, clock),
    acting: () => filter.acting(),
    metrics: allMetrics,
    refreshMetrics: () => refreshMetrics(metrics, { filter, flows, loop, proving }),
    async stop() {
      stopping.abort();
      for (const end of ends) end();
      watch.close();
      podRoutes?.close();
      encapsulation.close();
      flows.close();
      await policySync.close();
      await Promise.all(sockets.map((socket) => socket.close()));
      await Promise.all([
        turning,
        upkeep.current?.done,
        proving.done,
        proxyCompat.done,
        shares.done,
        problems.done,
        overlay.done,
        bgp?.done,
        flows.done,
        cniConfiguration?.done,
        objects.stop(),
      ]);
      proxyRules.close();
      await filter.close();
      await planes.network.close();
      netlink.close();
      client.close();
    },
  };
}

/** Why eBPF does not act here, whatever is asked for. */
function refusalOf({ config, dataplanes }: Pick<AgentParts, "config" | "dataplanes">): Refusal | undefined {
  if (!config.etcd) return dataplanes.refusal;
  return { code: "EbpfProgramsRefused", why: `eBPF does not work on the etcd datastore: ${NO_SERVICES_ON_ETCD}` };
}

/** From the moment another data plane is wanted until it acts alone. */
function isSwitching(filter: DataplaneSwitch): boolean {
  const { wanted, heldBack, failure } = filter.state();
  const announced = filter.announcement();
  if (announced === "LeavingBPF" || announced === "DrainingBPF") return true;
  return wanted === "BPF" && announced === "Nftables" && heldBack === undefined && failure === undefined;
}

/** What the agent cannot do on its node. Otherwise only its log would have it. */
function ownProblems(
  loop: ModelLoop,
  filter: DataplaneSwitch,
  upkeep: PeriodicTasks | undefined,
  policySync: PolicySync,
): NodeProblems["own"] {
  const notServed = policySync.failure();
  const notApplied = loop.failure();
  const { failure: notSwitched } = filter.state();
  const tasks = [...(upkeep?.problems() ?? [])];
  return [
    ...(notApplied instanceof CodedError
      ? [notApplied]
      : notApplied
        ? [errors.AGENT_NOT_APPLIED(notApplied.message)]
        : []),
    ...(notSwitched === undefined ? [] : [errors.AGENT_SWITCH_FAILED(notSwitched)]),
    ...(notServed === undefined ? [] : [errors.AGENT_POLICY_SYNC(notServed)]),
    ...tasks.map(([task, why]) => errors.AGENT_TASK_FAILED(task, why)),
  ];
}

function notSent(flows: FlowCollector): NodeProblems["own"] {
  const { stuck } = flows.state();
  return stuck === undefined ? [] : [errors.FLOWS_NOT_SENT(stuck)];
}

/** By UID, since another pod may have the name of one that is gone. */
function podsByUid({ pods }: WatchedObjects): (uid: string) => string | undefined {
  const keys = new Map<string, string>();
  pods.onChange(({ type, key, object }) => {
    const { uid = "" } = object.metadata;
    if (type === "deleted") keys.delete(uid);
    else keys.set(uid, key);
  });
  return (uid) => {
    const key = keys.get(uid);
    return key !== undefined && pods.get(key)?.metadata.uid === uid ? key : undefined;
  };
}

/** Pods' interfaces come and go all the time, and who creates or follows them reports it. */
function isOfNode(event: NetlinkEvent, podInterfacePrefixes: readonly string[]): boolean {
  switch (event.kind) {
    case "link":
      return !isPodInterface(event.link.name, podInterfacePrefixes);
    case "address":
      return !event.address.address.startsWith("fe80:");
    default:
      return event.kind === "lost";
  }
}

/** What connecting a pod asks of the cluster and the node. */
function factsForPods(
  { nodeName, mtu, usesPodCidr, connectsNodes, directories }: AgentConfig,
  { nodes, pools, namespaces }: WatchedObjects,
  netlink: NetlinkPort,
  { model }: ModelLoop,
): Pick<PodNetworkParts, "pools" | "namespace" | "nodeLabels" | "podCidrs" | "usesPodCidr" | "mtu"> {
  const spec = () => (nodes.get(nodeName)?.["spec"] ?? {}) as { podCIDRs?: string[] };
  return {
    pools: () => pools.list(),
    namespace: (name) => namespaces.get(name),
    nodeLabels: () => nodes.get(nodeName)?.metadata.labels ?? {},
    podCidrs: () => spec().podCIDRs ?? [],
    usesPodCidr,
    mtu: () =>
      mtu ||
      (connectsNodes ? undefined : overlayMtu(directories.run)) ||
      podMtu(
        { links: netlink.links(), addresses: netlink.addresses() },
        { own: model.nodes.get(nodeName), pattern: model.settings.configuration.mtuIfacePattern },
        pools.list(),
      ),
  };
}

/** Periodic tasks act on watched objects, so they start when all of them are in sync. */
function onceKnown(
  objects: WatchedObjects,
  signal: AbortSignal,
  upkeep: { current?: PeriodicTasks },
  start: () => PeriodicTasks,
): void {
  void objects.synced.then(() => {
    if (!signal.aborted) upkeep.current = start();
  });
}

/** The calculation knows from the start what this node's plugin has made, and hears of each change. */
function followRecords(records: PodRecords, calculator: Calculator, changed: () => void): void {
  const set = ({ namespace, pod }: Pick<PodRecord, "namespace" | "pod">) => {
    const record = records.ofPod(namespace, pod);
    const { addresses = [], mac = "" } = record ?? {};
    const local = record && { addresses, mac, connected: record.state !== "removing" };
    calculator.setLocalPod(`${namespace}/${pod}`, local);
  };
  for (const record of records.list()) set(record);
  records.onChange((record) => {
    set(record);
    changed();
  });
}

/** Any answer will do. */
async function answers(client: Client): Promise<boolean> {
  try {
    const signal = AbortSignal.timeout(API_ANSWER_MS);
    await (await client.raw({ method: "GET", path: "/version", signal })).text();
    return true;
  } catch {
    return false;
  }
}

function observedServices(filter: DataplaneSwitch, proving: ServiceProbeLoop, notify: () => void): void {
  confirmIfProven(filter, proving);
  if (proving.changed() || (filter.acting() === "BPF" && filter.announcedLast() !== "BPF")) notify();
}

/** Policy and the ways packets take: both at once, and both tried though one fails. */
function together(filter: ModelTarget, network: ModelTarget, sweepMore: () => string[]): ModelTarget {
  return {
    async apply(delta) {
      const results = await Promise.allSettled([filter.apply(delta), network.apply(delta)]);
      const failed = results.find((one) => one.status === "rejected");
      if (failed) throw failed.reason;
      return { objects: results.flatMap((one) => (one.status === "fulfilled" ? one.value.objects : [])) };
    },
    async resync() {
      await filter.resync();
      await network.resync();
    },
    async sweep() {
      const reports = [await filter.sweep(), await network.sweep()];
      return { removed: [...reports.flatMap(({ removed }) => removed), ...sweepMore()] };
    },
  };
}

async function openSockets(
  options: Parameters<typeof cniService>[0] & { config: AgentConfig },
  {
    filter,
    loop,
    records,
    overlay,
    bgp,
    flows,
    problems,
  }: Pick<TaskParts, "filter" | "loop" | "overlay"> & {
    records: PodRecords;
    bgp: NodeBgp | undefined;
    flows: FlowCollector;
    problems: () => NodeProblems;
  },
) {
  const { config } = options;
  const admin = adminService({
    dataplane: () => filter.acting(),
    show: (table) => filter.show(table),
    own: {
      pods: () => podsTable(records.list()),
      services: () => servicesTable(loop.model),
      settings: () => settingsTable(loop.model),
      problems: () => problemsTable(problems()),
      switchover: () => switchoverTable(filter.state()),
      overlay: () => overlayTable(overlay.pairs()),
      bgp: () => bgpTable(bgp?.sessions() ?? []),
      flows: () => flowLogsTable(flows.state()),
    },
  });
  const opened = [await serveLines(adminSocket(config.directories.run), admin)];
  if (config.connectsPods) {
    opened.push(await serveLines(join(config.directories.run, "cni.sock"), cniService(options)));
  }
  return opened;
}

function stuckTasks(upkeep: PeriodicTasks | undefined, clock: Clock): string | undefined {
  const idle = upkeep ? clock.now() - upkeep.lastTurn() : 0;
  return idle > 5 * STUCK_MS ? `periodic tasks have not run for ${Math.round(idle / 1000)} s` : undefined;
}

import { join } from "node:path";
import type { Dataplane, DataplaneState } from "../api/dataplane.ts";
import { vendorNames } from "../api/names.ts";
import { type AgentReport, announcedDataplane, dataplaneAnnotation } from "../api/protocol/agent-report.ts";
import { POD_INTERFACE_PREFIX } from "../api/protocol/pod-network.ts";
import { type Calculator, createCalculator } from "../calc/calculator.ts";
import { apiServerNames, resolveHosts } from "../cluster/api-server-hosts.ts";
import { type Client, createClient } from "../cluster/client.ts";
import { createEvents } from "../cluster/events.ts";
import type { ProgramContext } from "../cluster/program.ts";
import { isFull } from "../dataplane/ebpf/map-fill.ts";
import { ServiceProxyRules } from "../dataplane/kube-proxy/proxy-rules.ts";
import type { Kernel } from "../kernel/kernel.ts";
import type { NetlinkEvent, NetlinkPort } from "../kernel/netlink/netlink-port.ts";
import { type Clock, systemClock } from "../kit/clock.ts";
import { CodedError } from "../kit/errors.ts";
import { serveLines } from "../kit/line-socket.ts";
import { createMetrics, type Metrics } from "../kit/metrics.ts";
import { adminService, adminSocket } from "./admin.ts";
import { type AgentEvents, agentEvents } from "./agent-events.ts";
import { type AgentMetrics, agentMetrics } from "./agent-metrics.ts";
import { apiAddresses } from "./api-addresses.ts";
import { type FailoverOptions, failoverTransport, saveAddresses } from "./api-failover.ts";
import { cniService } from "./cni-service.ts";
import type { AgentConfig } from "./config.ts";
import { type DataplaneSwitch, dataplaneSwitch } from "./dataplane-switch.ts";
import { type NodeDataplanes, OVERLAY } from "./dataplanes.ts";
import { errors } from "./errors.ts";
import { NOTHING_IN_USE } from "./ipam/addresses-in-use.ts";
import { createIpam, type Ipam } from "./ipam/ipam.ts";
import { type KubeProxyCompat, kubeProxyCompat } from "./kube-proxy-compat.ts";
import { isKubeProxyScheduled } from "./kube-proxy-pods.ts";
import { ModelLoop, type ModelTarget } from "./model-loop.ts";
import { ensureClusterInformation } from "./node/cluster-information.ts";
import { announceDataplane, networkCondition, nodeAnnotations, reportNode } from "./node/node-report.ts";
import { reportOwnPod } from "./node/own-pod-report.ts";
import { tunnelAddresses } from "./node/tunnel-addresses.ts";
import { overlayPeers } from "./overlay/overlay-peers.ts";
import { type OverlayWatch, watchOverlay } from "./overlay/overlay-watch.ts";
import {
  type NodeProblems,
  overlayTable,
  podsTable,
  problemsTable,
  servicesTable,
  settingsTable,
  switchoverTable,
} from "./own-tables.ts";
import { type PeriodicTask, type PeriodicTasks, startPeriodicTasks } from "./periodic-tasks.ts";
import { podMtu } from "./pod-mtu.ts";
import { addressesOfNode } from "./pods/addresses-of-node.ts";
import { notedDeletions } from "./pods/noted-deletions.ts";
import { podInterfaces } from "./pods/pod-interface.ts";
import { type PodNetwork, type PodNetworkParts, podNetwork } from "./pods/pod-network.ts";
import { type PodRecord, type PodRecords, podRecords } from "./pods/pod-records.ts";
import { removePortmapRules } from "./pods/portmap-rules.ts";
import { type ProblemWatch, watchProblems } from "./problem-watch.ts";
import { refusedPods } from "./refused-pods.ts";
import { rollbackWatchdog } from "./rollback-watchdog.ts";
import { probeServices } from "./service-probe.ts";
import { probeServicesForever, type ServiceProbeLoop } from "./service-probe-loop.ts";
import { type ShareWatch, watchShares } from "./share-watch.ts";
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
  /** Why only a restart can help; undefined: it works. */
  stuck(): string | undefined;
  acting(): Dataplane | undefined;
  metrics: Metrics;
  /** Reads the kernel's own counters into the metrics. */
  refreshMetrics(): Promise<void>;
  /** Lets go of everything; what is in the kernel goes on. */
  stop(): Promise<void>;
}

/** A server that takes longer does not answer: a report is sent again then, since the next may reach another server. */
const API_ANSWER_MS = 5_000;
/** A turn of any loop that takes longer than this will not end. */
const STUCK_MS = 120_000;

/** Starts the node's agent: watches the cluster, programs the model, connects pods, and reports the state. */
export async function startAgent(world: ProgramContext, parts: AgentParts): Promise<RunningAgent> {
  const { config, kernel, dataplanes: planes, clock = systemClock } = parts;
  const { log } = world;
  const stopping = new AbortController();
  const allMetrics = createMetrics();
  const metrics = agentMetrics(allMetrics);
  const transport = parts.failover ? failoverTransport(parts.failover, log) : world.transport();
  const client = createClient(transport, { userAgent: vendorNames.workloads.node });
  const calculator = createCalculator(config.nodeName, vendorNames, {
    foreignAddresses: !config.connectsPods,
    hostPorts: config.connectsPods && config.hostPorts,
  });
  // Notified when the reported state may have changed; no listener yet.
  const changes = { notify: (): void => {} };
  const proxyRules = new ServiceProxyRules({ kernel, clock, log });
  const filter = dataplaneSwitch({
    ...{ open: planes.open, kernel: planes.kernel, proxy: proxyRules, refusal: planes.refusal, clock, log },
    watchdog: rollbackWatchdog({
      directories: config.directories,
      seconds: config.rollbackSeconds,
      pools: () => loop.model.settings.pools.map(({ cidr }) => cidr),
      start: parts.startWatchdog ?? (() => {}),
      log,
    }),
    proxyLeft: () => proxyCompat.answers(),
    proxyScheduled: () => isKubeProxyScheduled(objects.pods.list(), config.nodeName),
    apiAnswers: () => answers(client),
    onChange: () => changes.notify(),
  });
  const loop = new ModelLoop({ calculator, target: together(filter, planes.network), clock, log, metrics });
  const objects = watchObjects(client, calculator, () => loop.poke(), log);
  const netlink = kernel.netlink();
  const records = podRecords(join(config.directories.state, "pods"));
  const nodeAddresses = addressesOfNode(config.nodeName, { records, netlink, pods: () => objects.pods.list() });
  const ipam = createIpam(client, config.nodeName, {
    blocks: () => objects.blocks.list(),
    affinities: () => objects.affinities.list(),
    configuration: () => objects.ipamConfigurations.get(vendorNames.singleton)?.spec,
    pools: () => objects.pools.list(),
    reservations: () => objects.reservations.list(),
    inUse: () => (config.connectsPods ? nodeAddresses() : NOTHING_IN_USE),
  });
  followRecords(records, calculator, () => loop.poke());
  const reserveApiServers = async () => {
    const addresses = await resolveHosts(apiServerNames(world.env));
    // A name that does not resolve for a moment must not give the addresses away.
    if (addresses.length === 0) return;
    calculator.setApiServers(addresses);
    loop.poke();
  };
  void reserveApiServers();
  const podFacts = factsForPods(config, objects, netlink, loop);
  const pods = podNetwork({
    ...{ client, node: config.nodeName, ipam, records, loop, log },
    notes: notedDeletions(config.directories.run),
    interfaces: podInterfaces(kernel, config.directories.sysctl),
    removePortmapRules: (containerId) => removePortmapRules(kernel, containerId),
    ...podFacts,
  });
  const notReady = (): string | undefined => {
    const kinds = objects.waitingFor();
    if (kinds.length > 0) return `waiting for the first list of ${kinds.join(", ")}`;
    return loop.ready ? undefined : "the desired state is not applied yet";
  };
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
    link: () => netlink.link(OVERLAY),
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
  const refused = refusedPods(clock);
  const upkeep: { current?: PeriodicTasks } = {};
  const allProblems = (): NodeProblems => ({
    ...{ model: loop.model, failed: loop.problems(), fill: filter.fill() },
    ...{
      limited: shares.limited(),
      conflicts: ipam.conflicts(),
      losses: overlay.losses(),
      refused: refused.list().filter(({ pod }) => objects.pods.get(pod)),
    },
    own: ownProblems(loop, filter, upkeep.current),
  });
  const problems = watchProblems({
    // What is full, who is limited and what the overlay loses is reported by itself.
    problems: () => problemsTable({ ...allProblems(), fill: [], limited: [], losses: [] }).rows,
    ...{ clock, signal: stopping.signal },
    onChange: () => changes.notify(),
    onLasting: events.problem,
  });
  onceKnown(objects, stopping.signal, upkeep, () =>
    startPeriodicTasks(
      periodicTasks(
        { ...parts, clock },
        {
          ...{ client, objects, ipam, pods, filter, proving, kubeProxyCompat: proxyCompat, netlink, loop, metrics },
          ...{ shares, problems, overlay, events, reserveApiServers },
        },
      ),
      { clock, log, signal: stopping.signal },
    ),
  );
  const watch = netlink.monitor((event) => {
    if (!isOfNode(event)) return;
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
    { filter, loop, records, overlay, problems: allProblems },
  );
  // A DEL that found no socket until now has written its note by now, or calls the socket next.
  if (config.connectsPods) await pods.removeNoted();
  return {
    notReady,
    stuck: () => loop.stuck(STUCK_MS) ?? stuckTasks(upkeep.current, clock),
    acting: () => filter.acting(),
    metrics: allMetrics,
    refreshMetrics: () => refreshMetrics(metrics, { filter, loop, proving }),
    async stop() {
      stopping.abort();
      for (const end of ends) end();
      watch.close();
      await Promise.all(sockets.map((socket) => socket.close()));
      await Promise.all([
        turning,
        upkeep.current?.done,
        proving.done,
        proxyCompat.done,
        shares.done,
        problems.done,
        overlay.done,
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

/** What the agent cannot do on its node. Otherwise only its log would have it. */
function ownProblems(loop: ModelLoop, filter: DataplaneSwitch, upkeep: PeriodicTasks | undefined): NodeProblems["own"] {
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
    ...tasks.map(([task, why]) => errors.AGENT_TASK_FAILED(task, why)),
  ];
}

/** Pods' interfaces come and go all the time, and the code that creates them reports it. */
function isOfNode(event: NetlinkEvent): boolean {
  switch (event.kind) {
    case "link":
      return !event.link.name.startsWith(POD_INTERFACE_PREFIX);
    case "address":
      return !event.address.address.startsWith("fe80:");
    default:
      return event.kind === "lost";
  }
}

/** What connecting a pod asks of the cluster and the node. */
function factsForPods(
  { nodeName, mtu }: AgentConfig,
  { nodes, pools, namespaces }: WatchedObjects,
  netlink: NetlinkPort,
  { model }: ModelLoop,
): Pick<PodNetworkParts, "pools" | "namespace" | "nodeLabels" | "podCidrs" | "mtu"> {
  const spec = () => (nodes.get(nodeName)?.["spec"] ?? {}) as { podCIDRs?: string[] };
  return {
    pools: () => pools.list(),
    namespace: (name) => namespaces.get(name),
    nodeLabels: () => nodes.get(nodeName)?.metadata.labels ?? {},
    podCidrs: () => spec().podCIDRs ?? [],
    mtu: () => mtu || podMtu(netlink.links(), netlink.addresses(), model.nodes.get(nodeName), pools.list()),
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

interface TaskParts {
  /** Resolves the API server's names again. */
  reserveApiServers(): Promise<void>;
  client: ReturnType<typeof createClient>;
  objects: WatchedObjects;
  ipam: Ipam;
  pods: PodNetwork;
  filter: DataplaneSwitch;
  proving: ServiceProbeLoop;
  kubeProxyCompat: KubeProxyCompat;
  shares: ShareWatch;
  problems: ProblemWatch;
  overlay: OverlayWatch;
  events: AgentEvents;
  netlink: NetlinkPort;
  loop: ModelLoop;
  metrics: AgentMetrics;
}

/** Values of the metric's label, which dashboards know. */
const MODE_LABELS: Record<DataplaneState | "none", string> = {
  none: "none",
  Off: "off",
  Active: "ebpf",
  Draining: "drain",
};

async function refreshMetrics(
  metrics: AgentMetrics,
  { filter, loop, proving }: Pick<TaskParts, "filter" | "loop" | "proving">,
): Promise<void> {
  metrics.ready.set(loop.ready ? 1 : 0);
  metrics.servicesProven.set(proving.proven() ? 1 : 0);
  const { mode = "none" } = filter.state();
  for (const [state, label] of Object.entries(MODE_LABELS))
    metrics.dataplaneMode.set(state === mode ? 1 : 0, { mode: label });
  for (const { map, entries, max } of filter.fill()) {
    metrics.mapEntries.set(entries, { map });
    metrics.mapMost.set(max, { map });
  }
  const { columns, rows } = await filter.show("counters");
  for (const row of rows) {
    const {
      hook = "nft",
      reason = "",
      rule = reason,
      packets = "0",
    } = Object.fromEntries(columns.map((column, at) => [column, row[at]]));
    metrics.packets.copy(Number(packets), { hook, reason: rule });
  }
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

/** The new data plane is confirmed when services are proven and its activation has been published since. */
function confirmIfProven(filter: DataplaneSwitch, proving: ServiceProbeLoop): void {
  filter.confirm(proving.noObjection() && filter.announcedLast() === "BPF");
}

function observedServices(filter: DataplaneSwitch, proving: ServiceProbeLoop, notify: () => void): void {
  confirmIfProven(filter, proving);
  if (proving.changed() || (filter.acting() === "BPF" && filter.announcedLast() !== "BPF")) notify();
}

/** In the order a new node needs them: what others must know of it before what people read. */
function periodicTasks(
  { config, dataplanes: planes, clock, failover }: AgentParts & { clock: Clock },
  parts: TaskParts,
): PeriodicTask[] {
  const { client, objects, ipam, pods, filter, proving, kubeProxyCompat: proxyCompat, netlink, loop } = parts;
  let reported: string | undefined;
  return [
    { name: "unfinished claims", run: () => ipam.repair() },
    { name: "addresses in use", run: () => ipam.claimInUse() },
    {
      name: "node",
      async run() {
        const node = objects.nodes.get(config.nodeName);
        if (!node) throw new Error(`there is no Node ${config.nodeName}`);
        const addresses = config.connectsPods
          ? await tunnelAddresses(ipam, config.nodeName, objects.pools.list(), node.metadata.labels ?? {})
          : { v4: undefined, v6: undefined };
        const tunnel = { ...addresses, mac: netlink.link(OVERLAY)?.mac };
        const condition = loop.ready ? networkCondition(vendorNames.workloads.node, clock.now()) : undefined;
        const announced = filter.announcedLast();
        const annotations = {
          ...nodeAnnotations(config, netlink, node, tunnel),
          ...(announced && dataplaneAnnotation(announced)),
        };
        await reportNode(client, node, annotations, condition);
        if (!condition) throw new Error("the desired state is not applied yet");
      },
    },
    {
      name: "own pod",
      async run() {
        const acting = filter.announcement();
        const proxyRules = proxyCompat.report();
        const fullMaps = filter.fill().flatMap((fill) => (isFull(fill) ? [fill.map] : []));
        const report: AgentReport = {
          programs: planes.refusal === undefined ? "loads" : { refused: planes.refusal },
          dataplane: acting,
          servicesProven: proving.proven() && acting === "BPF",
          proxyRules,
          fullMaps,
          limitedWorkloads: [...new Set(parts.shares.limited().map(({ id }) => id))].sort(),
          problems: parts.problems.lasting(),
          overlay: parts.overlay.report(),
        };
        if (reported === JSON.stringify(report)) return;
        const signal = AbortSignal.timeout(API_ANSWER_MS);
        await reportOwnPod(client, { name: config.podName, namespace: config.namespace }, report, signal);
        if (acting !== undefined && acting !== filter.announcedLast()) {
          await announceDataplane(client, config.nodeName, acting, signal);
        }
        reported = JSON.stringify(report);
        if (acting === undefined) return;
        const ofNode = announcedDataplane(objects.nodes.get(config.nodeName)?.metadata.annotations);
        parts.events.dataplane(filter.announcedLast() ?? ofNode, acting);
        filter.announced(acting);
        confirmIfProven(filter, proving);
      },
    },
    {
      name: "API addresses",
      async run() {
        await parts.reserveApiServers();
        if (failover) saveAddresses(failover.file, apiAddresses(objects.endpointSlices.list("default")));
      },
    },
    { name: "metrics", run: () => refreshMetrics(parts.metrics, { filter, loop, proving }) },
    { name: "late releases", run: () => pods.releaseLate() },
    { name: "cluster information", run: () => ensureClusterInformation(client, config.version) },
  ];
}

/** Policy before the ways packets take, and both tried though one fails. */
function together(filter: ModelTarget, network: ModelTarget): ModelTarget {
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
      return { removed: reports.flatMap(({ removed }) => removed) };
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
    problems,
  }: Pick<TaskParts, "filter" | "loop" | "overlay"> & { records: PodRecords; problems: () => NodeProblems },
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

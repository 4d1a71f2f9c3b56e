import type { DataplaneState } from "../api/dataplane.ts";
import { vendorNames } from "../api/names.ts";
import {
  type AgentReport,
  announcedDataplane,
  dataplaneAnnotation,
  type Refusal,
} from "../api/protocol/agent-report.ts";
import type { Client } from "../cluster/client.ts";
import { isFull } from "../dataplane/ebpf/map-fill.ts";
import type { Ipam } from "../ipam/ipam.ts";
import type { NetlinkPort } from "../kernel/netlink/netlink-port.ts";
import type { Clock } from "../kit/clock.ts";
import type { Log } from "../kit/log.ts";
import type { AgentEvents } from "./agent-events.ts";
import type { AgentMetrics } from "./agent-metrics.ts";
import { apiAddresses } from "./api-addresses.ts";
import { saveAddresses } from "./api-failover.ts";
import type { AgentConfig } from "./config.ts";
import type { DataplaneSwitch } from "./dataplane-switch.ts";
import { OVERLAY } from "./dataplanes.ts";
import type { FlowCollector } from "./flows/flow-collector.ts";
import { ensureFirstPools } from "./ipam/first-pools.ts";
import type { KubeProxyCompat } from "./kube-proxy-compat.ts";
import type { ModelLoop } from "./model-loop.ts";
import { ensureClusterInformation } from "./node/cluster-information.ts";
import { resolvedMethod } from "./node/detect-address.ts";
import type { FollowedEncapsulation } from "./node/encapsulation-report.ts";
import { announceDataplane, networkCondition, nodeAnnotations, reportNode } from "./node/node-report.ts";
import { reportOwnPod } from "./node/own-pod-report.ts";
import { tunnelAddresses } from "./node/tunnel-addresses.ts";
import type { OverlayWatch } from "./overlay/overlay-watch.ts";
import type { PeriodicTask } from "./periodic-tasks.ts";
import type { PodNetwork } from "./pods/pod-network.ts";
import type { ProblemWatch } from "./problem-watch.ts";
import type { ServiceProbeLoop } from "./service-probe-loop.ts";
import type { ShareWatch } from "./share-watch.ts";
import type { AgentParts } from "./start-agent.ts";
import type { WatchedObjects } from "./watch-objects.ts";

/** A server that takes longer does not answer: a report is sent again then, since the next may reach another server. */
export const API_ANSWER_MS = 5_000;

/** What the tasks work with. */
export interface TaskParts {
  /** Why eBPF does not act here, whatever is asked for. */
  refusal: Refusal | undefined;
  /** Resolves the API server's names again. */
  reserveApiServers(): Promise<void>;
  client: Client;
  objects: WatchedObjects;
  ipam: Ipam;
  pods: PodNetwork;
  filter: DataplaneSwitch;
  flows: FlowCollector;
  proving: ServiceProbeLoop;
  kubeProxyCompat: KubeProxyCompat;
  shares: ShareWatch;
  problems: ProblemWatch;
  overlay: OverlayWatch;
  encapsulation: FollowedEncapsulation;
  events: AgentEvents;
  netlink: NetlinkPort;
  loop: ModelLoop;
  metrics: AgentMetrics;
  log: Log;
}

/** Values of the metric's label, which dashboards know. */
const MODE_LABELS: Record<DataplaneState | "none", string> = {
  none: "none",
  Off: "off",
  Active: "ebpf",
  Draining: "drain",
};

export async function refreshMetrics(
  metrics: AgentMetrics,
  { filter, flows, loop, proving }: Pick<TaskParts, "filter" | "flows" | "loop" | "proving">,
): Promise<void> {
  const logged = flows.state();
  metrics.flowRows.copy(logged.rows, {});
  metrics.flowsWaiting.set(logged.waiting);
  metrics.flowsMerged.copy(logged.shed.merged, {});
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

/** The new data plane is confirmed when services are proven and its activation has been published since. */
export function confirmIfProven(filter: DataplaneSwitch, proving: ServiceProbeLoop): void {
  filter.confirm(proving.noObjection() && filter.announcedLast() === "BPF");
}

/** In the order a new node needs them: what others must know of it before what people read. */
export function agentTasks(
  { config, clock, failover }: Pick<AgentParts, "config" | "failover"> & { clock: Clock },
  parts: TaskParts,
): PeriodicTask[] {
  const { client, objects, ipam, pods, filter, proving, kubeProxyCompat: proxyCompat, netlink, loop, refusal } = parts;
  let reported: string | undefined;
  let hasFirstPools = false;
  return [
    {
      name: "first pools",
      async run() {
        if (hasFirstPools) return;
        const created = await ensureFirstPools(client, config.firstPools, objects.pools.list());
        if (created.length > 0) parts.log.info({ created }, "created pools");
        // Once: what people delete later stays deleted.
        hasFirstPools = true;
      },
    },
    { name: "unfinished claims", run: () => ipam.repair() },
    { name: "addresses in use", run: () => ipam.claimInUse() },
    {
      name: "node",
      async run() {
        const node = objects.nodes.get(config.nodeName);
        if (!node) throw new Error(`there is no Node ${config.nodeName}`);
        const addresses =
          config.connectsPods && config.connectsNodes
            ? await tunnelAddresses(ipam, config.nodeName, objects.pools.list(), node.metadata.labels ?? {})
            : { v4: undefined, v6: undefined };
        const tunnel = { ...addresses, mac: netlink.link(OVERLAY)?.mac };
        const condition = loop.ready ? networkCondition(vendorNames.workloads.node, clock.now()) : undefined;
        const announced = filter.announcedLast();
        const annotations = {
          ...nodeAnnotations(
            { autodetection: await resolvedAutodetection(config), ...loop.model.settings },
            netlink,
            node,
            tunnel,
          ),
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
          programs: refusal === undefined ? "loads" : { refused: refusal },
          dataplane: acting,
          servicesProven: proving.proven() && acting === "BPF",
          proxyRules,
          fullMaps,
          limitedWorkloads: [...new Set(parts.shares.limited().map(({ id }) => id))].sort(),
          problems: parts.problems.lasting(),
          overlay: parts.overlay.report(),
          encapsulation: parts.encapsulation.report(),
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
        if (failover) saveAddresses(failover.file, apiAddresses(objects.endpointSlices?.list("default") ?? []));
      },
    },
    { name: "metrics", run: () => refreshMetrics(parts.metrics, { ...parts, filter, loop, proving }) },
    { name: "late releases", run: () => pods.releaseLate() },
    { name: "cluster information", run: () => ensureClusterInformation(client, config.version) },
  ];
}

async function resolvedAutodetection({
  autodetection: { v4, v6 },
}: AgentConfig): Promise<AgentConfig["autodetection"]> {
  return { v4: await resolvedMethod(v4), v6: v6 && (await resolvedMethod(v6)) };
}

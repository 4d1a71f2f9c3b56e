import type { Counter, Gauge, Histogram, Metrics } from "../kit/metrics.ts";

/** The agent's own metrics; counters of the kernel are read at each scrape. */
export interface AgentMetrics {
  applySeconds: Histogram;
  applyErrors: Counter;
  resyncs: Counter;
  endpoints: Gauge;
  cniSeconds: Histogram;
  packets: Counter;
  ready: Gauge;
  mapEntries: Gauge;
  mapMost: Gauge;
  workloadEntries: Gauge;
  workloadLimit: Gauge;
  proxyConflicts: Counter;
  dataplaneMode: Gauge;
  servicesProven: Gauge;
  overlayNodes: Gauge;
  bgpSessions: Gauge;
  bgpRoutes: Gauge;
  flowRows: Counter;
  flowsWaiting: Gauge;
  flowsMerged: Counter;
}

export function agentMetrics(metrics: Metrics): AgentMetrics {
  return {
    applySeconds: metrics.histogram(
      "vendor_node_apply_seconds",
      "Time to apply one change of the desired state to the kernel.",
    ),
    applyErrors: metrics.counter("vendor_node_apply_errors_total", "Changes that could not be applied, by code."),
    resyncs: metrics.counter("vendor_node_resyncs_total", "Resyncs with the kernel."),
    endpoints: metrics.gauge("vendor_node_endpoints", "Pods of this node that have policy."),
    cniSeconds: metrics.histogram("vendor_node_cni_seconds", "Duration of CNI plugin calls, by command and result."),
    packets: metrics.counter(
      "vendor_node_packets_total",
      "Packets since the programs were loaded, by hook and reason.",
    ),
    mapEntries: metrics.gauge("vendor_node_map_entries", "Entries of the BPF maps of Services and connections."),
    mapMost: metrics.gauge("vendor_node_map_max_entries", "How many entries each of those maps can have."),
    workloadEntries: metrics.gauge(
      "vendor_node_workload_conntrack_entries",
      "Entries of a pod that has its share of a connection table, so that its new connections are dropped.",
    ),
    workloadLimit: metrics.gauge("vendor_node_workload_conntrack_limit", "How many entries such a pod may have."),
    proxyConflicts: metrics.counter(
      "vendor_node_service_proxy_conflicts_total",
      "How often kube-proxy wrote rules again that were removed.",
    ),
    dataplaneMode: metrics.gauge(
      "vendor_node_dataplane_mode",
      "1 for what the eBPF programs do: none, off, ebpf, drain.",
    ),
    servicesProven: metrics.gauge("vendor_node_services_proven", "1 while Services are served by the eBPF programs."),
    overlayNodes: metrics.gauge(
      "vendor_node_overlay_nodes",
      "Other nodes that packets go to through the overlay: reached by probes there and back, lost, or unverified.",
    ),
    bgpSessions: metrics.gauge("vendor_node_bgp_sessions", "BGP sessions of the node: established or down."),
    bgpRoutes: metrics.gauge("vendor_node_bgp_routes", "Routes of established BGP sessions: accepted or announced."),
    flowRows: metrics.counter("vendor_node_flow_rows_total", "Rows of flows that vendor-flow-logs has."),
    flowsWaiting: metrics.gauge("vendor_node_flow_intervals_waiting", "Intervals of flows that it does not have yet."),
    flowsMerged: metrics.counter(
      "vendor_node_flow_sums_merged_total",
      "Sums of flows merged because there were too many.",
    ),
    ready: metrics.gauge("vendor_node_ready", "1 once the whole desired state has been applied."),
  };
}

/** What Prometheus, its operator and Grafana are given, for those who have them. Every metric in it is one that a program exports; a test compares. */
import type { Names } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";

/** Where the guide has the operator serve its metrics. It declares no port for it: on the node's network a declared port is reserved. */
const OPERATOR_METRICS_PORT = 9441;

interface Alert {
  name: string;
  expression: string;
  /** How long it must be so. */
  lasts: string;
  severity: "critical" | "warning";
  /** One sentence, which may name labels of the series. */
  summary: string;
  /** What to type. */
  next: string;
}

const NODE = "{{ $labels.node }}";
const PROBLEMS = "kubectl -n vendor-system exec POD -- vendor node show problems, in the vendor-node pod of the node";
const STATUS = "vendorctl status";

const ALERTS: readonly Alert[] = [
  {
    name: "VendorTargetDown",
    expression: 'up{namespace=~"vendor-system|vendor-operator"} == 0',
    lasts: "5m",
    severity: "critical",
    summary: "{{ $labels.pod }} does not answer a scrape",
    next: "kubectl -n {{ $labels.namespace }} describe pod {{ $labels.pod }}",
  },
  {
    name: "VendorNodeNotReady",
    expression: "vendor_node_ready == 0",
    lasts: "5m",
    severity: "critical",
    summary: `the agent on node ${NODE} has not applied the whole desired state`,
    next: PROBLEMS,
  },
  {
    name: "VendorNodeApplyErrors",
    expression: "increase(vendor_node_apply_errors_total[10m]) > 0",
    lasts: "10m",
    severity: "warning",
    summary: `changes cannot be applied on node ${NODE}: {{ $labels.code }}`,
    next: "vendorctl explain {{ $labels.code }}",
  },
  {
    name: "VendorServicesUnproven",
    expression: 'vendor_node_services_proven == 0 and ignoring(mode) vendor_node_dataplane_mode{mode="ebpf"} == 1',
    lasts: "5m",
    severity: "critical",
    summary: `eBPF acts on node ${NODE}, and no Service is reached through it`,
    next: PROBLEMS,
  },
  {
    name: "VendorServiceProxyConflict",
    expression: "increase(vendor_node_service_proxy_conflicts_total[15m]) > 0",
    lasts: "0m",
    severity: "warning",
    summary: `kube-proxy writes rules on node ${NODE} that the agent removes`,
    next: STATUS,
  },
  {
    name: "VendorOverlayLosesPackets",
    expression: 'vendor_node_overlay_nodes{state="lost"} > 0',
    lasts: "2m",
    severity: "critical",
    summary: `node ${NODE} does not reach {{ $value }} nodes through the overlay`,
    next: STATUS,
  },
  {
    name: "VendorBgpSessionDown",
    expression: 'vendor_node_bgp_sessions{state="down"} > 0',
    lasts: "5m",
    severity: "warning",
    summary: `{{ $value }} BGP sessions of node ${NODE} are not established`,
    next: `vendorctl node ${NODE} bgp`,
  },
  {
    name: "VendorMapNearlyFull",
    expression: "vendor_node_map_entries / vendor_node_map_max_entries > 0.9",
    lasts: "10m",
    severity: "warning",
    summary: `BPF map {{ $labels.map }} of node ${NODE} is nearly full`,
    next: PROBLEMS,
  },
  {
    name: "VendorPodConnectionsLimited",
    expression: "vendor_node_workload_conntrack_entries > 0",
    lasts: "5m",
    severity: "warning",
    summary: `a pod on node ${NODE} has its share of {{ $labels.table }}, and opens no more connections`,
    next: PROBLEMS,
  },
  {
    name: "VendorCniFails",
    expression: 'rate(vendor_node_cni_seconds_count{result="error"}[10m]) > 0',
    lasts: "10m",
    severity: "warning",
    summary: `CNI {{ $labels.command }} fails on node ${NODE}`,
    next: "kubectl get events -A --field-selector reason=FailedCreatePodSandBox",
  },
  {
    name: "VendorComponentDegraded",
    expression: 'vendor_operator_part_state{state="degraded"} == 1',
    lasts: "5m",
    severity: "critical",
    summary: "the operator reports {{ $labels.part }} as degraded",
    next: STATUS,
  },
  {
    name: "VendorOperatorWithoutLeader",
    expression: "sum(vendor_operator_leader) == 0",
    lasts: "5m",
    severity: "critical",
    summary: "no copy of the operator is the leader",
    next: "kubectl -n vendor-operator get pods,leases",
  },
  {
    name: "VendorDuplicateAddress",
    expression: "vendor_controllers_ipam_duplicate_addresses > 0",
    lasts: "5m",
    severity: "critical",
    summary: "{{ $value }} addresses are on more than one pod",
    next: STATUS,
  },
  {
    name: "VendorAddressesLeak",
    expression: "vendor_controllers_ipam_suspects > 0",
    lasts: "1h",
    severity: "warning",
    summary: "IPAM objects of kind {{ $labels.kind }} are suspected to be leaked, and are not released",
    next: STATUS,
  },
  {
    name: "VendorHostEndpointConflict",
    expression: "vendor_controllers_host_endpoint_conflicts > 0",
    lasts: "15m",
    severity: "warning",
    summary: "automatic host endpoints cannot be created: their names are taken",
    next: "kubectl get hostendpoints.crd.vendor.io",
  },
  {
    name: "VendorFlowsMissing",
    expression: 'vendor_flow_logs_nodes{state="silent"} > 0',
    lasts: "5m",
    severity: "warning",
    summary: "{{ $value }} nodes send no flows",
    next: STATUS,
  },
  {
    name: "VendorFlowDiskFails",
    expression: "vendor_flow_logs_disk_failing == 1",
    lasts: "2m",
    severity: "warning",
    summary: "flows cannot be written to their volume, and wait on their nodes: sums stay exact, times become coarse",
    next: STATUS,
  },
  {
    name: "VendorFlowsNotExported",
    expression: "increase(vendor_flow_logs_export_dropped_records_total[10m]) > 0",
    lasts: "0m",
    severity: "warning",
    summary: "flows are not exported: {{ $labels.reason }}",
    next: STATUS,
  },
  {
    name: "VendorEventLoopBlocked",
    expression: 'nodejs_eventloop_lag_p99_seconds{namespace=~"vendor-system|vendor-operator"} > 1',
    lasts: "15m",
    severity: "warning",
    summary: "{{ $labels.pod }} is too busy to answer in time",
    next: "kubectl -n {{ $labels.namespace }} describe pod {{ $labels.pod }}",
  },
];

/** PodMonitors and a PrometheusRule, kinds of the Prometheus operator, in the namespace that is there before the network. */
export function monitoringObjects({ namespaces, workloads }: Names): KubeObject[] {
  const onNode = [{ sourceLabels: ["__meta_kubernetes_pod_node_name"], targetLabel: "node" }];
  const atOperator = {
    ...{ sourceLabels: ["__meta_kubernetes_pod_ip"], regex: "(.+)", targetLabel: "__address__" },
    replacement: `$1:${OPERATOR_METRICS_PORT}`,
  };
  return [
    podMonitor(workloads.node, namespaces, { port: "metrics", relabelings: onNode }),
    podMonitor(workloads.kubeControllers, namespaces, { port: "health" }),
    podMonitor(workloads.flowLogs, namespaces, { port: "health" }),
    podMonitor(workloads.operator, namespaces, { relabelings: [...onNode, atOperator] }),
    {
      apiVersion: "monitoring.coreos.com/v1",
      kind: "PrometheusRule",
      metadata: { name: "vendor", namespace: namespaces.operator },
      spec: { groups: [{ name: "vendor", rules: ALERTS.map(rule) }] },
    },
  ];
}

function podMonitor(name: string, { operator, system }: Names["namespaces"], endpoint: object): KubeObject {
  return {
    apiVersion: "monitoring.coreos.com/v1",
    kind: "PodMonitor",
    metadata: { name, namespace: operator },
    spec: {
      namespaceSelector: { matchNames: [operator, system] },
      selector: { matchLabels: { "k8s-app": name } },
      podMetricsEndpoints: [{ path: "/metrics", interval: "30s", ...endpoint }],
    },
  };
}

function rule({ name, expression, lasts, severity, summary, next }: Alert): object {
  return {
    alert: name,
    expr: expression,
    for: lasts,
    labels: { severity },
    annotations: { summary, description: `Next: ${next}` },
  };
}

interface Panel {
  title: string;
  unit: "short" | "s" | "bytes" | "percentunit" | "pps" | "ops";
  queries: readonly (readonly [expression: string, legend: string])[];
}

const PANELS: readonly Panel[] = [
  {
    title: "Nodes that are ready, and that serve Services by eBPF",
    unit: "short",
    queries: [
      ["sum(vendor_node_ready)", "ready"],
      ["sum(vendor_node_services_proven)", "Services by eBPF"],
    ],
  },
  {
    title: "Components by state",
    unit: "short",
    queries: [["sum by (state) (vendor_operator_part_state)", "{{state}}"]],
  },
  { title: "Pods with policy", unit: "short", queries: [["vendor_node_endpoints", "{{node}}"]] },
  {
    title: "Data plane",
    unit: "short",
    queries: [["sum by (mode) (vendor_node_dataplane_mode)", "{{mode}}"]],
  },
  {
    title: "Nodes through the overlay",
    unit: "short",
    queries: [["sum by (state) (vendor_node_overlay_nodes)", "{{state}}"]],
  },
  {
    title: "Packets by reason",
    unit: "pps",
    queries: [["sum by (hook, reason) (rate(vendor_node_packets_total[$__rate_interval]))", "{{hook}} {{reason}}"]],
  },
  {
    title: "Fill of BPF maps",
    unit: "percentunit",
    queries: [["max by (map) (vendor_node_map_entries / vendor_node_map_max_entries)", "{{map}}"]],
  },
  {
    title: "Time to apply a change, 99th percentile",
    unit: "s",
    queries: [
      [
        "histogram_quantile(0.99, sum by (le, node) (rate(vendor_node_apply_seconds_bucket[$__rate_interval])))",
        "{{node}}",
      ],
    ],
  },
  {
    title: "Changes that fail, and resyncs",
    unit: "ops",
    queries: [
      ["sum by (code) (rate(vendor_node_apply_errors_total[$__rate_interval]))", "{{code}}"],
      ["sum(rate(vendor_node_resyncs_total[$__rate_interval]))", "resyncs"],
    ],
  },
  {
    title: "CNI calls, 99th percentile",
    unit: "s",
    queries: [
      [
        "histogram_quantile(0.99, sum by (le, command) (rate(vendor_node_cni_seconds_bucket[$__rate_interval])))",
        "{{command}}",
      ],
    ],
  },
  {
    title: "Reconciles of the operator",
    unit: "ops",
    queries: [
      ["sum by (part, outcome) (rate(vendor_operator_reconciles_total[$__rate_interval]))", "{{part}} {{outcome}}"],
    ],
  },
  {
    title: "IPAM",
    unit: "short",
    queries: [
      ["sum by (kind) (vendor_controllers_ipam_suspects)", "suspected: {{kind}}"],
      ["sum(vendor_controllers_ipam_duplicate_addresses)", "duplicate addresses"],
    ],
  },
  {
    title: "BGP sessions",
    unit: "short",
    queries: [["sum by (state) (vendor_node_bgp_sessions)", "{{state}}"]],
  },
  {
    title: "Nodes by how their flows come",
    unit: "short",
    queries: [["sum by (state) (vendor_flow_logs_nodes)", "{{state}}"]],
  },
  {
    title: "Rows of flows",
    unit: "ops",
    queries: [
      ["sum(rate(vendor_flow_logs_rows_total[$__rate_interval]))", "kept"],
      ["sum(rate(vendor_flow_logs_exported_records_total[$__rate_interval]))", "exported"],
      ["sum by (reason) (rate(vendor_flow_logs_export_dropped_records_total[$__rate_interval]))", "{{reason}}"],
    ],
  },
  {
    title: "Flows that are kept",
    unit: "bytes",
    queries: [
      ["vendor_flow_logs_memory_bytes", "in memory"],
      ["vendor_flow_logs_disk_bytes", "on the volume"],
      ["vendor_flow_logs_export_waiting_bytes", "wait for the collector"],
    ],
  },
  {
    title: "Memory",
    unit: "bytes",
    queries: [['process_resident_memory_bytes{namespace=~"vendor-system|vendor-operator"}', "{{pod}}"]],
  },
  {
    title: "Processors",
    unit: "short",
    queries: [
      ['rate(process_cpu_seconds_total{namespace=~"vendor-system|vendor-operator"}[$__rate_interval])', "{{pod}}"],
    ],
  },
  {
    title: "Open files",
    unit: "percentunit",
    queries: [
      [
        'process_open_fds{namespace=~"vendor-system|vendor-operator"} / process_max_fds{namespace=~"vendor-system|vendor-operator"}',
        "{{pod}}",
      ],
    ],
  },
  {
    title: "Event loop lag, 99th percentile",
    unit: "s",
    queries: [['nodejs_eventloop_lag_p99_seconds{namespace=~"vendor-system|vendor-operator"}', "{{pod}}"]],
  },
];

const COLUMNS = 2;
const SIZE = { w: 24 / COLUMNS, h: 8 };

/** A dashboard as Grafana imports it. */
export function grafanaDashboard(): object {
  const datasource = { type: "prometheus", uid: "$datasource" };
  return {
    title: "vendor cluster networking",
    uid: "vendor-cluster-networking",
    tags: ["kubernetes", "networking"],
    schemaVersion: 39,
    editable: true,
    refresh: "30s",
    time: { from: "now-3h", to: "now" },
    templating: {
      list: [{ name: "datasource", label: "Data source", type: "datasource", query: "prometheus" }],
    },
    panels: PANELS.map(({ title, unit, queries }, at) => ({
      id: at + 1,
      type: "timeseries",
      title,
      datasource,
      gridPos: { ...SIZE, x: (at % COLUMNS) * SIZE.w, y: Math.floor(at / COLUMNS) * SIZE.h },
      fieldConfig: { defaults: { unit }, overrides: [] },
      targets: queries.map(([expr, legendFormat], query) => ({
        refId: String.fromCharCode("A".charCodeAt(0) + query),
        datasource,
        expr,
        legendFormat,
      })),
    })),
  };
}

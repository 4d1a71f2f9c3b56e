import { agentMetrics } from "../../agent/agent-metrics.ts";
import { controllersMetrics } from "../../controllers/controllers-metrics.ts";
import { exportMetrics } from "../../flows/export/flow-export.ts";
import { flowLogsMetrics } from "../../flows/flow-logs-metrics.ts";
import type { Metrics } from "../../kit/metrics.ts";
import { processMetrics } from "../../kit/process-metrics.ts";
import { operatorMetrics } from "../../operator/operator-metrics.ts";
import { apiServerMetrics } from "../../v3api/apiserver-metrics.ts";

/** A program that exports metrics, and where. */
export interface Source {
  title: string;
  where: string;
  declare(metrics: Metrics): unknown;
}

export const METRIC_SOURCES: Readonly<Record<string, Source>> = {
  "vendor-node": {
    title: "Node agent",
    where:
      "`/metrics` on the port that `nodeMetricsPort` of the Installation names, at the InternalIP of every node. " +
      "Without it the agent serves no metrics.",
    declare: agentMetrics,
  },
  "vendor-operator": {
    title: "Operator",
    where:
      "`/metrics` on the port that `METRICS_PORT` in the environment of the operator's container names, on loopback; `METRICS_HOST` " +
      "chooses another address of the node. Without it the operator serves no metrics.",
    declare: operatorMetrics,
  },
  "vendor-kube-controllers": {
    title: "vendor-kube-controllers",
    where:
      "`/metrics` on port 9094 of the pod; `prometheusMetricsPort` of the KubeControllersConfiguration moves them.",
    declare: controllersMetrics,
  },
  "vendor-apiserver": {
    title: "vendor.io/v3 API server",
    where: "`/metrics` on port 5443, over TLS and with authentication.",
    declare: apiServerMetrics,
  },
  "vendor-flow-logs": {
    title: "Flow logs",
    where: "`/metrics` on port 8080 of the pod, and on port 5443 over TLS and with authentication.",
    declare: (metrics) => {
      flowLogsMetrics(metrics, { memory: 0, shed: () => [] });
      exportMetrics(metrics);
    },
  },
  process: {
    title: "Every program",
    where:
      "With the metrics of each program above: its process, under the names that dashboards of other programs use.",
    declare: processMetrics,
  },
};

/** Labels by metric, as the programs set them: a declaration has only the name and the help. */
const METRIC_LABELS: Readonly<Record<string, readonly string[]>> = {
  nodejs_version_info: ["version"],
  vendor_apiserver_request_seconds: ["verb", "resource"],
  vendor_apiserver_requests_total: ["verb", "resource", "code"],
  vendor_controllers_ipam_released_total: ["kind"],
  vendor_controllers_ipam_suspects: ["kind"],
  vendor_controllers_reconciles_total: ["controller", "result"],
  vendor_flow_logs_batches_total: ["result"],
  vendor_flow_logs_export_dropped_records_total: ["reason"],
  vendor_flow_logs_export_requests_total: ["result"],
  vendor_flow_logs_nodes: ["state"],
  vendor_flow_logs_shed: ["what"],
  vendor_node_apply_errors_total: ["code"],
  vendor_node_bgp_routes: ["direction"],
  vendor_node_bgp_sessions: ["state"],
  vendor_node_cni_seconds: ["command", "result"],
  vendor_node_dataplane_mode: ["mode"],
  vendor_node_map_entries: ["map"],
  vendor_node_map_max_entries: ["map"],
  vendor_node_overlay_nodes: ["state"],
  vendor_node_packets_total: ["hook", "reason"],
  vendor_node_workload_conntrack_entries: ["namespace", "pod", "table"],
  vendor_node_workload_conntrack_limit: ["namespace", "pod", "table"],
  vendor_operator_part_state: ["part", "state"],
  vendor_operator_put_back_total: ["part"],
  vendor_operator_reconcile_seconds: ["part"],
  vendor_operator_reconciles_total: ["part", "outcome"],
  vendor_operator_writes_total: ["part", "did"],
};

interface Declared {
  name: string;
  type: "counter" | "gauge" | "histogram";
  help: string;
}

/** What programs declare, by default all of them, with the labels of each. */
export function declaredMetrics(
  sources: readonly Source[] = Object.values(METRIC_SOURCES),
): (Declared & { labels: readonly string[] })[] {
  return sources
    .flatMap(({ declare }) => declaredBy(declare))
    .map((metric) => ({ ...metric, labels: METRIC_LABELS[metric.name] ?? [] }));
}

/** What a program would declare, sorted by name. */
function declaredBy(declare: Source["declare"]): Declared[] {
  const declared: Declared[] = [];
  const note = (type: Declared["type"]) => (name: string, help: string) => {
    declared.push({ name, type, help });
    return { add() {}, copy() {}, set() {}, remove() {}, observe() {} };
  };
  declare({ counter: note("counter"), gauge: note("gauge"), histogram: note("histogram"), text: () => "" });
  return declared.sort((a, b) => (a.name < b.name ? -1 : 1));
}

import type { Counter, Gauge, Metrics } from "../kit/metrics.ts";

/** The numbers this program tells about its work. */
export interface ControllersMetrics {
  reconciles: Counter;
  leading: Gauge;
  hostEndpoints: Gauge;
  hostEndpointConflicts: Gauge;
  released: Counter;
  suspects: Gauge;
}

export function controllersMetrics(metrics: Metrics): ControllersMetrics {
  return {
    reconciles: metrics.counter("vendor_controllers_reconciles_total", "Looks at one key, by controller and result"),
    leading: metrics.gauge("vendor_controllers_leading", "1 while this process holds the lease"),
    hostEndpoints: metrics.gauge("vendor_controllers_host_endpoints", "Automatic host endpoints there are"),
    hostEndpointConflicts: metrics.gauge(
      "vendor_controllers_host_endpoint_conflicts",
      "Automatic host endpoints that cannot be made because their names are taken",
    ),
    released: metrics.counter("vendor_controllers_ipam_released_total", "What was taken back, by kind"),
    suspects: metrics.gauge(
      "vendor_controllers_ipam_suspects",
      "What looks abandoned and is still given time, by kind",
    ),
  };
}

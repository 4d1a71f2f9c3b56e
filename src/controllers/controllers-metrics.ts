import type { Counter, Gauge, Metrics } from "../kit/metrics.ts";

/** The metrics of this program. */
export interface ControllersMetrics {
  reconciles: Counter;
  leading: Gauge;
  hostEndpoints: Gauge;
  hostEndpointConflicts: Gauge;
  released: Counter;
  suspects: Gauge;
  duplicates: Gauge;
  servicesWithoutAddress: Gauge;
}

export function controllersMetrics(metrics: Metrics): ControllersMetrics {
  return {
    reconciles: metrics.counter("vendor_controllers_reconciles_total", "Reconciles, by controller and result"),
    leading: metrics.gauge("vendor_controllers_leading", "1 while this process holds the lease"),
    hostEndpoints: metrics.gauge("vendor_controllers_host_endpoints", "Automatic host endpoints"),
    hostEndpointConflicts: metrics.gauge(
      "vendor_controllers_host_endpoint_conflicts",
      "Automatic host endpoints that cannot be created because their names are taken",
    ),
    released: metrics.counter("vendor_controllers_ipam_released_total", "Leaked IPAM objects released, by kind"),
    suspects: metrics.gauge(
      "vendor_controllers_ipam_suspects",
      "Suspected IPAM leaks within the grace period, by kind",
    ),
    duplicates: metrics.gauge(
      "vendor_controllers_ipam_duplicate_addresses",
      "Addresses that more than one running pod has",
    ),
    servicesWithoutAddress: metrics.gauge(
      "vendor_controllers_services_without_address",
      "Services of type LoadBalancer that are to have an address of an IP pool and have none",
    ),
  };
}

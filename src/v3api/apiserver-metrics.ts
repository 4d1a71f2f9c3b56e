import type { Counter, Histogram, Metrics } from "../kit/metrics.ts";

/** Metrics of the aggregated API server. */
export interface ApiServerMetrics {
  requests: Counter;
  requestSeconds: Histogram;
  accessReviews: Counter;
}

export function apiServerMetrics(metrics: Metrics): ApiServerMetrics {
  return {
    requests: metrics.counter("vendor_apiserver_requests_total", "Requests answered."),
    requestSeconds: metrics.histogram("vendor_apiserver_request_seconds", "Time until the answer began."),
    accessReviews: metrics.counter("vendor_apiserver_access_reviews_total", "Access reviews at the main API server."),
  };
}

import { type AgentReport, readAgentReport } from "../../api/protocol/agent-report.ts";
import type { Purpose } from "../checks/check.ts";
import type { RunOptions } from "../checks/run-checks.ts";
import type { SeenService, SeenUnsupported } from "../observation.ts";
import type { Proof } from "../probe/prove-address.ts";
import { type Differently, object } from "./observed.ts";

/** A cluster in which a check finds something, and one in which it does not; `like` is what the two share. */
export interface Row {
  code: string;
  for: Purpose;
  as: "fail" | "warn";
  like?: Differently;
  wrong: Differently;
  fine?: Differently;
  /** In the evidence, so that a person finds the place. */
  names: string;
  options?: RunOptions;
  fineOptions?: RunOptions;
}

export const NOW = Date.parse("2026-01-01T00:00:00Z");
export const operator = (spec: object = {}) => ({
  ...object("Deployment", "vendor-operator", { spec: { template: { spec } } }, "apps/v1"),
  metadata: { name: "vendor-operator", namespace: "vendor-operator" },
});
export const installation = (spec: object = {}) =>
  object("Installation", "default", { spec: { variant: "OpenSource", ...spec } }, "operator.vendor.io/v1");
export const dataplane = (spec: object) => object("DataplaneConfiguration", "default", { spec }, "crd.vendor.io/v1");
export const agents = (body: object = {}) => ({
  ...object("DaemonSet", "vendor-node", body, "apps/v1"),
  metadata: { name: "vendor-node", namespace: "vendor-system" },
});
export const agent = (
  differently: Partial<SeenService["agents"][number]> = {},
  report: Partial<AgentReport> = {},
): SeenService["agents"][number] => ({
  node: "worker-1",
  pod: "vendor-node-x",
  phase: "Running",
  ready: "1/1",
  report: { ...readAgentReport({}), ...report },
  ...differently,
});
export const status = (name: string, type: string, message: string, reason = "Because") =>
  object("VendorStatus", name, { status: { conditions: [{ type, status: "True", reason, message }] } });
export const running = (spec: object = {}): Partial<SeenService> => ({
  method: "operator",
  datastore: "api",
  version: "v3.31.3",
  installation: installation(spec),
  operator: operator({ dnsPolicy: "Default" }),
});
/** eBPF acts, and the proxy is out of its way. */
export const acting = (spec: object = {}): Partial<SeenService> => ({
  ...running({ vendorNetwork: { linuxDataplane: "BPF" } }),
  dataplaneConfiguration: dataplane({ bpfEnabled: true, ...spec }),
});
export const endpointMap = (data: object, place: object = {}) => ({
  ...object("ConfigMap", "orchestrator-services-endpoint", { data }),
  metadata: { name: "orchestrator-services-endpoint", namespace: "vendor-operator", ...place },
});
export const address = (host: unknown, port: unknown = "6443") => ({
  service: {
    ...acting(),
    endpointMap: endpointMap({ ORCHESTRATOR_SERVICE_HOST: host, ORCHESTRATOR_SERVICE_PORT: port }),
  },
});
export const parked = { parked: "by-hand", pods: { wanted: 0, ready: 0 } } as const;
export const proof = (outcome: Proof["outcome"], host = "api.demo.internal"): RunOptions => ({
  proofs: [{ host, port: "6443", outcome, evidence: `${host}: ${outcome}` }],
});
export const unsupported = (what: SeenUnsupported["what"], name: string) => ({
  unsupported: [{ what, object: name, evidence: "it is so" }],
});
export const leftover = (what: "namespace" | "finalizer" | "api-service" | "half-migration", name: string) => ({
  leftovers: [{ what, object: name, evidence: "it is so", terminating: true as const }],
});
export const good = address("api.demo.internal");
export const upgrading = (version: string) => ({ service: { ...running(), version } });

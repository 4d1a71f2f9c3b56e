import type { FlowLogsSpec } from "../resources/flow-logs.ts";
import { parseVersion } from "../tables/version.ts";
import { hasGate, VERSION_GATES } from "../tables/version-gates.ts";
import type { ClusterFacts } from "./facts.ts";
import { type Problem, reporters } from "./problem.ts";
import { singletonProblems } from "./values.ts";

export const FLOW_PROBLEMS = {
  FLOW_RESOURCES_TOO_EARLY: {
    title: "Flow logs or flow UI on a version that has none",
    why: "Older operators do not know these resources, so nothing would happen.",
    fix: "Upgrade to v3.30 or later first.",
    rule: VERSION_GATES.flowLogs.because,
  },
  FLOW_UI_NEEDS_LOGS: {
    title: "The flow UI without flow logs",
    why: "The UI shows what the flow logs API collects; without it there is nothing to show.",
    fix: "Create the FlowLogs resource named default too.",
    rule: "Two custom resources, one enabling the flow logs API and one enabling the flow visualization UI.",
  },
  FLOW_EXPORT_ENDPOINT_MALFORMED: {
    title: "The collector of flows is not a URL",
    why: "Flows are exported by HTTP, so the address says how to connect and where.",
    fix: "Write http://HOST:PORT or https://HOST:PORT, without user, query or fragment.",
    rule: "OTLP over HTTP: the endpoint is a base URL; /v1/logs is appended for log records.",
  },
  FLOW_EXPORT_AUTHORITY_MALFORMED: {
    title: "The authority for the collector is not a certificate",
    why: "Without a certificate nothing that the collector shows would be trusted.",
    fix: "Write the certificate as PEM, from BEGIN CERTIFICATE to END CERTIFICATE, or remove the field.",
    rule: "Certificates are PEM texts.",
  },
} as const;

export const flowProblem = reporters(FLOW_PROBLEMS);

/** FlowLogs and FlowUI alike. */
export function flowResourceProblems(name: string, facts: ClusterFacts): Problem[] {
  const version = parseVersion(facts.version ?? "");
  const early = version && !hasGate(version, "flowLogs");
  const since = VERSION_GATES.flowLogs.version;
  const message = `Flow resources exist from ${since} on, and this cluster has ${facts.version}.`;
  return [...singletonProblems(name), ...(early ? [flowProblem.FLOW_RESOURCES_TOO_EARLY("kind", message)] : [])];
}

const PEM = /^\s*(?:-----BEGIN CERTIFICATE-----[\sA-Za-z0-9+/=]+-----END CERTIFICATE-----\s*)+$/;

/** What a FlowLogs says of exporting. */
export function flowExportProblems(spec: FlowLogsSpec | undefined): Problem[] {
  const { otlp } = spec?.export ?? {};
  if (!otlp) return [];
  const { endpoint, certificateAuthority } = otlp;
  const [path, authority] = ["spec.export.otlp.endpoint", "spec.export.otlp.certificateAuthority"];
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined;
  const isGood = url && /^https?:$/.test(url.protocol) && !/[?#]/.test(endpoint) && url.username + url.password === "";
  return [
    ...(isGood
      ? []
      : [flowProblem.FLOW_EXPORT_ENDPOINT_MALFORMED(path, `"${endpoint}" is not the URL of a collector.`)]),
    ...(certificateAuthority === undefined || PEM.test(certificateAuthority)
      ? []
      : [flowProblem.FLOW_EXPORT_AUTHORITY_MALFORMED(authority, "The text is not a certificate in PEM.")]),
  ];
}

import { parseAddress, V4 } from "../../kit/ip.ts";
import type { DataplaneConfiguration } from "../resources/dataplane-configuration.ts";
import { canWrite, parseOperatingSystem } from "../tables/operating-system.ts";
import { PLATFORM_LIMITS } from "../tables/platform-limits.ts";
import type { ClusterFacts } from "./facts.ts";
import { type Problem, reporters } from "./problem.ts";
import { addressProblems, nameProblems, netProblems, rangeProblems, regexProblems, VALUE_PROBLEMS } from "./values.ts";

export const DATAPLANE_PROBLEMS = {
  DATAPLANE_NAME: {
    title: "Data plane configuration without effect",
    why: "Agents read default and, over it, node.NAME of their own node; any other name has no effect.",
    fix: "Name it default, or node. and the node's name.",
    rule: "Agents read the data plane configuration default.",
  },
  CGROUP_PATH_NOT_WRITABLE: {
    title: "The control-group path cannot be written on this operating system",
    why: "The agent mounts the control-group file system there; on an immutable system most directories refuse that.",
    fix: "Use a path under /run or /var, such as /run/vendor/cgroup.",
    rule: PLATFORM_LIMITS.immutableSystems.because,
  },
  CGROUP_PATH_TWICE: {
    title: "The control-group path is given in both spellings",
    why: "It is one setting; with two values it is unclear which is meant.",
    fix: "Keep cgroupV2Path.",
    rule: "CgroupV2Path is an alias of cgroupV2Path.",
  },
  ROUTE_TABLES_TOO_MANY: {
    title: "Too many routing tables",
    why: "The agent looks at every table it may use.",
    fix: "Give it at most 65535 tables in all.",
    rule: "Routing table ranges hold at most 65535 tables together.",
  },
} as const;

const at = reporters(DATAPLANE_PROBLEMS);
const value = reporters(VALUE_PROBLEMS);

type Spec = DataplaneConfiguration["spec"];

export function dataplaneConfigurationProblems(config: DataplaneConfiguration, facts: ClusterFacts = {}): Problem[] {
  const { spec } = config;
  return [
    ...configNameProblems(config.metadata.name),
    ...regexProblems(spec.bpfDataIfacePattern, "spec.bpfDataIfacePattern"),
    ...regexProblems(spec.bpfL3IfacePattern, "spec.bpfL3IfacePattern"),
    ...regexProblems(spec.mtuIfacePattern, "spec.mtuIfacePattern"),
    ...netProblems(spec.bpfDSROptoutCIDRs, "spec.bpfDSROptoutCIDRs", false),
    ...netProblems(spec.bpfExcludeCIDRsFromNAT, "spec.bpfExcludeCIDRsFromNAT", false),
    ...netProblems(spec.externalNodesList, "spec.externalNodesList", true),
    ...addressProblems(spec.natOutgoingAddress, "spec.natOutgoingAddress", V4),
    ...metricsHostProblems(spec.prometheusMetricsHost),
    ...failsafeProblems(spec, "failsafeInboundHostPorts"),
    ...failsafeProblems(spec, "failsafeOutboundHostPorts"),
    ...portRangeProblems(spec),
    ...routeTableProblems(spec),
    ...cgroupProblems(spec, facts),
  ];
}

/** The setting under either of its spellings. */
function cgroupV2Path(spec: Spec): string | undefined {
  return spec.cgroupV2Path ?? spec.CgroupV2Path;
}

function configNameProblems(name: string): Problem[] {
  if (name === "default") return [];
  if (name.startsWith("node.")) return nameProblems(name, "metadata.name", { dots: true });
  return [at.DATAPLANE_NAME("metadata.name", `No agent reads a data plane configuration named "${name}".`)];
}

function metricsHostProblems(host: string | undefined): Problem[] {
  if (host === undefined || parseAddress(host) || /^[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?$/.test(host)) return [];
  return [value.ADDRESS_MALFORMED("spec.prometheusMetricsHost", `"${host}" is neither a host name nor an IP address.`)];
}

function failsafeProblems(spec: Spec, field: "failsafeInboundHostPorts" | "failsafeOutboundHostPorts"): Problem[] {
  return (spec[field] ?? []).flatMap(({ net }, index) =>
    net === undefined ? [] : netProblems([net], `spec.${field}[${index}].net`, true).map(dropIndex),
  );
}

/** `netProblems` counts entries; here the field is one entry. */
function dropIndex(problem: Problem): Problem {
  return { ...problem, path: problem.path.replace(/\[0\]$/, "") };
}

const PORTS = { from: 1, to: 65535 };

function portRangeProblems(spec: Spec): Problem[] {
  const problems = (spec.nodePortRanges ?? []).flatMap((range, index) => {
    const path = `spec.nodePortRanges[${index}]`;
    const match = /^(\d+)(?::(\d+))?$/.exec(String(range));
    if (!match) return [value.RANGE_BACKWARDS(path, `"${range}" is not a port or a range of ports.`)];
    return rangeProblems(path, Number(match[1]), Number(match[2] ?? match[1]), PORTS);
  });
  const psnat = /^(\d+):(\d+)$/.exec(spec.bpfPSNATPorts ?? "");
  if (psnat) problems.push(...rangeProblems("spec.bpfPSNATPorts", Number(psnat[1]), Number(psnat[2]), PORTS));
  return problems;
}

const MOST_TABLES = 65535;

function routeTableProblems(spec: Spec): Problem[] {
  const ranges = (spec.routeTableRanges ?? []).filter(({ min, max }) => min !== undefined && max !== undefined);
  const total = ranges.reduce((sum, { min, max }) => sum + Math.max(0, max - min + 1), 0);
  return [
    ...ranges.flatMap(({ min, max }, index) =>
      rangeProblems(`spec.routeTableRanges[${index}]`, min, max, { from: 1, to: 4294967295 }),
    ),
    ...(total > MOST_TABLES
      ? [at.ROUTE_TABLES_TOO_MANY("spec.routeTableRanges", `${total} routing tables are too many.`)]
      : []),
  ];
}

function cgroupProblems(spec: Spec, facts: ClusterFacts): Problem[] {
  const problems: Problem[] = [];
  if (spec.cgroupV2Path !== undefined && spec.CgroupV2Path !== undefined) {
    problems.push(at.CGROUP_PATH_TWICE("spec.CgroupV2Path", "cgroupV2Path and CgroupV2Path are the same setting."));
  }
  const path = cgroupV2Path(spec);
  const refusing =
    path === undefined
      ? undefined
      : (facts.nodes ?? []).find((node) => !canWrite(parseOperatingSystem(node.osImage), path));
  if (refusing) {
    const message = `${path} cannot be written on ${refusing.osImage}, which node ${refusing.name} runs.`;
    problems.push(at.CGROUP_PATH_NOT_WRITABLE("spec.cgroupV2Path", message));
  }
  return problems;
}

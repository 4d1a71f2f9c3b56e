import { durationMs } from "../../kit/duration.ts";
import { V4, V6 } from "../../kit/ip.ts";
import type { DataplaneConfiguration } from "../resources/dataplane-configuration.ts";
import { DATAPLANE_SETTINGS, type Setting } from "../resources/dataplane-settings.ts";
import { canWrite, parseOperatingSystem } from "../tables/operating-system.ts";
import { PLATFORM_LIMITS } from "../tables/platform-limits.ts";
import type { ClusterFacts } from "./facts.ts";
import { type Problem, reporters } from "./problem.ts";
import { addressProblems, nameProblems, netProblems, regexProblems } from "./values.ts";

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
  TIMEOUT_TOO_SHORT: {
    title: "A time that connections cannot live with",
    why: "A connection would be forgotten between two of its packets, and then denied.",
    fix: "Give it at least a second.",
    rule: "Conntrack entries are kept for a second or more.",
  },
  VALUE_WITHOUT_EFFECT: {
    title: "A value that is not possible in this release",
    why: "The field has one value here; another one would be stored and change nothing.",
    fix: "Remove the field.",
    rule: "What is accepted has an effect.",
  },
} as const;

const at = reporters(DATAPLANE_PROBLEMS);

type Spec = DataplaneConfiguration["spec"];

export function dataplaneConfigurationProblems(config: DataplaneConfiguration, facts: ClusterFacts = {}): Problem[] {
  const { spec } = config;
  return [
    ...configNameProblems(config.metadata.name),
    ...regexProblems(spec.bpfDataIfacePattern, "spec.bpfDataIfacePattern"),
    ...netProblems(spec.bpfDSROptoutCIDRs, "spec.bpfDSROptoutCIDRs", false),
    ...regexProblems(spec.mtuIfacePattern, "spec.mtuIfacePattern"),
    ...netProblems(spec.bpfExcludeCIDRsFromNAT, "spec.bpfExcludeCIDRsFromNAT", false),
    ...netProblems(spec.externalNodesList, "spec.externalNodesList", true),
    ...addressProblems(spec.deviceRouteSourceAddress, "spec.deviceRouteSourceAddress", V4),
    ...addressProblems(spec.deviceRouteSourceAddressIPv6, "spec.deviceRouteSourceAddressIPv6", V6),
    ...addressProblems(spec.natOutgoingAddress, "spec.natOutgoingAddress", V4),
    ...failsafeProblems(spec, "failsafeInboundHostPorts"),
    ...failsafeProblems(spec, "failsafeOutboundHostPorts"),
    ...fixedProblems(spec),
    ...timeoutProblems(spec),
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

function failsafeProblems(spec: Spec, field: "failsafeInboundHostPorts" | "failsafeOutboundHostPorts"): Problem[] {
  return (spec[field] ?? []).flatMap(({ net }, index) =>
    net === undefined ? [] : netProblems([net], `spec.${field}[${index}].net`, true).map(dropIndex),
  );
}

/** `netProblems` counts entries; here the field is one entry. */
function dropIndex(problem: Problem): Problem {
  return { ...problem, path: problem.path.replace(/\[0\]$/, "") };
}

function fixedProblems(spec: Spec): Problem[] {
  return Object.entries(DATAPLANE_SETTINGS as Record<string, Setting>).flatMap(([field, { fixed }]) => {
    const given = spec[field as keyof Spec];
    if (!fixed || given === undefined || given === fixed.value) return [];
    const message = `spec.${field} can only be ${fixed.value} in this release. ${fixed.because}`;
    return [at.VALUE_WITHOUT_EFFECT(`spec.${field}`, message)];
  });
}

const LEAST_MS = 1_000;

function timeoutProblems({ bpfConntrackTimeouts = {} }: Spec): Problem[] {
  return Object.entries(bpfConntrackTimeouts).flatMap(([field, text]) => {
    if (text === "Auto" || durationMs(text) >= LEAST_MS) return [];
    return [at.TIMEOUT_TOO_SHORT(`spec.bpfConntrackTimeouts.${field}`, `${text} is less than a second.`)];
  });
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

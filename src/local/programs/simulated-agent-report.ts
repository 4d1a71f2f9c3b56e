import { vendorNames } from "../../api/names.ts";
import { agentReportAnnotations, type Refusal } from "../../api/protocol/agent-report.ts";
import { encapsulationOf, tunnelsFor } from "../../api/protocol/pool-tunnels.ts";
import type { IPPool } from "../../api/resources/ip-pool.ts";
import type { ClusterKind } from "../../api/tables/cluster-kinds.ts";
import { canWrite, parseOperatingSystem } from "../../api/tables/operating-system.ts";
import { kernelVerdict, PLATFORM_LIMITS, supportedArchitecture } from "../../api/tables/platform-limits.ts";

/** Put on a node, it makes the agent there refuse with this sentence. */
const REFUSE_ANNOTATION = "local.vendor.io/refuse-programs";

export interface AgentNode {
  annotations: Readonly<Record<string, string>>;
  osImage: string;
  kernelVersion: string;
  architecture: string;
}

export interface AgentSettings {
  bpfEnabled: boolean;
  cgroupV2Path: string | undefined;
}

/** By annotation; null where there must be none. */
export type AgentReport = Readonly<Record<string, string | null>>;

/** Pure: the same node and settings make an agent say the same. */
export function agentReport(
  node: AgentNode,
  settings: AgentSettings,
  kind: ClusterKind,
  pools: readonly IPPool[] = [],
): AgentReport {
  const refusal = refusalOf(node, settings, kind);
  const acts = settings.bpfEnabled && refusal === undefined;
  return agentReportAnnotations({
    programs: refusal === undefined ? "loads" : { refused: refusal },
    dataplane: acts ? "BPF" : "Nftables",
    servicesProven: acts,
    proxyRules: undefined,
    fullMaps: [],
    limitedWorkloads: [],
    problems: [],
    // There are no packets.
    overlay: undefined,
    encapsulation: {
      tunnels: [...new Set(pools.flatMap(tunnelsFor))].sort(),
      pools: pools.map(({ spec }) => `${spec.cidr} ${encapsulationOf(spec)}`).sort(),
    },
  });
}

function refusalOf(node: AgentNode, settings: AgentSettings, kind: ClusterKind): Refusal | undefined {
  const asked = node.annotations[REFUSE_ANNOTATION];
  if (asked !== undefined) return refused(asked || "the kernel does not load the programs");
  if (!supportedArchitecture(node.architecture)) {
    return refused(`architecture ${node.architecture} is not ${PLATFORM_LIMITS.architecture.rule}`);
  }
  const kernel = kernelVerdict(node, kind);
  if (!kernel.ok) return refused(`kernel ${node.kernelVersion} (${node.osImage}) is too old, it needs ${kernel.need}`);
  const path = settings.cgroupV2Path ?? vendorNames.paths.cgroupV2;
  if (!canWrite(parseOperatingSystem(node.osImage), path)) {
    const why = `cannot mount the control groups at ${path}: the file system of ${node.osImage} is read-only there`;
    return { code: "CgroupPathNotWritable", why };
  }
  return undefined;
}

const refused = (why: string): Refusal => ({ code: "EbpfProgramsRefused", why });

import type { DataplaneConfiguration } from "../api/resources/dataplane-configuration.ts";
import type { IPPool } from "../api/resources/ip-pool.ts";
import { FAILSAFE_PORTS } from "../api/tables/failsafe-ports.ts";
import { protocolNumber } from "../api/tables/protocols.ts";
import type { FailsafePort, ModelProblem, Settings } from "./model.ts";
import { toNet } from "./nets.ts";
import { problem } from "./policy/untranslatable.ts";

type Configuration = DataplaneConfiguration["spec"];

const TCP = 6;

const VXLAN = { vni: 4096, port: 4789 };
/** Three pods that open as many connections as they can leave a quarter to all others. */
const WORKLOAD_CONNTRACK_PERCENT = 25;

/** Fields that agents, or the operator, act on. The others are accepted too, so that clusters can move here with what they have. */
export const EFFECTIVE: ReadonlySet<string> = new Set<keyof Configuration>([
  "bpfEnabled",
  "bpfExternalServiceMode",
  "bpfDSROptoutCIDRs",
  "bpfDataIfacePattern",
  "bpfServiceProxyHealthzPort",
  "bpfServiceProxyIptablesCleanupEnabled",
  "cgroupV2Path",
  "CgroupV2Path",
  "defaultEndpointToHostAction",
  "failsafeInboundHostPorts",
  "failsafeOutboundHostPorts",
  "healthPort",
  "ipv6Support",
  "natOutgoingAddress",
  "vxlanVNI",
  "vxlanPort",
  "vxlanMTU",
  "vxlanMTUV6",
  "workloadConntrackPercent",
]);

/** Values that request the only behaviour there is: not to check reverse paths, to let the kernel track the node's connections, no floating IPs. */
const AS_IT_IS: Configuration = { bpfEnforceRPF: "Disabled", bpfHostConntrackBypass: false, floatingIPs: "Disabled" };

/** Fields that are set and have no effect: they are reported. */
export function withoutEffect({ kind, metadata, spec }: DataplaneConfiguration): ModelProblem[] {
  const isIdle = (name: string) => !EFFECTIVE.has(name) && !isAsItIs(name as keyof Configuration, spec);
  const fields = Object.keys(spec).filter(isIdle);
  if (fields.length === 0) return [];
  const message = `in this release these settings have no effect: ${fields.sort().join(", ")}`;
  return [problem(kind, metadata, "SETTINGS_WITHOUT_EFFECT", message)];
}

function isAsItIs(name: keyof Configuration, spec: Configuration): boolean {
  return AS_IT_IS[name] !== undefined && AS_IT_IS[name] === spec[name];
}

/** The default's fields, each overridden by the node's own. */
export function settingsOf(
  common: Configuration | undefined,
  own: Configuration | undefined,
  pools: Iterable<IPPool>,
): Settings {
  const configuration: Configuration = { ...common, ...own };
  return {
    dataplane: configuration.bpfEnabled ? "BPF" : "Nftables",
    ipv6: configuration.ipv6Support ?? true,
    vxlan: {
      vni: configuration.vxlanVNI ?? VXLAN.vni,
      port: configuration.vxlanPort ?? VXLAN.port,
      mtuV4: configuration.vxlanMTU ?? 0,
      mtuV6: configuration.vxlanMTUV6 ?? 0,
    },
    failsafe: {
      inbound: failsafe(configuration.failsafeInboundHostPorts ?? FAILSAFE_PORTS.inbound),
      outbound: failsafe(configuration.failsafeOutboundHostPorts ?? FAILSAFE_PORTS.outbound),
    },
    endpointToHost: ({ Accept: "accept", Drop: "drop", Return: "return" } as const)[
      configuration.defaultEndpointToHostAction ?? "Accept"
    ],
    pools: poolsOf(pools),
    natOutgoingAddress: configuration.natOutgoingAddress || null,
    workloadConntrackPercent: configuration.workloadConntrackPercent ?? WORKLOAD_CONNTRACK_PERCENT,
    configuration: sorted(configuration),
  };
}

/** An empty list closes all of them, which may be intended; an absent one means the default. */
function failsafe(given: readonly { protocol?: string; port: number; net?: string }[]): FailsafePort[] {
  return given.map(({ protocol, port, net }) => ({
    protocol: protocolNumber(protocol ?? "TCP") ?? TCP,
    port,
    net: net === undefined ? null : (toNet(net) ?? null),
  }));
}

function poolsOf(pools: Iterable<IPPool>): Settings["pools"] {
  const found = [...pools].flatMap(({ spec }) => {
    const cidr = toNet(spec.cidr);
    return cidr === undefined ? [] : [{ cidr, natOutgoing: spec.natOutgoing ?? false }];
  });
  return found.sort((a, b) => (a.cidr < b.cidr ? -1 : 1));
}

/** Fields in one order, so that equal settings are equal text. */
function sorted<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) as T;
}

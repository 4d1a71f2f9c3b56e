import { isPodInterface, POD_INTERFACE_PREFIX } from "../api/protocol/pod-network.ts";
import { encapsulationOf, type Tunnel, tunnelsFor } from "../api/protocol/pool-tunnels.ts";
import type { BGPConfiguration } from "../api/resources/bgp-configuration.ts";
import type { DataplaneConfiguration } from "../api/resources/dataplane-configuration.ts";
import { DATAPLANE_SETTINGS, type Setting } from "../api/resources/dataplane-settings.ts";
import type { IPPool } from "../api/resources/ip-pool.ts";
import { protocolNumber } from "../api/tables/protocols.ts";
import type { FailsafePort, ModelProblem, Settings } from "./model.ts";
import { toNet, toNets } from "./nets.ts";
import { problem } from "./policy/untranslatable.ts";

type Configuration = DataplaneConfiguration["spec"];

const TCP = 6;

const TABLE: Readonly<Record<string, Setting>> = DATAPLANE_SETTINGS;

/** Stored fields that have no effect, as an older CRD still accepts them, and values that are not possible: they are reported. */
export function withoutEffect({ kind, metadata, spec }: DataplaneConfiguration): ModelProblem[] {
  const fields = Object.keys(spec).filter((field) => !(field in TABLE) || fixedOtherwise(field, spec));
  if (fields.length === 0) return [];
  const message = `in this release these settings have no effect: ${fields.sort().join(", ")}`;
  return [problem(kind, metadata, "SETTINGS_WITHOUT_EFFECT", message)];
}

function fixedOtherwise(field: string, spec: Configuration): boolean {
  const fixed = TABLE[field]?.fixed;
  return fixed !== undefined && spec[field as keyof Configuration] !== fixed.value;
}

/** What is in force where nothing is set. */
const DEFAULTS = Object.fromEntries(
  Object.entries(TABLE).flatMap(([field, row]) => (row.default === undefined ? [] : [[field, row.default]])),
) as Configuration & { [Field in Defaulted]: NonNullable<Configuration[Field]> };

/** Fields that have one value where nothing is set. */
type Defaulted =
  | (
      | "bpfEnabled"
      | "ipv6Support"
      | "natOutgoingExclusions"
      | "defaultEndpointToHostAction"
      | "workloadConntrackPercent"
      | "serviceLoopPrevention"
    )
  | ("vxlanVNI" | "vxlanPort" | "vxlanMTU" | "vxlanMTUV6" | "failsafeInboundHostPorts" | "failsafeOutboundHostPorts");

/** Each layer overrides those before it. */
export function effectiveConfiguration(...layers: readonly (Configuration | undefined)[]): Configuration {
  return Object.assign({}, ...layers) as Configuration;
}

/** Ours always count. None begins with another: nftables takes no ranges that overlap. */
export function podInterfacePrefixes(...layers: readonly (Configuration | undefined)[]): string[] {
  const { interfacePrefix = "" } = effectiveConfiguration(...layers);
  const all = new Set([POD_INTERFACE_PREFIX, ...interfacePrefix.split(",")].filter(Boolean));
  const isCovered = (prefix: string) => [...all].some((other) => other !== prefix && isPodInterface(prefix, [other]));
  return [...all].filter((prefix) => !isCovered(prefix)).sort();
}

/** The default's fields, each overridden by the node's own, and those by the environment of the node's agent. */
export function settingsOf(
  common: Configuration | undefined,
  own: Configuration | undefined,
  pools: Iterable<IPPool>,
  environment: Configuration = {},
  advertised: readonly BGPConfiguration["spec"][] = [],
): Settings {
  const configuration = effectiveConfiguration(common, own, environment);
  const inForce = { ...DEFAULTS, ...configuration };
  return {
    dataplane: inForce.bpfEnabled ? "BPF" : "Nftables",
    ipv6: inForce.ipv6Support,
    tunnels: tunnelsOf(pools),
    vxlan: {
      vni: inForce.vxlanVNI,
      port: inForce.vxlanPort,
      mtuV4: inForce.vxlanMTU,
      mtuV6: inForce.vxlanMTUV6,
    },
    failsafe: {
      inbound: failsafe(inForce.failsafeInboundHostPorts),
      outbound: failsafe(inForce.failsafeOutboundHostPorts),
    },
    endpointToHost: ({ Accept: "accept", Drop: "drop", Return: "return" } as const)[
      inForce.defaultEndpointToHostAction
    ],
    podInterfacePrefixes: podInterfacePrefixes(configuration),
    pools: poolsOf(pools),
    natOutgoingSparesNodes: inForce.natOutgoingExclusions === "IPPoolsAndHostIPs",
    natOutgoingAddress: configuration.natOutgoingAddress || null,
    workloadConntrackPercent: inForce.workloadConntrackPercent,
    externalNodes: toNets(configuration.externalNodesList),
    serviceLoop: serviceLoop(inForce.serviceLoopPrevention, advertised),
    configuration: sorted(configuration),
    sources: sorted({
      ...sourced(common, "DataplaneConfiguration default"),
      ...sourced(own, "DataplaneConfiguration of the node"),
      ...sourced(environment, "environment of the agent"),
    }),
  };
}

/** What nodes announce for Services. A field of the node's own configuration overrides that of all nodes. */
function serviceLoop(
  action: NonNullable<Configuration["serviceLoopPrevention"]>,
  advertised: readonly BGPConfiguration["spec"][],
): Settings["serviceLoop"] {
  const { serviceClusterIPs, serviceExternalIPs, serviceLoadBalancerIPs }: BGPConfiguration["spec"] = Object.assign(
    {},
    ...advertised,
  );
  const all = [serviceClusterIPs, serviceExternalIPs, serviceLoadBalancerIPs].flatMap((ranges) => ranges ?? []);
  const ranges = action === "Disabled" ? [] : toNets(all.map(({ cidr }) => cidr));
  return { ranges: [...new Set(ranges)].sort(), reject: action === "Reject" };
}

function sourced(configuration: Configuration = {}, source: string): Record<string, string> {
  return Object.fromEntries(Object.keys(configuration).map((field) => [field, source]));
}

/** An empty list closes all of them, which may be intended; an absent one means the default. */
function failsafe(given: readonly { protocol?: string; port: number; net?: string }[]): FailsafePort[] {
  return given.map(({ protocol, port, net }) => ({
    protocol: protocolNumber(protocol ?? "TCP") ?? TCP,
    port,
    net: net === undefined ? null : (toNet(net) ?? null),
  }));
}

function tunnelsOf(pools: Iterable<IPPool>): Tunnel[] {
  const used = new Set([...pools].flatMap(tunnelsFor));
  return [...used].sort();
}

function poolsOf(pools: Iterable<IPPool>): Settings["pools"] {
  const found = [...pools].flatMap(({ spec }) => {
    const cidr = toNet(spec.cidr);
    return cidr === undefined
      ? []
      : [{ cidr, natOutgoing: spec.natOutgoing ?? false, encapsulation: encapsulationOf(spec) }];
  });
  return found.sort((a, b) => (a.cidr < b.cidr ? -1 : 1));
}

/** Fields in one order, so that equal settings are equal text. */
function sorted<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) as T;
}

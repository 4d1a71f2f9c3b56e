import { PROXY_HEALTH_PORT } from "../../agent/kube-proxy-health.ts";
import { type Noun, vendorNames } from "../../api/names.ts";
import { setDefaults } from "../../api/resources/v3-defaults.ts";
import { EFFECTIVE_DEFAULTS } from "../../api/tables/defaults.ts";
import { settingsOf } from "../../calc/settings.ts";
import { effectiveSettings } from "../../controllers/settings/effective-settings.ts";
import { platformOf } from "../../operator/render/platform.ts";

/** The default of a field, by its path such as `spec.ipPools[].cidr`; each is taken from the code that applies it. */
export function fieldDefaults(noun: Noun): ReadonlyMap<string, string> {
  return new Map(Object.entries(DEFAULTS[noun]?.() ?? {}));
}

type Defaults = Record<string, string>;

const DEFAULTS: Partial<Record<Noun, () => Defaults>> = {
  installation: () => Object.fromEntries(EFFECTIVE_DEFAULTS.map(({ path, value }) => [path, value])),
  dataplaneConfiguration,
  kubeControllersConfiguration: () =>
    flat("spec", effectiveSettings(undefined, { enabled: undefined, autoHostEndpoints: undefined })),
  ipPool: () => ofFamilies(served("ipPool", { cidr: "10.0.0.0/16" }), served("ipPool", { cidr: "fd00::/64" })),
  tier: () => served("tier", {}),
  networkPolicy: () => policyDefaults("networkPolicy"),
  globalNetworkPolicy: () => policyDefaults("globalNetworkPolicy"),
  ipamConfiguration: () => ({
    "spec.strictAffinity": "false",
    "spec.autoAllocateBlocks": "true",
    "spec.maxBlocksPerHost": "0",
  }),
};

function policyDefaults(noun: Noun): Defaults {
  const { "spec.types": _, ...others } = served(noun, {});
  return { ...others, "spec.types": "those that have rules; Ingress without rules" };
}

function dataplaneConfiguration(): Defaults {
  const settings = settingsOf(undefined, undefined, []);
  const capital = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);
  const ports = (list: readonly { protocol: number; port: number }[]) =>
    list.map(({ protocol, port }) => `${protocol === 17 ? "UDP" : "TCP"} ${port}`).join(", ");
  const [generic, openshift, mke] = [platformOf("generic"), platformOf("openshift"), platformOf("mke")];
  return {
    "spec.bpfEnabled": `${settings.configuration.bpfEnabled ?? false}`,
    "spec.bpfServiceProxyIptablesCleanupEnabled": "true; false where kube-proxy stays (aks, mke)",
    "spec.bpfServiceProxyHealthzPort": String(PROXY_HEALTH_PORT),
    "spec.bpfExternalServiceMode": "Tunnel",
    "spec.bpfDSROptoutCIDRs": "none",
    "spec.cgroupV2Path": vendorNames.paths.cgroupV2,
    "spec.ipv6Support": String(settings.ipv6),
    "spec.vxlanVNI": `${settings.vxlan.vni}; ${mke.vxlan.vni} on mke`,
    "spec.vxlanPort": `${settings.vxlan.port}; ${mke.vxlan.port} on mke`,
    "spec.vxlanMTU": String(settings.vxlan.mtuV4),
    "spec.vxlanMTUV6": String(settings.vxlan.mtuV6),
    "spec.healthPort": `${generic.healthPort}; ${openshift.healthPort} on openshift`,
    "spec.defaultEndpointToHostAction": capital(settings.endpointToHost),
    "spec.failsafeInboundHostPorts": ports(settings.failsafe.inbound),
    "spec.failsafeOutboundHostPorts": ports(settings.failsafe.outbound),
    "spec.natOutgoingAddress": "the node's address",
    "spec.workloadConntrackPercent": String(settings.workloadConntrackPercent),
  };
}

/** What the v3 API fills in where a field is left out. */
function served(noun: Noun, spec: Record<string, unknown>): Defaults {
  const object = { apiVersion: "", kind: "", metadata: { name: "example" }, spec: { ...spec } };
  setDefaults(noun, object);
  return flat("spec", Object.fromEntries(Object.entries(object.spec).filter(([field]) => !(field in spec))));
}

function ofFamilies(v4: Defaults, v6: Defaults): Defaults {
  return Object.fromEntries(
    Object.entries(v4).map(([path, value]) => [
      path,
      v6[path] === value ? value : `${value} for IPv4, ${v6[path]} for IPv6`,
    ]),
  );
}

function flat(path: string, value: unknown): Defaults {
  if (Array.isArray(value)) return value.length === 0 ? {} : { [path]: value.join(", ") };
  if (typeof value !== "object" || value === null) return { [path]: String(value) };
  return Object.assign({}, ...Object.entries(value).map(([name, inner]) => flat(`${path}.${name}`, inner)));
}

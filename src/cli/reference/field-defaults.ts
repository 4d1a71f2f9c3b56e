import type { Noun } from "../../api/names.ts";
import { DATAPLANE_SETTINGS, type Setting } from "../../api/resources/dataplane-settings.ts";
import { setDefaults } from "../../api/resources/v3-defaults.ts";
import { EFFECTIVE_DEFAULTS } from "../../api/tables/defaults.ts";
import { effectiveSettings } from "../../controllers/settings/effective-settings.ts";

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
  stagedNetworkPolicy: () => policyDefaults("stagedNetworkPolicy"),
  stagedGlobalNetworkPolicy: () => policyDefaults("stagedGlobalNetworkPolicy"),
  stagedKubernetesNetworkPolicy: () => served("stagedKubernetesNetworkPolicy", {}),
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
  const rows: Readonly<Record<string, Setting>> = DATAPLANE_SETTINGS;
  return Object.fromEntries(
    Object.entries(rows).flatMap(([field, row]) => {
      const text = row.defaultIs ?? inWords(row.default);
      return text === undefined ? [] : [[`spec.${field}`, text]];
    }),
  );
}

function inWords(value: unknown): string | undefined {
  if (!Array.isArray(value)) return value === undefined ? undefined : String(value);
  if (value.length === 0) return "none";
  return value.map(({ protocol, port }: { protocol: string; port: number }) => `${protocol} ${port}`).join(", ");
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

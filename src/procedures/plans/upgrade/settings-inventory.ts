import { DATAPLANE_SETTINGS } from "../../../api/resources/dataplane-settings.ts";
import type { Consequence } from "../../../api/tables/fate.ts";
import { REFUSED_FIELDS } from "../../../api/tables/refused-fields.ts";
import type { Workload } from "../../../api/workload-objects.ts";
import {
  CARRIED_VARIABLES,
  CONFIGURATION_VARIABLE,
  LIMITING_ANNOTATIONS,
  REMOVED_ANNOTATIONS,
  REMOVED_VARIABLES,
  type RemovedSetting,
  UNKNOWN_VARIABLE,
} from "../../../releases/not-carried/settings.ts";
import { nameOf, targetOf } from "../../actions/objects/target.ts";
import type { Observation } from "../../observation.ts";
import type { Found } from "./inventory.ts";

const AS_NOW: Consequence = {
  ...{ fate: "changes", why: "It goes; it requests what this release does without it.", todo: "Nothing." },
};

/** What is set outside the service's own resources: variables, annotations, the CNI configuration, Typha, Windows nodes. */
export function settingsNotCarried(observation: Observation): Found[] {
  return [
    ...variables(observation),
    ...annotations(observation),
    ...settingsMap(observation),
    ...typha(observation),
    ...nodes(observation),
    ...etcd(observation),
  ];
}

/** An operator renders its workloads anew: only a plain manifest keeps what people gave its containers. */
function variables({ service, stored, names }: Observation): Found[] {
  if (service.method !== "manifest" || !stored) return [];
  const { kubeControllers } = names.workloads;
  const workloads = [
    service.nodeAgents,
    ...stored.deployments.filter(({ metadata }) => metadata.name === kubeControllers),
  ];
  return workloads.flatMap((workload) => {
    if (!workload) return [];
    const at = nameOf(targetOf(workload));
    const { containers = [] } = (workload as Workload).spec?.template?.spec ?? {};
    return containers.flatMap(({ env = [] }) =>
      env.flatMap(({ name, value }): Found[] => {
        const found = variableNotCarried(name, value ?? "");
        return found ? [{ name, at: value ? `${at} (${value})` : at, ...found }] : [];
      }),
    );
  });
}

function variableNotCarried(name: string, value: string): Consequence | undefined {
  const row = rowOf(REMOVED_VARIABLES, name);
  if (row) return consequenceOf(row, value);
  if (CARRIED_VARIABLES.has(name)) return undefined;
  if (name.startsWith(CONFIGURATION_VARIABLE)) return configurationVariable(name, value);
  return UNKNOWN_VARIABLE;
}

/** Values that older files set by themselves, and that this release has as its defaults. */
const DEFAULTS: Readonly<Record<string, string>> = {
  healthenabled: "true",
  defaultendpointtohostaction: "accept",
  ipv6support: "false",
};

/** `DATAPLANE_LOGSEVERITYSCREEN` is `logSeverityScreen` of DataplaneConfiguration. */
function configurationVariable(name: string, value: string): Consequence | undefined {
  const wanted = name.slice(CONFIGURATION_VARIABLE.length).toLowerCase();
  const named = (field: string) => field.toLowerCase() === wanted;
  if (DEFAULTS[wanted] === value.toLowerCase()) return AS_NOW;
  const removed = Object.entries(REFUSED_FIELDS.dataplaneConfiguration ?? {}).find(([path]) =>
    named(path.slice("spec.".length)),
  );
  if (removed) {
    const [, row] = removed;
    const isIdle = row.idle?.some((one) => String(one).toLowerCase() === value.toLowerCase());
    return isIdle ? AS_NOW : { fate: row.fate, why: row.why, todo: row.todo };
  }
  return Object.keys(DATAPLANE_SETTINGS).some(named) ? undefined : UNKNOWN_VARIABLE;
}

function annotations({ stored, names }: Observation): Found[] {
  const domain = names.groups.served.group;
  return (stored?.annotated ?? []).flatMap(({ object, annotations: all }) =>
    Object.entries(all).flatMap(([key]): Found[] => {
      const short = key.replace(new RegExp(`^(cni\\.)?${domain.replaceAll(".", "\\.")}/`), "");
      const row = key.startsWith(`${LIMITING_ANNOTATIONS.prefix}${domain}/`)
        ? LIMITING_ANNOTATIONS
        : rowOf(REMOVED_ANNOTATIONS, short);
      return row ? [{ name: key, at: object, fate: row.fate, why: row.why, todo: row.todo }] : [];
    }),
  );
}

/** The ConfigMap of plain manifests, with the CNI configuration in it. */
function settingsMap({ service, names }: Observation): Found[] {
  const data = (service.settings?.["data"] ?? {}) as Record<string, string>;
  if (service.method !== "manifest" || !service.settings) return [];
  const at = nameOf(targetOf(service.settings));
  const backend = data[`${names.dialect}_backend`];
  return [
    ...(backend === "bird"
      ? [
          {
            ...{ name: `${names.dialect}_backend`, at: `${at} (bird)`, fate: "lost" as const },
            why: "Plain manifests of this release run no BGP: nodes of other subnets learn no routes.",
            todo: "Set vxlan while the old release runs, and wait until pods connect.",
          },
        ]
      : []),
    ...cniConfiguration(data["cni_network_config"] ?? "", at),
  ];
}

interface Plugin {
  type?: string;
  ipam?: { type?: string; subnet?: string; ranges?: unknown };
}

function cniConfiguration(text: string, at: string): Found[] {
  return pluginsIn(text).flatMap(({ type, ipam }): Found[] => {
    if (type === "bandwidth") {
      const why = "This release does not limit the traffic of single pods.";
      return [{ name: "cni.bandwidth", at, fate: "lost", why, todo: "Limit the node's interface instead." }];
    }
    if (ipam?.type !== "host-local") return [];
    const byNode = ipam.ranges === undefined && (ipam.subnet === undefined || /podcidr$/i.test(ipam.subnet));
    if (byNode) {
      const why = "Pods keep getting addresses of their node's podCIDR.";
      return [{ name: "cni.ipam.host-local", at, fate: "stays", why, todo: "Nothing." }];
    }
    const why =
      "With host-local, pods get addresses of their node's podCIDR only, not of ranges in the CNI configuration.";
    return [{ name: "cni.ipam.host-local", at, fate: "lost", why, todo: "Use IP pools, or the podCIDR of nodes." }];
  });
}

/** Templates have words in place of values: what is no JSON is read as far as the words can be quoted. */
function pluginsIn(text: string): Plugin[] {
  try {
    const parsed = JSON.parse(text.replace(/:\s*(__\w+__)/g, ': "$1"')) as { plugins?: Plugin[] } & Plugin;
    return parsed.plugins ?? [parsed];
  } catch {
    return [];
  }
}

function typha({ stored, names }: Observation): Found[] {
  const found = (stored?.deployments ?? []).filter(({ metadata }) => metadata.name === names.workloads.typha);
  return found.map((workload) => ({
    ...{ name: "typha", at: nameOf(targetOf(workload)), fate: "changes" },
    why: "Agents of this release read the API server themselves; there is no Typha.",
    todo: `Delete it after the upgrade: kubectl delete deployment ${names.workloads.typha} -n ${workload.metadata.namespace}`,
  }));
}

function nodes({ nodes: all }: Observation): Found[] {
  return all
    .filter(({ operatingSystem }) => operatingSystem === "windows")
    .map(({ name }) => ({
      ...{ name: "windows", at: `Node ${name}`, fate: "blocks" },
      why: "This release does not run on Windows nodes: their pods would stay with the old release's network, without policy.",
      todo: `Remove the node first: kubectl delete node ${name}`,
    }));
}

/** What is in etcd is not read here, which is said rather than passed over. */
function etcd({ service }: Observation): Found[] {
  if (service.datastore !== "etcd") return [];
  return [
    {
      ...{ name: "etcd", at: "resources in etcd", fate: "stays" },
      why: "An upgrade does not touch what etcd holds, and this list does not include it.",
      todo: "Compare vendorctl get ippools -o yaml and the other kinds with docs/guide/upgrade.md.",
    },
  ];
}

const rowOf = (rows: readonly RemovedSetting[], name: string) => rows.find(({ names }) => names.includes(name));

function consequenceOf({ fate, why, todo, idle = [] }: RemovedSetting, value: string): Consequence {
  return idle.includes(value) ? AS_NOW : { fate, why, todo };
}

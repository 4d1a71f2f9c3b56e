import { isDeepStrictEqual } from "node:util";
import type { KubeObject } from "../../../../api/object.ts";
import { encapsulationOf } from "../../../../api/protocol/pool-tunnels.ts";
import type { IPPool } from "../../../../api/resources/ip-pool.ts";
import type { ClusterKind } from "../../../../api/tables/cluster-kinds.ts";
import { nameOf, targetOf } from "../../../actions/objects/target.ts";
import { fieldAt } from "../../../field-at.ts";
import type { Found } from "../../upgrade/inventory.ts";
import type { ManifestWorkload } from "../operator/manifest-view.ts";
import {
  AGENT,
  CNI_INSTALLER,
  type CniConfiguration,
  containerIn,
  type LiveManifest,
  variablesOf,
} from "./live-manifest.ts";

/** Something that the public operator's conversion stops at. */
function stopsAt(object: KubeObject, path: string, why: string, todo: string): Found {
  return { name: `${object.kind}.${path}`, at: nameOf(targetOf(object)), fate: "blocks", why, todo };
}

/** Annotations that others write on workloads; any other stops the conversion. */
const KNOWN_ANNOTATIONS =
  /^(kubectl\.kubernetes\.io.*|deprecated\.daemonset\.template\.generation|deployment\.kubernetes\.io\/revision|scheduler\.alpha\.kubernetes\.io\/critical-pod)$/;
const KNOWN_ON_PODS: Readonly<Record<string, string>> = {
  DaemonSet: "cluster-autoscaler.kubernetes.io/daemonset-pod",
  "calico-typha": "cluster-autoscaler.kubernetes.io/safe-to-evict",
};

/** What the conversion refuses of each workload, before it looks at variables. */
export function workloadRefusals(live: LiveManifest, kind: ClusterKind): Found[] {
  const { agents, controllers, typha } = live;
  return [
    ...[agents, controllers, typha].flatMap((workload) => (workload ? ofAnyWorkload(workload) : [])),
    ...ofAgents(agents, kind),
    ...(controllers ? ofControllers(controllers, live) : []),
    ...(typha ? ofTypha(typha) : []),
  ];
}

function ofAnyWorkload(workload: ManifestWorkload): Found[] {
  const { metadata, spec } = workload;
  const onPods = KNOWN_ON_PODS[workload.kind] ?? KNOWN_ON_PODS[metadata.name];
  const unknown = (annotations: Readonly<Record<string, string>> = {}, known?: string) =>
    Object.entries(annotations).flatMap(([key, value]) =>
      KNOWN_ANNOTATIONS.test(key) || (key === known && value === "true") ? [] : [key],
    );
  const annotations = (path: string, keys: readonly string[]) =>
    keys.map((key) =>
      stopsAt(workload, `${path}.${key}`, "The operator's conversion stops at annotations.", "Remove the annotation."),
    );
  const addon = "addonmanager.kubernetes.io/mode";
  return [
    ...(metadata.labels?.[addon] === undefined
      ? []
      : [
          stopsAt(
            workload,
            `metadata.labels.${addon}`,
            "An add-on manager would undo it.",
            "Take it from the add-on manager.",
          ),
        ]),
    ...annotations("metadata.annotations", unknown(metadata.annotations)),
    ...annotations("spec.template.metadata.annotations", unknown(spec.template.metadata?.annotations, onPods)),
  ];
}

const OS_LABELS: readonly string[] = ["kubernetes.io/os", "beta.kubernetes.io/os"];

function foreignSelector(workload: ManifestWorkload): string[] {
  const { nodeSelector = {} } = workload.spec.template.spec;
  return Object.entries(nodeSelector).flatMap(([key, value]) =>
    OS_LABELS.includes(key) && value === "linux" ? [] : [key],
  );
}

/** Nodes that a provider has no agents on; the one affinity that the operator takes, and only there. */
const PROVIDER_AFFINITY: Partial<Record<ClusterKind, { key: string; value: string }>> = {
  aks: { key: "type", value: "virtual-kubelet" },
  eks: { key: "eks.amazonaws.com/compute-type", value: "fargate" },
};

function ofAgents(agents: ManifestWorkload, kind: ClusterKind): Found[] {
  const pod = agents.spec.template.spec;
  const { affinity } = pod as { affinity?: object };
  const known = PROVIDER_AFFINITY[kind];
  const matchExpressions = known && [{ key: known.key, operator: "NotIn", values: [known.value] }];
  const expected = known && {
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions }] } },
  };
  const at = (path: string, why: string, todo: string) => stopsAt(agents, path, why, todo);
  const paths: Readonly<Record<string, string>> = {
    ...{ "lib-modules": "/lib/modules", "var-run-calico": "/var/run/calico" },
    ...{ "var-lib-calico": "/var/lib/calico", "xtables-lock": "/run/xtables.lock" },
    ...(containerIn(pod, CNI_INSTALLER) ? { "cni-bin-dir": "/opt/cni/bin", "cni-net-dir": "/etc/cni/net.d" } : {}),
  };
  const volume = (name: string) => pod.volumes?.find((one) => one.name === name);
  const flexVolume = [volume("flexvol-driver-host"), containerIn(pod, "flexvol-driver")];
  return [
    ...(containerIn(pod, AGENT)
      ? []
      : [at(`spec.template.spec.containers.${AGENT}`, "The operator reads everything from it.", "Restore it.")]),
    ...(affinity === undefined || isDeepStrictEqual(affinity, expected)
      ? []
      : [at("spec.template.spec.affinity", "The operator's agents have no affinity.", "Remove it.")]),
    ...foreignSelector(agents).map((key) =>
      at(`spec.template.spec.nodeSelector.${key}`, "The operator's agents run on every Linux node.", "Remove it."),
    ),
    ...(agents.spec.updateStrategy?.type === "OnDelete"
      ? [at("spec.updateStrategy", "The operator takes RollingUpdate only.", "Set its type to RollingUpdate.")]
      : []),
    ...Object.entries(paths).flatMap(([name, path]) =>
      volume(name)?.hostPath?.path === path
        ? []
        : [at(`spec.template.spec.volumes.${name}`, `The operator expects ${path}.`, `Mount ${path} from the host.`)],
    ),
    ...(flexVolume.filter(Boolean).length === 1
      ? [
          at(
            "spec.template.spec.volumes.flexvol-driver-host",
            "Without its init container the operator stops.",
            "Remove both, or restore both.",
          ),
        ]
      : []),
  ];
}

function ofControllers(controllers: ManifestWorkload, { maps }: LiveManifest): Found[] {
  const pod = controllers.spec.template.spec;
  const container = pod.containers.find(({ name }) => name === "calico-kube-controllers");
  const allowed: Readonly<Record<string, readonly string[]>> = {
    ENABLED_CONTROLLERS: ["node", "node,loadbalancer"],
    AUTO_HOST_ENDPOINTS: ["disabled"],
  };
  const wrong = variablesOf(container, maps).flatMap(({ name, value }): Found[] => {
    const values = allowed[name];
    if (!values || values.includes(value?.toLowerCase() ?? "")) return [];
    const field = "spec.controllers.node.hostEndpoint.autoCreate";
    const todo =
      name === "AUTO_HOST_ENDPOINTS"
        ? `Set ${field} of KubeControllersConfiguration default, and remove the variable.`
        : `Set it to ${values.join(" or ")}.`;
    const why = `The operator takes ${values.join(" or ")} only.`;
    return [{ name, at: nameOf(targetOf(controllers)), fate: "blocks", why, todo }];
  });
  const { affinity } = pod as { affinity?: object };
  return affinity === undefined
    ? wrong
    : [
        ...wrong,
        stopsAt(controllers, "spec.template.spec.affinity", "The operator's controllers have none.", "Remove it."),
      ];
}

function ofTypha(typha: ManifestWorkload): Found[] {
  const path = "spec.template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution";
  return [
    ...foreignSelector(typha).map((key) =>
      stopsAt(
        typha,
        `spec.template.spec.nodeSelector.${key}`,
        "The operator's Typha runs on every Linux node.",
        "Remove it.",
      ),
    ),
    ...(fieldAt(typha, path) === undefined
      ? []
      : [stopsAt(typha, path, "The operator takes preferred node affinity only.", "Remove it.")]),
  ];
}

const SYSCTLS: readonly string[] = ["intvl", "probes", "time"].map((name) => `net.ipv4.tcp_keepalive_${name}`);

/** Of the configuration that the installer writes on nodes, with the backend of routes. */
export function cniRefusals(
  cni: CniConfiguration | undefined,
  { backend, settings }: { backend: string; settings: KubeObject },
): Found[] {
  const at = (path: string, why: string, todo: string) =>
    stopsAt(settings, `data.cni_network_config${path}`, why, todo);
  if (!cni) return [at("", "It is no CNI configuration in JSON.", "Restore the published one.")];
  const plugin = cni.plugins.find(({ type }) => type === "calico");
  if (!plugin) return [at("", "It has no plugin of type calico.", "Restore the published one.")];
  const { ipam = {}, feature_control: features = {} } = plugin;
  const sysctls = Object.keys(cni.plugins.find(({ type }) => type === "tuning")?.sysctl ?? {});
  return [
    ...(cni.name === "k8s-pod-network"
      ? []
      : [at(".name", "The operator's network is called k8s-pod-network.", "Rename it.")]),
    ...(features.floating_ips ? [at(".feature_control.floating_ips", "The operator has none.", "Disable it.")] : []),
    ...(features.ip_addrs_no_ipam
      ? [at(".feature_control.ip_addrs_no_ipam", "The operator has none.", "Disable it.")]
      : []),
    ...sysctls
      .filter((key) => !SYSCTLS.includes(key))
      .map((key) => at(`.sysctl.${key}`, "The operator sets the three of TCP keepalive only.", "Remove it.")),
    ...ipamRefusals(ipam, backend, at),
  ];
}

function ipamRefusals(
  ipam: Readonly<Record<string, unknown>>,
  backend: string,
  at: (path: string, why: string, todo: string) => Found,
): Found[] {
  const { type } = ipam;
  if (type !== "calico-ipam" && type !== "host-local")
    return [at(".ipam.type", "The operator knows calico-ipam and host-local.", "Use one of these.")];
  const unfit = type === "calico-ipam" ? "none" : "vxlan";
  const fields = type === "calico-ipam" ? ["ipv4_pools", "ipv6_pools"] : ["routes", "dataDir", "resolvConf"];
  const subnets: readonly unknown[] = ["", undefined, "usePodCidr", "usePodCidrIPv6"];
  const isForeign = type === "host-local" ? !subnets.includes(ipam["subnet"]) : ipam["subnet"] !== undefined;
  return [
    ...(backend === unfit
      ? [at(".ipam.type", `The operator has no ${type} with the backend ${unfit}.`, "Change one of the two.")]
      : []),
    ...[...fields.filter((field) => isSet(ipam[field])), ...(isForeign ? ["subnet"] : [])].map((field) =>
      at(`.ipam.${field}`, "The operator has no field for it.", "Remove it."),
    ),
  ];
}

const isSet = (value: unknown) => value !== undefined && value !== "" && !(Array.isArray(value) && value.length === 0);

/** Of the pools that the operator takes over: the first of each family, the default one before others. */
export function pickedPools(pools: readonly KubeObject[]): (IPPool & KubeObject)[] {
  const enabled = (pools as readonly (IPPool & KubeObject)[]).filter(({ spec }) => !spec.disabled);
  return [false, true].flatMap((isIPv6) => {
    const family = enabled.filter(({ spec }) => spec.cidr.includes(":") === isIPv6);
    const pool = family.find(({ metadata }) => metadata.name.startsWith("default-ipv")) ?? family[0];
    return pool ? [pool] : [];
  });
}

/** A pool that is not to the letter what the operator would make of it is "not owned", and its status stays Degraded. */
export function poolRefusals(
  pools: readonly KubeObject[],
  { cni, backend }: { cni: CniConfiguration | undefined; backend: string },
): Found[] {
  const picked = pickedPools(pools);
  const {
    type,
    assign_ipv4: v4 = "true",
    assign_ipv6: v6 = "false",
  } = cni?.plugins.find((one) => one.type === "calico")?.ipam ?? {};
  const has = (isIPv6: boolean) => picked.some(({ spec }) => spec.cidr.includes(":") === isIPv6);
  const families: Found[] =
    type !== "calico-ipam"
      ? []
      : (
          [
            [v4.toLowerCase() === "true" && !has(false), "assign_ipv4", "There is no enabled IPv4 pool."],
            [v6.toLowerCase() === "true" && !has(true), "assign_ipv6", "There is no enabled IPv6 pool."],
            [
              v6.toLowerCase() !== "true" && has(true),
              "assign_ipv6",
              "There is an IPv6 pool that the plugin does not assign from.",
            ],
          ] as const
        ).flatMap(([wrong, field, why]) =>
          wrong
            ? [
                {
                  name: `cni_network_config.ipam.${field}`,
                  at: "ConfigMap kube-system/calico-config",
                  fate: "blocks",
                  why,
                  todo: "Make the two agree.",
                },
              ]
            : [],
        );
  return [...families, ...picked.flatMap((pool) => ofPool(pool, backend))];
}

const USES = ["Workload", "Tunnel"];

function ofPool(pool: IPPool & KubeObject, backend: string): Found[] {
  const { spec, metadata } = pool;
  const defaults: Readonly<Record<string, unknown>> = {
    ...(isDeepStrictEqual(spec.allowedUses, USES) ? {} : { allowedUses: USES }),
    ...(spec.assignmentMode ? {} : { assignmentMode: "Automatic" }),
    ...(spec.nodeSelector ? {} : { nodeSelector: "all()" }),
    ...(spec.blockSize ? {} : { blockSize: spec.cidr.includes(":") ? 122 : 26 }),
  };
  const encapsulation = encapsulationOf(spec);
  const patch = `kubectl patch ippools.crd.projectcalico.org ${metadata.name} --type merge -p '${JSON.stringify({ spec: defaults })}'`;
  return [
    ...Object.keys(defaults).map((field) =>
      stopsAt(pool, `spec.${field}`, "The operator takes over pools only that have what it would write there.", patch),
    ),
    ...(backend === "vxlan" && !encapsulation.startsWith("VXLAN")
      ? [
          stopsAt(
            pool,
            "spec.ipipMode",
            `The operator needs BGP for ${encapsulation}.`,
            "Migrate the pool to VXLAN first: vendorctl --names calico migrate encapsulation --to vxlan.",
          ),
        ]
      : []),
  ];
}

import { isDeepStrictEqual } from "node:util";
import type { Names } from "../../../../api/names.ts";
import type { KubeObject } from "../../../../api/object.ts";
import { parseDataplaneVariables } from "../../../../api/protocol/dataplane-variables.ts";
import { encapsulationOf } from "../../../../api/protocol/pool-tunnels.ts";
import type { DataplaneConfiguration } from "../../../../api/resources/dataplane-configuration.ts";
import type { InstallationSpec } from "../../../../api/resources/installation.ts";
import type { IPPool } from "../../../../api/resources/ip-pool.ts";
import { CLUSTER_KINDS, type ClusterKind } from "../../../../api/tables/cluster-kinds.ts";
import type { CarriedEdit } from "../../../merge/merge-manifest.ts";
import type { Found } from "../../upgrade/inventory.ts";
import { carriedEdits } from "./carried-edits.ts";
import { type ManifestWorkload, manifestView, type PodTemplateSpec, pluginIn, variablesOf } from "./manifest-view.ts";
import { VARIABLES } from "./variables.ts";

export type Network = NonNullable<InstallationSpec["vendorNetwork"]>;
type Pool = NonNullable<Network["ipPools"]>[number];

/** A plain manifest as it is in a cluster. */
interface ManifestInstallation {
  kind: ClusterKind;
  /** Its objects, with the edits. */
  objects: readonly KubeObject[];
  /** What differs from the published file. */
  edits: readonly CarriedEdit[];
  pools: readonly KubeObject[];
  /** What agents run now by the DataplaneConfiguration; a variable wins over it. */
  ebpf: boolean;
}

export interface Conversion {
  installation: InstallationSpec;
  /** Fields of the DataplaneConfiguration that variables have set. */
  configuration: DataplaneConfiguration["spec"];
  /** Each edit that is kept, and the field that has it. */
  carried: { edit: string; field: string }[];
  /** What ends with the manifest. */
  notCarried: Found[];
}

/** What an installation comes to while it is converted. */
export interface Draft {
  spec: InstallationSpec;
  network: Network;
  configuration: DataplaneConfiguration["spec"];
  kind: ClusterKind;
  ebpf: boolean;
  /** Names of variables whose value has no field. */
  refused: Set<string>;
}

/**
 * The custom resources that ask the operator for what a plain manifest has. Pure. What the operator does by itself is left out; what it would do
 * in another way is asked for by name. Every edit is either carried or listed.
 */
export function convertManifest(manifest: ManifestInstallation, names: Names): Conversion {
  const { agents, agent, controllers, settings } = manifestView(manifest.objects, names);
  const variables = variablesOf(agent, settings, names);
  const { spec: configuration, unknown, wrong } = parseDataplaneVariables(Object.fromEntries(variables));
  const network: Network = { serviceProxyManagement: "Disabled" };
  const draft: Draft = {
    spec: { variant: "OpenSource" },
    ...{ network, configuration, kind: manifest.kind },
    ebpf: configuration.bpfEnabled ?? manifest.ebpf,
    refused: new Set([...unknown, ...wrong.map(({ name }) => name)]),
  };
  for (const [name, value] of variables) {
    const row = VARIABLES[name];
    if (row && (value === undefined || !row.carry(draft, value))) draft.refused.add(name);
  }
  network.linuxDataplane = draft.ebpf ? "BPF" : "Nftables";
  addressing(draft, variables, manifest.pools);
  cniConfiguration(draft, settings["cni_network_config"]);
  if (agents) nodePods(draft, agents, names);
  if (controllers) controlPlane(draft, controllers);
  Object.assign(draft.spec, imageSource(agent?.image) ?? {});
  const pullSecrets = [agents, controllers].flatMap((workload) => workload?.spec.template.spec.imagePullSecrets ?? []);
  const unique = [...new Map(pullSecrets.map((secret) => [secret.name, { name: secret.name }])).values()];
  if (unique.length > 0) draft.spec.imagePullSecrets = unique;
  const { vendorNetwork: _, ...spec } = draft.spec;
  return {
    installation: { ...spec, vendorNetwork: network },
    configuration,
    ...carriedEdits(manifest.edits, { refused: draft.refused, image: agent?.image }, names),
  };
}

/** Where pods' addresses come from, and who leads to them: one of two ways an operator has too. */
function addressing(
  { spec, network, refused }: Draft,
  variables: ReadonlyMap<string, string | undefined>,
  pools: readonly KubeObject[],
): void {
  const byNode = variables.get("USE_POD_CIDR") === "true";
  const routes = (variables.get("NETWORKING_BACKEND") || "vxlan") !== "none";
  const ours = (spec.cni?.type ?? "Vendor") === "Vendor";
  if (ours && byNode === routes) refused.add(byNode ? "USE_POD_CIDR" : "NETWORKING_BACKEND");
  if (byNode) spec.cni = { ...spec.cni, type: spec.cni?.type ?? "Vendor", ipam: { type: "HostLocal" } };
  // A pool that the Installation cannot describe stays as it is: the operator leaves pools alone that are not listed.
  network.ipPools = byNode ? [] : pools.flatMap((pool) => poolOf(pool as IPPool & KubeObject) ?? []);
}

/** The pool as the Installation lists it; undefined where it has no words for it. */
function poolOf({ metadata, spec }: IPPool & KubeObject): Pool | undefined {
  const { cidr, natOutgoing = false, blockSize, nodeSelector } = spec;
  if (spec.disableBGPExport || spec.namespaceSelector !== undefined) return undefined;
  return {
    name: metadata.name,
    cidr,
    encapsulation: encapsulationOf(spec),
    natOutgoing: natOutgoing ? "Enabled" : "Disabled",
    ...(blockSize === undefined ? {} : { blockSize }),
    ...(nodeSelector === undefined ? {} : { nodeSelector }),
    ...(spec.allowedUses ? { allowedUses: spec.allowedUses } : {}),
    ...(spec.assignmentMode ? { assignmentMode: spec.assignmentMode } : {}),
    ...(spec.disabled ? { disableNewAllocations: true } : {}),
  };
}

function cniConfiguration({ network }: Draft, text: string | undefined): void {
  const { mtu, container_settings: settings, policy_setup_timeout_seconds: timeout } = pluginIn(text) ?? {};
  if (mtu) network.mtu ??= mtu;
  if (settings?.allow_ip_forwarding) network.containerIPForwarding = "Enabled";
  if (timeout) network.linuxPolicySetupTimeoutSeconds = timeout;
}

function nodePods(draft: Draft, { spec: { updateStrategy, template } }: ManifestWorkload, names: Names): void {
  const { spec } = draft;
  const usual = CLUSTER_KINDS[draft.kind].cniDirectories;
  const pathOf = (volume: string) => template.spec.volumes?.find(({ name }) => name === volume)?.hostPath?.path;
  const [binDir, confDir] = [pathOf("cni-bin-dir"), pathOf("cni-conf-dir")];
  if (binDir && binDir !== usual.binDir) spec.cni = { ...spec.cni, binDir };
  if (confDir && confDir !== usual.confDir) spec.cni = { ...spec.cni, confDir };
  const { type = "RollingUpdate", rollingUpdate } = updateStrategy ?? {};
  const maxUnavailable = rollingUpdate?.maxUnavailable ?? 1;
  if (type === "OnDelete") spec.nodeUpdateStrategy = { type };
  else if (maxUnavailable !== 1) spec.nodeUpdateStrategy = { type, rollingUpdate: { maxUnavailable } };
  resources(draft, "Node", template.spec, names.workloads.node);
}

/** What the operator gives its Deployments by itself. */
const OS = "kubernetes.io/os";
const CONTROL_PLANE_TAINTS = [
  "CriticalAddonsOnly",
  "node-role.kubernetes.io/control-plane",
  "node-role.kubernetes.io/master",
];
const REPLICAS = 2;

function controlPlane(draft: Draft, { spec: { replicas = REPLICAS, template } }: ManifestWorkload): void {
  const { spec } = draft;
  const { nodeSelector = {}, tolerations = [], containers } = template.spec;
  const { [OS]: _, ...selected } = nodeSelector;
  const tolerated = (tolerations as { key?: string }[]).filter(({ key = "" }) => !CONTROL_PLANE_TAINTS.includes(key));
  if (replicas !== REPLICAS && replicas > 0) spec.controlPlaneReplicas = replicas;
  if (Object.keys(selected).length > 0) spec.controlPlaneNodeSelector = selected;
  if (tolerated.length > 0) spec.controlPlaneTolerations = tolerated as never;
  resources(draft, "KubeControllers", template.spec, containers[0]?.name ?? "");
}

/** The operator's own requests, which the published manifests have too. */
const REQUESTS = {
  Node: { cpu: "100m", memory: "128Mi" },
  KubeControllers: { cpu: "20m", memory: "96Mi" },
} as const;

function resources({ spec }: Draft, componentName: keyof typeof REQUESTS, pod: PodTemplateSpec, named: string): void {
  const set = pod.containers.find(({ name }) => name === named)?.resources ?? {};
  if (isDeepStrictEqual(set, { requests: REQUESTS[componentName] })) return;
  spec.componentResources = [...(spec.componentResources ?? []), { componentName, resourceRequirements: set }];
}

type ImageSource = Pick<InstallationSpec, "registry" | "imagePath" | "imagePrefix">;

const PUBLISHED = "registry.vendor.io/vendor";

/** Where images come from; nothing where it is where they are published, undefined where it is no image of ours. */
function imageSource(image: string | undefined): ImageSource | undefined {
  const [, place = "", imagePrefix = ""] = /^(?:(.+)\/)?([^/:@]*)vendor:[^/:@]+$/.exec(image ?? "") ?? [undefined];
  if (place === "") return undefined;
  const [registry = "", ...path] = place.split("/");
  const hasHost = /[.:]|^localhost$/.test(registry);
  const from = hasHost ? { registry, imagePath: path.join("/") } : { registry: place, imagePath: "" };
  return { ...(place === PUBLISHED ? {} : from), ...(imagePrefix === "" ? {} : { imagePrefix }) };
}

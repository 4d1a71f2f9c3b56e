import { gunzipSync } from "node:zlib";
import type { Names } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { readAgentReport } from "../../api/protocol/agent-report.ts";
import { compareVersions, parseVersion } from "../../api/tables/version.ts";
import type { Pod, Workload } from "../../api/workload-objects.ts";
import { fieldAt } from "../field-at.ts";
import type { InstallMethod, SeenService } from "../observation.ts";
import { type ClusterObjects, nodeAgentsAmong } from "./cluster-objects.ts";

/** What is installed of the service, how it came there and which version it is. */
export function seeService(seen: ClusterObjects, names: Names): SeenService {
  const { ours } = seen;
  const the = (objects: readonly KubeObject[]) => objects.find(({ metadata }) => metadata.name === names.singleton);
  const nodeAgents = nodeAgentsAmong(seen.daemonSets, names);
  const settings = seen.configMaps.find(({ metadata }) => metadata.name === names.manifests.configMap);
  const operator = seen.operators.find(({ metadata }) => metadata.namespace === names.namespaces.operator);
  const release = newestRelease(seen.releases);
  const installation = the(ours.installation);
  const clusterInformation = the(ours.clusterInformation);
  const anyOperator = operator ?? seen.operators[0];
  const method = methodOf({ installation, operator: anyOperator, nodeAgents, release });
  return {
    method,
    ...(method === "manifest" && nodeAgents ? { variant: variantOf(nodeAgents, names) } : {}),
    datastore: datastoreOf(method, nodeAgents, settings, names),
    ...versionOf({ clusterInformation, installation, nodeAgents, operator: anyOperator }, names),
    installation,
    apiServer: the(ours.apiServer),
    flowLogs: the(ours.flowLogs),
    flowUI: the(ours.flowUI),
    statuses: ours.status,
    dataplaneConfiguration: the(ours.dataplaneConfiguration),
    nodeConfigurations: ours.dataplaneConfiguration.filter(({ metadata }) => metadata.name.startsWith("node.")),
    kubeControllersConfiguration: the(ours.kubeControllersConfiguration),
    clusterInformation,
    pools: ours.ipPool,
    operator: anyOperator,
    operatorLease: leaseOf(seen.operatorLease),
    nodeAgents,
    agents: seen.agentPods.filter(({ metadata }) => !metadata.deletionTimestamp).map(seeAgent),
    endpointMap: endpointMapOf(seen, anyOperator, names),
    release,
    settings,
    injectors: seen.injectors,
  };
}

function leaseOf(lease: KubeObject | undefined): SeenService["operatorLease"] {
  if (!lease) return undefined;
  const { holderIdentity = "", renewTime } = (lease["spec"] ?? {}) as { holderIdentity?: string; renewTime?: string };
  return { holder: holderIdentity, renewed: renewTime };
}

/** The one in the operator's namespace counts; one elsewhere is shown, so that a check can report the wrong place. */
function endpointMapOf(seen: ClusterObjects, operator: KubeObject | undefined, names: Names): KubeObject | undefined {
  const place = operator?.metadata.namespace ?? names.namespaces.operator;
  return seen.endpointMaps.find(({ metadata }) => metadata.namespace === place) ?? seen.endpointMaps[0];
}

function methodOf(found: {
  installation: KubeObject | undefined;
  operator: KubeObject | undefined;
  nodeAgents: KubeObject | undefined;
  release: SeenService["release"];
}): InstallMethod {
  if (found.release) return "chart";
  if (found.operator?.metadata.annotations?.["meta.helm.sh/release-name"]) return "chart";
  if (found.installation || found.operator) return "operator";
  return found.nodeAgents ? "manifest" : "none";
}

function environmentOf(agents: Workload): { name: string; value?: string }[] {
  return (agents.spec?.template?.spec?.containers ?? []).flatMap(({ env = [] }) => env);
}

function variantOf(agents: Workload, names: Names): NonNullable<SeenService["variant"]> {
  if (agents.metadata.name === names.workloads.overlayNode) return "overlay";
  const env = environmentOf(agents);
  const backend = env.find(({ name }) => name.endsWith("NETWORKING_BACKEND"))?.value;
  const foreign = env.some(({ name, value }) => name === "USE_POD_CIDR" && value === "true");
  return backend === "none" || (backend === undefined && foreign) ? "policy-only" : "networking";
}

function datastoreOf(
  method: InstallMethod,
  agents: Workload | undefined,
  settings: KubeObject | undefined,
  names: Names,
): SeenService["datastore"] {
  const data = (settings?.["data"] ?? {}) as Record<string, string>;
  const env = agents ? environmentOf(agents) : [];
  const saysEtcd = env.some(({ name, value }) => name === "DATASTORE_TYPE" && value?.startsWith("etcd"));
  const pointed = env.some(({ name }) => name === "ETCD_ENDPOINTS") || Boolean(data[names.manifests.etcdEndpointsKey]);
  const saysApi = env.some(({ name, value }) => name === "DATASTORE_TYPE" && !value?.startsWith("etcd"));
  if (saysEtcd || (pointed && !saysApi && method === "manifest")) return "etcd";
  return method === "none" ? "unknown" : "api";
}

export function versionOf(
  found: {
    clusterInformation: KubeObject | undefined;
    installation: KubeObject | undefined;
    nodeAgents: Workload | undefined;
    operator: Workload | undefined;
  },
  names: Names,
): { version: string | undefined; versionEvidence: string } {
  const written = fieldAt(found.clusterInformation, names.fields.clusterVersion);
  const agents = imageVersion(found.nodeAgents);
  // Agents of an older release leave what a newer one wrote there: after an older manifest is applied their image alone is true.
  if (agents && isText(written) && isOlder(agents.version, asVersion(written))) return agents;
  if (isText(written)) {
    return {
      version: asVersion(written),
      versionEvidence: `${names.fields.clusterVersion} of ${names.kinds.clusterInformation.kind} ${names.singleton}`,
    };
  }
  const reported = fieldAt(found.installation, names.fields.statusVersion);
  if (isText(reported)) {
    const versionEvidence = `${names.fields.statusVersion} of ${names.kinds.installation.kind} ${names.singleton}`;
    return { version: asVersion(reported), versionEvidence };
  }
  // The public operator has a version of its own, which says nothing of the service's.
  const operator = names.dialect === "calico" ? undefined : imageVersion(found.operator);
  return agents ?? operator ?? { version: undefined, versionEvidence: "no object in the cluster has a version" };
}

function imageVersion(workload: Workload | undefined): { version: string; versionEvidence: string } | undefined {
  const container = workload?.spec?.template?.spec?.containers?.[0] as { image?: string } | undefined;
  const tag = /:(v?\d+\.\d+[^:/]*)$/.exec(container?.image ?? "")?.[1];
  return tag ? { version: asVersion(tag), versionEvidence: `the image ${container?.image}` } : undefined;
}

/** Of the same major version: tags of a registry of one's own may count otherwise. */
function isOlder(text: string, than: string): boolean {
  const [version, other] = [parseVersion(text), parseVersion(than)];
  return version !== undefined && version.major === other?.major && compareVersions(version, other) < 0;
}

const isText = (value: unknown): value is string => typeof value === "string" && value !== "";
const asVersion = (text: string) => (/^\d/.test(text) ? `v${text}` : text);

function seeAgent(pod: Pod): SeenService["agents"][number] {
  const containers = (pod.spec as { containers?: unknown[] } | undefined)?.containers ?? [];
  const ready = (pod.status?.containerStatuses ?? []).filter((container) => container.ready).length;
  return {
    node: pod.spec?.nodeName ?? "",
    pod: pod.metadata.name,
    phase: pod.status?.phase ?? "Unknown",
    ready: `${ready}/${containers.length}`,
    report: readAgentReport(pod.metadata.annotations),
  };
}

/** The chart tool packs its record twice: as a secret, and inside as compressed text. */
function newestRelease(records: readonly KubeObject[]): SeenService["release"] {
  const revision = ({ metadata }: KubeObject) => Number(metadata.labels?.["version"] ?? 0);
  const [newest] = [...records].sort((a, b) => revision(b) - revision(a));
  const packed = (newest?.["data"] as { release?: string } | undefined)?.release;
  if (!newest || !packed) return undefined;
  try {
    const text = gunzipSync(Buffer.from(Buffer.from(packed, "base64").toString(), "base64")).toString();
    const { name, namespace, info, chart } = JSON.parse(text) as {
      name: string;
      namespace: string;
      info?: { status?: string };
      chart?: { metadata?: { name?: string; version?: string } };
    };
    const { name: chartName = "", version = "" } = chart?.metadata ?? {};
    return { name, namespace, chart: chartName, version, status: info?.status ?? "unknown" };
  } catch {
    // A foreign record, or a broken one: the labels still show the owner.
    const { labels = {}, namespace = "" } = newest.metadata;
    return {
      name: labels["name"] ?? "",
      namespace,
      chart: "",
      version: "",
      status: labels["status"] ?? "unknown",
    };
  }
}

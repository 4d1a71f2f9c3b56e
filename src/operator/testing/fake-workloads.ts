import { createHash } from "node:crypto";
import { vendorNames } from "../../api/names.ts";
import type { KubeObject, ResourceKind } from "../../api/object.ts";
import { agentReportAnnotations } from "../../api/protocol/agent-report.ts";
import type { Pod, Workload } from "../../api/workload-objects.ts";
import type { Client } from "../../cluster/client.ts";
import { isAlreadyExists, isConflict, isNotFound } from "../../cluster/failures.ts";
import { DAEMON_SETS, DEPLOYMENTS, NAMESPACES, NODES, PODS } from "../../cluster/kinds.ts";
import { MANAGED_KINDS, storedKind } from "../managed-kinds.ts";

/** Makes the agent of a node refuse, as on the embedded cluster. */
export const REFUSE_PROGRAMS = "local.vendor.io/refuse-programs";

/** Makes the agent of a node say that it still carries connections by eBPF after that was disabled. */
export const KEEP_DRAINING = "local.vendor.io/keep-draining";

/** Makes the next agent of a node report nothing, as one that is still starting. */
export const STARTS_SLOWLY = "local.vendor.io/starts-slowly";

/**
 * What a cluster does around the operator, in the smallest honest form: pods of daemon sets come and go with nodes and templates,
 * deployments become available, agents say what they find, and deleted namespaces empty.
 */
export interface FakeWorkloads {
  stop(): Promise<void>;
}

export function startFakeWorkloads(client: Client): FakeWorkloads {
  let stopped = false;
  const running = (async () => {
    while (!stopped) {
      await step(client).catch((error: unknown) => {
        if (!isConflict(error) && !isNotFound(error) && !isAlreadyExists(error)) throw error;
      });
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  })();
  return {
    async stop() {
      stopped = true;
      await running;
    },
  };
}

async function step(client: Client): Promise<void> {
  const list = async <T extends KubeObject>(kind: ResourceKind) => (await client.list<T>(kind)).items;
  const [nodes, daemonSets, deployments, pods] = await Promise.all([
    list<KubeObject>(NODES),
    list<Workload>(DAEMON_SETS),
    list<Workload>(DEPLOYMENTS),
    list<Pod>(PODS),
  ]);
  const config = await list<KubeObject>(storedKind("dataplaneConfiguration")).catch(() => []);
  const bpf = config.some(({ spec }) => (spec as { bpfEnabled?: boolean }).bpfEnabled === true);
  for (const daemonSet of daemonSets) await placePods(client, daemonSet, nodes, pods);
  await removeOrphans(client, daemonSets, pods);
  for (const deployment of deployments) await rollOut(client, deployment);
  if (deployments.some(({ metadata }) => metadata.name === vendorNames.workloads.flowLogs))
    await collect(client, nodes);
  for (const pod of pods) await speak(client, pod, nodes, bpf);
  for (const namespace of await list<KubeObject>(NAMESPACES)) await empty(client, namespace);
}

async function placePods(client: Client, daemonSet: Workload, nodes: KubeObject[], pods: Pod[]): Promise<void> {
  if (daemonSet.metadata.deletionTimestamp) return;
  const template = daemonSet.spec?.template;
  const hash = createHash("sha256").update(JSON.stringify(template)).digest("hex").slice(0, 8);
  const selector = Object.entries(template?.spec?.nodeSelector ?? {});
  const fitting = nodes.filter(({ metadata }) => selector.every(([key, value]) => metadata.labels?.[key] === value));
  const own = pods.filter((pod) => pod.metadata.ownerReferences?.[0]?.uid === daemonSet.metadata.uid);
  for (const pod of own) {
    const stays =
      pod.metadata.labels?.["hash"] === hash && fitting.some((node) => node.metadata.name === pod.spec?.nodeName);
    if (!stays) await client.delete(PODS, pod.metadata, { gracePeriodSeconds: 0 });
  }
  for (const node of fitting) {
    const there = own.some(
      (pod) => pod.spec?.nodeName === node.metadata.name && pod.metadata.labels?.["hash"] === hash,
    );
    if (!there) await client.create(PODS, podOf(daemonSet, node.metadata.name, hash));
  }
  const count = fitting.length;
  await report(client, DAEMON_SETS, daemonSet, {
    observedGeneration: daemonSet.metadata.generation,
    currentNumberScheduled: count,
    desiredNumberScheduled: count,
    updatedNumberScheduled: count,
    numberAvailable: count,
    numberReady: count,
    numberMisscheduled: 0,
  });
}

function podOf(daemonSet: Workload, node: string, hash: string): KubeObject {
  const { namespace, name, uid } = daemonSet.metadata;
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: `${name}-${node}-${hash}`,
      namespace,
      labels: { hash },
      ownerReferences: [{ apiVersion: "apps/v1", kind: "DaemonSet", name, uid: uid as string, controller: true }],
    },
    spec: { nodeName: node, containers: [{ name: "main", image: "paper" }] },
  };
}

async function removeOrphans(client: Client, daemonSets: Workload[], pods: Pod[]): Promise<void> {
  const alive = new Set(daemonSets.map(({ metadata }) => metadata.uid));
  for (const pod of pods) {
    const owner = pod.metadata.ownerReferences?.[0];
    if (owner?.kind === "DaemonSet" && !alive.has(owner.uid))
      await client.delete(PODS, pod.metadata, { gracePeriodSeconds: 0 });
  }
}

/** What vendor-flow-logs says once agents send. */
async function collect(client: Client, nodes: readonly KubeObject[]): Promise<void> {
  const kind = storedKind("flowLogs");
  for (const { metadata, status } of (await client.list<KubeObject>(kind)).items) {
    const said = (status as { collection?: { nodes?: number } } | undefined)?.collection;
    if (said?.nodes === nodes.length) continue;
    const patch = { status: { collection: { time: new Date().toISOString(), nodes: nodes.length } } };
    await client.patch(kind, metadata, { type: "merge", patch }, { subresource: "status" });
  }
}

async function rollOut(client: Client, deployment: Workload): Promise<void> {
  const replicas = deployment.spec?.replicas ?? 1;
  await report(client, DEPLOYMENTS, deployment, {
    observedGeneration: deployment.metadata.generation,
    replicas,
    updatedReplicas: replicas,
    readyReplicas: replicas,
    availableReplicas: replicas,
  });
}

async function report(
  client: Client,
  kind: ResourceKind,
  workload: Workload,
  wanted: Record<string, unknown>,
): Promise<void> {
  const status = (workload.status ?? {}) as Record<string, unknown>;
  if (Object.entries(wanted).every(([field, value]) => (status[field] ?? 0) === value)) return;
  await client.patch(kind, workload.metadata, { type: "merge", patch: { status: wanted } }, { subresource: "status" });
}

async function speak(client: Client, pod: Pod, nodes: KubeObject[], bpf: boolean): Promise<void> {
  if (pod.metadata.ownerReferences?.[0]?.name !== "vendor-node" || pod.metadata.deletionTimestamp) return;
  const node = nodes.find(({ metadata }) => metadata.name === pod.spec?.nodeName);
  if (node?.metadata.annotations?.[STARTS_SLOWLY]) return;
  const refusal = node?.metadata.annotations?.[REFUSE_PROGRAMS];
  // As an agent of an older release speaks, which gives no code of its refusal. Full maps, limited pods, problems and the overlay are for tests to report.
  const {
    "vendor.io/full-maps": _,
    "vendor.io/programs-refusal": __,
    "vendor.io/limited-workloads": ___,
    "vendor.io/problems": ____,
    "vendor.io/overlay": _____,
    "vendor.io/overlay-losses": ______,
    ...said
  } = agentReportAnnotations({
    programs: refusal ? { refused: { code: "EbpfProgramsRefused", why: refusal } } : "loads",
    dataplane: bpf ? "BPF" : node?.metadata.annotations?.[KEEP_DRAINING] ? "DrainingBPF" : "Nftables",
    servicesProven: bpf,
    proxyRules: undefined,
    fullMaps: [],
    limitedWorkloads: [],
    problems: [],
    overlay: undefined,
  });
  const now = pod.metadata.annotations ?? {};
  if (Object.entries(said).every(([key, value]) => (now[key] ?? null) === value)) return;
  await client.patch(PODS, pod.metadata, { type: "merge", patch: { metadata: { annotations: said } } });
}

async function empty(client: Client, namespace: KubeObject): Promise<void> {
  if (!namespace.metadata.deletionTimestamp) return;
  const { name } = namespace.metadata;
  for (const kind of [...MANAGED_KINDS, PODS].filter(({ namespaced }) => namespaced)) {
    for (const object of (await client.list(kind, { namespace: name })).items)
      await client.delete(kind, object.metadata);
  }
  const body = JSON.stringify({ ...namespace, spec: { finalizers: [] } });
  const headers = { "content-type": "application/json" };
  await client.raw({ method: "PUT", path: `/api/v1/namespaces/${name}/finalize`, headers, body });
}

import { calicoNames } from "../../src/api/names.ts";
import { groupVersion, type KubeObject, type ResourceKind } from "../../src/api/object.ts";
import { rolledOut } from "../../src/api/protocol/rollout.ts";
import type { Workload } from "../../src/api/workload-objects.ts";
import type { Client } from "../../src/cluster/client.ts";
import { isNotFound } from "../../src/cluster/failures.ts";
import { createInformer } from "../../src/cluster/informer.ts";
import {
  CLUSTER_ROLE_BINDINGS,
  CLUSTER_ROLES,
  DAEMON_SETS,
  DEPLOYMENTS,
  NAMESPACES,
  NODES,
  SERVICE_ACCOUNTS,
} from "../../src/cluster/kinds.ts";
import { CALICO_VERSION, deployment } from "./calico-manifest.ts";

const LABEL = calicoNames.labels.nodeMigration;
const OPERATOR = groupVersion(calicoNames.groups.operator);
const OLD = "kube-system";
const NEW = "calico-system";
const LOOK_MS = 500;
const PROTECTED = "tigera.io/cni-protector";
/** Variables of its own fixture that it knows; any other stops it. */
const KNOWN =
  /^(DATASTORE_TYPE|NODENAME|CALICO_NETWORKING_BACKEND|IP|IP_AUTODETECTION_METHOD|CALICO_IPV4POOL_\w+|FELIX_\w+|CNI_\w+|KUBERNETES_NODE_NAME)$/;

interface MigratingOperator {
  /** Variables that it refuses in addition to those that it does not know. */
  refuses: Set<string>;
  stop(): Promise<void>;
}

/**
 * Does what the public operator does to a plain manifest, in its order, while its Deployment has a pod: converts it or goes Degraded, makes its own objects
 * for nodes that have moved, labels nodes one at a time, deletes the old workloads, and then renders its agents without the label.
 */
export function startMigratingOperator(client: Client): MigratingOperator {
  const refuses = new Set<string>();
  let stopped = false;
  let again = false;
  let running: Promise<void> | undefined;
  const wake = () => {
    again = true;
    running ??= (async () => {
      while (again && !stopped) {
        again = false;
        await reconcile(client, refuses).catch((error: unknown) => {
          // An object went away meanwhile, or the kind of a resource that a rollback has removed: the next change comes.
          if (!stopped && !isPassing(error)) throw error;
        });
      }
      running = undefined;
    })();
  };
  const informers = [DEPLOYMENTS, DAEMON_SETS, NODES].map((kind) => createInformer<KubeObject>(client, kind));
  for (const informer of informers) informer.onChange(wake);
  // It looks again by itself, as that operator does: a status that was deleted comes back.
  const looks = setInterval(wake, LOOK_MS);
  return {
    refuses,
    async stop() {
      stopped = true;
      clearInterval(looks);
      await Promise.all(informers.map((informer) => informer.stop()));
      await running;
    },
  };
}

function isPassing(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return isNotFound(error) || code === 409 || code === "CLUSTER_UNKNOWN_KIND";
}

/** One look at everything, and what follows from it; every write brings the next look. */
async function reconcile(client: Client, refuses: ReadonlySet<string>): Promise<void> {
  if (!(await isRunning(client))) return;
  const installation = await find(client, await own(client, "Installation"), "default");
  if (!installation || installation.metadata.deletionTimestamp) return;
  const old = await find(client, DAEMON_SETS, "calico-node", OLD);
  const unknown = old && unknownVariables(old, refuses);
  if (unknown?.length) return report(client, installation, { refused: `unexpected env vars: ${unknown.join(" ")}` });
  const migrating = old !== undefined || (await findOld(client)).length > 0;
  await convert(client, installation, old);
  await makeObjects(client, installation, migrating);
  if (!(await isRunning(client))) return;
  if (migrating) {
    await report(client, installation, { progressing: "migrating to calico-system" });
    if (!(await moveNodes(client, old))) return;
  }
  if (await finish(client)) await report(client, installation, {});
}

async function isRunning(client: Client): Promise<boolean> {
  const found = await find(client, DEPLOYMENTS, "tigera-operator", "tigera-operator");
  const { spec, status } = (found ?? {}) as { spec?: { replicas?: number }; status?: { availableReplicas?: number } };
  return !found?.metadata.deletionTimestamp && (spec?.replicas ?? 0) > 0 && (status?.availableReplicas ?? 0) > 0;
}

async function find(
  client: Client,
  kind: ResourceKind,
  name: string,
  namespace?: string,
): Promise<KubeObject | undefined> {
  const ref = { name, ...(namespace === undefined ? {} : { namespace }) };
  return await client.get<KubeObject>(kind, ref).catch((error: unknown) => {
    if (isNotFound(error)) return undefined;
    throw error;
  });
}

const own = (client: Client, kind: string) => client.resourceFor({ apiVersion: OPERATOR, kind });

async function findOld(client: Client): Promise<string[]> {
  const names = ["calico-kube-controllers", "calico-typha"];
  const found = await Promise.all(names.map((name) => find(client, DEPLOYMENTS, name, OLD)));
  return names.filter((_, at) => found[at] !== undefined);
}

function unknownVariables(agents: KubeObject, refuses: ReadonlySet<string>): string[] {
  const { containers, initContainers = [] } = (agents as Workload & { spec: { template: { spec: Containers } } }).spec
    .template.spec;
  return [...containers, ...initContainers].flatMap(({ name: container, env = [] }) =>
    env.flatMap(({ name }) => (KNOWN.test(name) && !refuses.has(name) ? [] : [`${container}/${name}`])),
  );
}

interface Containers {
  containers: { name: string; env?: { name: string }[] }[];
  initContainers?: { name: string; env?: { name: string }[] }[];
}

/** What it found is written to the Installation; what was there wins. */
async function convert(client: Client, installation: KubeObject, old: KubeObject | undefined): Promise<void> {
  const spec = (installation["spec"] ?? {}) as { calicoNetwork?: object };
  if (!old || spec.calicoNetwork) return;
  const kind = await own(client, "Installation");
  const found = { cni: { type: "Calico" }, calicoNetwork: { bgp: "Enabled", ipPools: [{ cidr: "10.244.0.0/16" }] } };
  const finalizers = [calicoNames.finalizers.installation, "tigera.io/operator-cleanup"];
  await client.patch(kind, { name: "default" }, { type: "merge", patch: { metadata: { finalizers }, spec: found } });
  const felix = await client.resourceFor({ apiVersion: "crd.projectcalico.org/v1", kind: "FelixConfiguration" });
  const patch = { spec: { vxlanVNI: 4096, nftablesMode: "Disabled" } };
  await client.patch(felix, { name: "default" }, { type: "merge", patch });
  const pools = await client.resourceFor({ apiVersion: "crd.projectcalico.org/v1", kind: "IPPool" });
  const labels = { "app.kubernetes.io/managed-by": "tigera-operator" };
  await client.patch(pools, { name: "default-ipv4-ippool" }, { type: "merge", patch: { metadata: { labels } } });
}

async function makeObjects(client: Client, installation: KubeObject, migrating: boolean): Promise<void> {
  const { uid = "" } = installation.metadata;
  const ownerReferences = [{ apiVersion: OPERATOR, kind: "Installation", name: "default", uid, controller: true }];
  const make = async (kind: ResourceKind, object: KubeObject) => {
    const metadata = { ...object.metadata, ownerReferences };
    const live = await find(client, kind, metadata.name, metadata.namespace);
    if (!live) await client.create(kind, { ...object, metadata }).catch(ignorePresent);
  };
  const rights = { apiVersion: "rbac.authorization.k8s.io/v1" };
  await make(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: { name: NEW } });
  for (const name of ["calico-node", "calico-cni-plugin"]) {
    const metadata = { name, namespace: NEW, finalizers: [PROTECTED] };
    await make(SERVICE_ACCOUNTS, { apiVersion: "v1", kind: "ServiceAccount", metadata });
    // The roles of the manifest have the same names: they become its own.
    const subjects = [NEW, ...(name === "calico-node" ? [OLD] : [])].map((namespace) => ({
      ...{ kind: "ServiceAccount", name, namespace },
    }));
    for (const [kind, fields] of [
      [CLUSTER_ROLES, { rules: [{ apiGroups: [""], resources: ["nodes", "pods"], verbs: ["get"] }] }],
      [CLUSTER_ROLE_BINDINGS, { subjects }],
    ] as const) {
      const live = await find(client, kind, name);
      if (!live || live.metadata.ownerReferences) continue;
      const patch = { metadata: { ownerReferences, finalizers: [PROTECTED] }, ...fields };
      await client.patch(kind, { name }, { type: "merge", patch });
    }
  }
  await make(DAEMON_SETS, { ...rights, ...agents(migrating) });
  for (const name of ["calico-typha", "calico-kube-controllers"]) await make(DEPLOYMENTS, deployment(NEW, name, 1));
}

function ignorePresent(error: unknown): void {
  if ((error as { code?: unknown }).code !== 409) throw error;
}

function agents(migrating: boolean): KubeObject {
  const labels = { "k8s-app": "calico-node" };
  const nodeSelector = { "kubernetes.io/os": "linux", ...(migrating ? { [LABEL]: "migrated" } : {}) };
  const containers = [
    { name: "calico-node", image: `quay.io/calico/node:${CALICO_VERSION}`, env: [{ name: "OF", value: "operator" }] },
  ];
  return {
    ...{ apiVersion: "apps/v1", kind: "DaemonSet", metadata: { name: "calico-node", namespace: NEW } },
    spec: {
      selector: { matchLabels: labels },
      updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1 } },
      template: { metadata: { labels }, spec: { nodeSelector, tolerations: [{ operator: "Exists" }], containers } },
    },
  };
}

/** True once no node is left; otherwise the next change brings the next step. */
async function moveNodes(client: Client, old: KubeObject | undefined): Promise<boolean> {
  if ((await findOld(client)).includes("calico-kube-controllers"))
    await client.delete(DEPLOYMENTS, { name: "calico-kube-controllers", namespace: OLD });
  const { items: nodes } = await client.list<KubeObject>(NODES);
  const label = (name: string, value: string) =>
    client.patch(NODES, { name }, { type: "merge", patch: { metadata: { labels: { [LABEL]: value } } } });
  for (const { metadata } of nodes)
    if (metadata.labels?.[LABEL] === undefined) await label(metadata.name, "pre-operator");
  if (old) {
    const patch = { spec: { template: { spec: { nodeSelector: { [LABEL]: "pre-operator" } } } } };
    await client.patch(DAEMON_SETS, { name: "calico-node", namespace: OLD }, { type: "merge", patch });
    const now = [
      await find(client, DAEMON_SETS, "calico-node", OLD),
      await find(client, DAEMON_SETS, "calico-node", NEW),
    ];
    const next = nodes.find(({ metadata }) => metadata.labels?.[LABEL] !== "migrated");
    if (!now.every((one) => one && rolledOut(one as unknown as Workload))) return false;
    if (next) {
      if (await isRunning(client)) await label(next.metadata.name, "migrated");
      return false;
    }
    await client.delete(DAEMON_SETS, { name: "calico-node", namespace: OLD });
  }
  if ((await findOld(client)).includes("calico-typha"))
    await client.delete(DEPLOYMENTS, { name: "calico-typha", namespace: OLD });
  return true;
}

/** Renders without the label, waits for the roll-out, and removes the label from nodes. */
async function finish(client: Client): Promise<boolean> {
  const live = await find(client, DAEMON_SETS, "calico-node", NEW);
  if (!live || !(await isRunning(client))) return false;
  const { template } = (live as Workload & { spec: { template: { spec: { nodeSelector: Record<string, string> } } } })
    .spec;
  if (template.spec.nodeSelector[LABEL] !== undefined) {
    const patch = { spec: { template: { spec: { nodeSelector: { [LABEL]: null } } } } };
    await client.patch(DAEMON_SETS, { name: "calico-node", namespace: NEW }, { type: "merge", patch });
    return false;
  }
  if (!rolledOut(live as unknown as Workload)) return false;
  const { items } = await client.list<KubeObject>(NODES);
  for (const { metadata } of items.filter(({ metadata }) => metadata.labels?.[LABEL] !== undefined)) {
    const patch = { metadata: { labels: { [LABEL]: null } } };
    await client.patch(NODES, { name: metadata.name }, { type: "merge", patch });
  }
  const installations = await own(client, "Installation");
  const patch = { status: { calicoVersion: CALICO_VERSION } };
  await client.patch(installations, { name: "default" }, { type: "merge", patch }, { subresource: "status" });
  return true;
}

/** TigeraStatus of both parts; made again where it is gone. */
async function report(
  client: Client,
  { metadata: { generation = 1 } }: KubeObject,
  { refused, progressing }: { refused?: string; progressing?: string },
): Promise<void> {
  const kind = await own(client, "TigeraStatus");
  const condition = (type: string, is: boolean, reason: string, message: string) => ({
    ...{ type, status: is ? "True" : "False", reason, message, observedGeneration: generation + 1 },
  });
  const well = refused === undefined && progressing === undefined;
  const conditions = [
    condition("Available", well, "AllObjectsAvailable", ""),
    condition("Progressing", progressing !== undefined, "ResourceNotReady", progressing ?? ""),
    condition("Degraded", refused !== undefined, "MigrationError", refused ?? ""),
  ];
  for (const name of [calicoNames.statuses.network, calicoNames.statuses.ipPools]) {
    const live = await find(client, kind, name);
    if (!live)
      await client
        .create(kind, { apiVersion: OPERATOR, kind: "TigeraStatus", metadata: { name }, spec: {} })
        .catch(ignorePresent);
    const same =
      JSON.stringify((live?.["status"] as { conditions?: object } | undefined)?.conditions) ===
      JSON.stringify(conditions);
    if (!same)
      await client.patch(
        kind,
        { name },
        { type: "merge", patch: { status: { conditions } } },
        { subresource: "status" },
      );
  }
}

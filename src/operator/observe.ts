import { isDeepStrictEqual } from "node:util";
import { vendorNames } from "../api/names.ts";
import type { Condition, KubeObject, ResourceKind } from "../api/object.ts";
import { customResourceDefinitions } from "../api/schema/crd.ts";
import { FOREIGN_ELSEWHERE } from "../api/tables/foreign-cni.ts";
import type { Transport } from "../api/transport.ts";
import type { ApiAddress } from "../cluster/api-server-hosts.ts";
import type { Client } from "../cluster/client.ts";
import { createInformer, type Informer } from "../cluster/informer.ts";
import {
  API_SERVICES,
  CLUSTER_ROLE_BINDINGS,
  CLUSTER_ROLES,
  CONFIG_MAPS,
  CRDS,
  CSI_DRIVERS,
  DAEMON_SETS,
  DEPLOYMENTS,
  NAMESPACES,
  NETWORK_POLICIES,
  NODES,
  POD_DISRUPTION_BUDGETS,
  PODS,
  PRIORITY_CLASSES,
  ROLE_BINDINGS,
  ROLES,
  SECRETS,
  SERVICE_ACCOUNTS,
  SERVICES,
} from "../cluster/kinds.ts";
import { slimReading } from "../cluster/slim-reading.ts";
import type { Clock } from "../kit/clock.ts";
import type { Log } from "../kit/log.ts";
import { MANAGER } from "./apply.ts";
import type { OperatorConfig } from "./config.ts";
import { endpointOf } from "./effective.ts";
import { probeEndpoint } from "./endpoint-probe.ts";
import { errors } from "./errors.ts";
import { lastAnnouncements } from "./last-announcements.ts";
import { type LiveObjects, liveObjects } from "./live-objects.ts";
import { storedKind } from "./managed-kinds.ts";
import type { Observed } from "./observed.ts";
import { ACTIVE_OPERATOR } from "./single-operator.ts";

const { namespaces, endpointMap, workloads } = vendorNames;

/** Everything rendered carries it; an object without it is not ours. */
const OF_OURS = `app.kubernetes.io/managed-by=${MANAGER}`;

interface Watched {
  kind: ResourceKind;
  namespace?: string;
  name?: string;
  labelled?: boolean;
}

const OURS: readonly ResourceKind[] = (
  ["installation", "apiServer", "flowLogs", "flowUI", "status", "dataplaneConfiguration", "ipPool"] as const
).map(storedKind);

const [INSTALLATIONS, REQUESTED_APIS, FLOW_LOGS, FLOW_UIS, , DATAPLANES, POOLS] = OURS as [
  ResourceKind,
  ResourceKind,
  ResourceKind,
  ResourceKind,
  ResourceKind,
  ResourceKind,
  ResourceKind,
];

const OPENSHIFT = { group: "config.openshift.io", version: "v1", namespaced: false };
const OPENSHIFT_NETWORKS: ResourceKind = { ...OPENSHIFT, kind: "Network", plural: "networks" };
const OPENSHIFT_INFRASTRUCTURES: ResourceKind = { ...OPENSHIFT, kind: "Infrastructure", plural: "infrastructures" };

/** What the operator may look at from the start. */
function outsideWatches(config: OperatorConfig): Watched[] {
  return [
    ...OURS.map((kind) => ({ kind })),
    { kind: NODES },
    { kind: NAMESPACES, name: namespaces.system },
    ...[PRIORITY_CLASSES, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, CSI_DRIVERS, API_SERVICES].map((kind) => ({
      ...{ kind, labelled: true },
    })),
    { kind: CONFIG_MAPS, namespace: config.namespace, name: endpointMap.name },
    { kind: DEPLOYMENTS, namespace: config.namespace, name: workloads.operator },
    { kind: SECRETS, namespace: config.namespace },
    { kind: CONFIG_MAPS, namespace: namespaces.orchestratorSystem },
    { kind: DAEMON_SETS, namespace: namespaces.orchestratorSystem },
    ...FOREIGN_ELSEWHERE.map((name) => ({ kind: DAEMON_SETS, name })),
    { kind: ROLE_BINDINGS, namespace: namespaces.orchestratorSystem, labelled: true },
    { kind: SERVICES, namespace: "default", name: "kubernetes" },
  ];
}

/** What it may look at once it has made the system namespace and its own rights there. */
const INSIDE_WATCHES: readonly Watched[] = [
  PODS,
  DAEMON_SETS,
  DEPLOYMENTS,
  SERVICES,
  SERVICE_ACCOUNTS,
  CONFIG_MAPS,
  SECRETS,
  ROLES,
  ROLE_BINDINGS,
  POD_DISRUPTION_BUDGETS,
  NETWORK_POLICIES,
].map((kind) => ({ kind, namespace: namespaces.system }));

/** Of what there is one per node, or what is long, only the part we read is kept: nothing of it is ever applied. */
const SLIM: ReadonlyMap<ResourceKind, (object: KubeObject) => KubeObject> = new Map([
  [PODS, (pod: KubeObject) => cut(pod, { spec: placeOf(pod["spec"]), status: pod["status"] })],
  [NODES, (node: KubeObject) => cut(node, { status: systemOf(node["status"]) })],
  [CRDS, (definition: KubeObject) => cut(definition, { status: definition["status"] })],
]);

function cut({ apiVersion, kind, metadata }: KubeObject, kept: object): KubeObject {
  const { managedFields: _, ...rest } = metadata;
  return { apiVersion, kind, metadata: rest, ...kept };
}

function placeOf(spec: unknown): object {
  return { nodeName: (spec as { nodeName?: string } | undefined)?.nodeName };
}

/** Of the conditions only Ready, without its heartbeat. */
function systemOf(status: unknown): object {
  const { nodeInfo, addresses, conditions = [] } = (status ?? {}) as NodeStatus;
  const ready = conditions.find(({ type }) => type === "Ready");
  const { lastHeartbeatTime: _, ...kept } = (ready ?? {}) as Condition & { lastHeartbeatTime?: string };
  return { nodeInfo, addresses, ...(ready ? { conditions: [kept] } : {}) };
}

interface NodeStatus {
  nodeInfo?: unknown;
  addresses?: unknown;
  conditions?: Condition[];
}

export interface Observer {
  live: LiveObjects;
  /** Waits for our definitions, and then for everything outside the system namespace. */
  start(signal: AbortSignal): Promise<void>;
  /** Our definitions that are not there, by name. */
  missingDefinitions(): string[];
  /** Looks into the system namespace too; resolves when all of it is known. */
  enter(signal: AbortSignal): Promise<void>;
  /** Stops looking there: the namespace goes, and our rights with it. */
  leave(): Promise<void>;
  readonly inside: boolean;
  snapshot(): Observed;
  stop(): Promise<void>;
}

export interface ObserverOptions {
  client: Client;
  config: OperatorConfig;
  /** To the API server at one address. */
  transport(at: ApiAddress): Transport;
  clock: Clock;
  log: Log;
  /** Something that decisions depend on is no longer what it was. */
  onChange(): void;
}

export function createObserver(options: ObserverOptions): Observer {
  const { client, config, clock, log } = options;
  const live = liveObjects();
  const announcements = lastAnnouncements(() => clock.now());
  const outside: Following[] = [];
  let inside: Following[] | undefined;
  let entered = false;
  const probe = probeEndpoint({
    address: () => addressIn(live.get(CONFIG_MAPS, { namespace: config.namespace, name: endpointMap.name })),
    transport: options.transport,
    clock,
    onChange: () => options.onChange(),
  });

  const follow = (watched: Watched): Following => {
    const { kind, namespace, name, labelled } = watched;
    const slim = SLIM.get(kind);
    const informer = createInformer<KubeObject>(slim ? slimReading(client, slim) : client, kind, {
      clock,
      ...(namespace ? { namespace } : {}),
      ...(name ? { fieldSelector: `metadata.name=${name}` } : {}),
      ...(labelled ? { labelSelector: OF_OURS } : {}),
      onError: (error) => log.warn({ kind: kind.plural, namespace, error }, "watch failed, retrying"),
    });
    const end = live.follow(kind, informer);
    informer.onChange(({ type, object, old }) => {
      if (kind === PODS) announcements.note(object);
      if (kind === CONFIG_MAPS) probe.changed();
      if (type !== "modified" || !old || matters(kind, object, old)) options.onChange();
    });
    return { plural: kind.plural, informer, end };
  };

  const missingDefinitions = () => {
    const there = new Set(
      live
        .list(CRDS)
        .filter(isEstablished)
        .map(({ metadata }) => metadata.name),
    );
    return DEFINITIONS.filter((name) => !there.has(name));
  };

  return {
    live,
    missingDefinitions,
    get inside() {
      return entered;
    },
    async start(signal) {
      const definitions = follow({ kind: CRDS });
      outside.push(definitions);
      await orAborted(definitions.informer.synced, signal);
      await definitionsThere(definitions.informer, missingDefinitions, { log, signal });
      const openshift = live.list(CRDS).some(({ metadata }) => metadata.name === `networks.${OPENSHIFT.group}`);
      const platform = openshift ? [{ kind: OPENSHIFT_NETWORKS }, { kind: OPENSHIFT_INFRASTRUCTURES }] : [];
      outside.push(...[...outsideWatches(config), ...platform].map(follow));
      await orAborted(Promise.all(outside.map(({ informer }) => informer.synced)), signal);
      await orAborted(probe.settled(), signal);
    },
    async enter(signal) {
      inside ??= INSIDE_WATCHES.map(follow);
      await orAborted(allSeen(inside, clock), signal);
      entered = true;
    },
    async leave() {
      entered = false;
      await end(inside ?? []);
      inside = undefined;
    },
    snapshot: () => ({
      ...snapshot(live, config, clock.now()),
      lastAnnouncements: announcements.recent(),
      probedEndpoint: probe.last(),
    }),
    async stop() {
      probe.stop();
      await end([...outside, ...(inside ?? [])]);
    },
  };
}

function addressIn(map: KubeObject | undefined): ApiAddress | undefined {
  const found = endpointOf(map);
  return found && { host: found.host, port: Number(found.port) };
}

interface Following {
  plural: string;
  informer: Informer<KubeObject>;
  end(): void;
}

async function end(all: readonly Following[]): Promise<void> {
  for (const { end } of all) end();
  await Promise.all(all.map(({ informer }) => informer.stop()));
}

const DEFINITIONS = customResourceDefinitions().map(({ metadata }) => metadata.name);

function isEstablished(definition: KubeObject): boolean {
  const status = definition["status"] as { conditions?: { type: string; status: string }[] } | undefined;
  return status?.conditions?.some(({ type, status: is }) => type === "Established" && is === "True") ?? false;
}

/** A cluster without our definitions is one where they are about to be applied: that is waited for, not crashed on. */
async function definitionsThere(
  informer: Informer<KubeObject>,
  missing: () => string[],
  { log, signal }: { log: Log; signal: AbortSignal },
): Promise<void> {
  if (missing().length === 0) return;
  log.warn({ missing: missing() }, `waiting for ${missing().length} CRDs: apply operator-crds.yaml`);
  let found: () => void = () => {};
  const there = new Promise<void>((resolve) => {
    found = resolve;
  });
  const stop = informer.onChange(() => {
    if (missing().length === 0) found();
  });
  await orAborted(there, signal);
  stop();
}

const SIGHT_PATIENCE_MS = 20_000;

/** Resolves when everything is in sync. What cannot be listed is reported, so that status can name it: an API too old, a missing right. */
async function allSeen(followings: readonly Following[], clock: Clock): Promise<void> {
  const unseen = new Set(followings.map(({ plural }) => plural));
  const seen = followings.map(({ informer, plural }) => informer.synced.then(() => unseen.delete(plural)));
  let cancel = () => {};
  const late = new Promise<never>((_, reject) => {
    cancel = clock.setTimeout(() => reject(errors.OPERATOR_CANNOT_SEE([...unseen].join(", "))), SIGHT_PATIENCE_MS);
  });
  await Promise.race([Promise.all(seen), late]).finally(cancel);
}

async function orAborted(promise: Promise<unknown>, signal: AbortSignal): Promise<void> {
  const aborted = new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
  await Promise.race([promise, aborted]);
  signal.throwIfAborted();
}

/** Nodes say every few seconds that they are alive, and a thousand of them would keep us busy with it. */
function matters(kind: ResourceKind, object: KubeObject, old: KubeObject): boolean {
  if (kind !== NODES) return true;
  return !isDeepStrictEqual(essenceOf(object), essenceOf(old));
}

function essenceOf({ metadata, status }: KubeObject): unknown {
  const { nodeInfo, addresses, conditions } = (status ?? {}) as NodeStatus;
  return [metadata.labels, metadata.annotations, nodeInfo, addresses, conditions];
}

function snapshot(
  live: LiveObjects,
  config: OperatorConfig,
  now: number,
): Omit<Observed, "lastAnnouncements" | "probedEndpoint"> {
  const inOrchestrator = (object: KubeObject) => object.metadata.namespace === namespaces.orchestratorSystem;
  const inSystem = (object: KubeObject) => object.metadata.namespace === namespaces.system;
  return {
    now,
    self: {
      namespace: config.namespace,
      version: config.version,
      deployment: live.get(DEPLOYMENTS, { namespace: config.namespace, name: workloads.operator }),
    },
    installations: live.list(INSTALLATIONS),
    apiServers: live.list(REQUESTED_APIS),
    flowLogs: live.list(FLOW_LOGS),
    flowUIs: live.list(FLOW_UIS),
    endpointMap: live.get(CONFIG_MAPS, { namespace: config.namespace, name: endpointMap.name }),
    nodes: live.list(NODES),
    pods: live.list(PODS),
    workloads: [...live.list(DAEMON_SETS), ...live.list(DEPLOYMENTS)].filter(inSystem),
    dataplaneConfigurations: live.list(DATAPLANES),
    pools: live.list(POOLS),
    secrets: live.list(SECRETS),
    activeOperator: live.get(CONFIG_MAPS, ACTIVE_OPERATOR),
    platform: {
      definitions: live.list(CRDS).map(({ metadata }) => metadata.name),
      configMaps: live.list(CONFIG_MAPS).filter(inOrchestrator),
      daemonSets: live.list<KubeObject>(DAEMON_SETS).filter(inOrchestrator),
      foreignDaemonSets: live.list<KubeObject>(DAEMON_SETS).filter((object) => !inSystem(object)),
      apiService: live.get(SERVICES, { namespace: "default", name: "kubernetes" }),
      openshift: {
        network: live.get(OPENSHIFT_NETWORKS, { name: "cluster" }),
        infrastructure: live.get(OPENSHIFT_INFRASTRUCTURES, { name: "cluster" }),
      },
    },
  };
}

import { groupVersion, type KubeObject } from "../../api/object.ts";
import { v3Places } from "../../api/resources/v3-places.ts";
import { CLEANUP_NAMESPACE } from "../../api/tables/node-cleaner.ts";
import {
  CONFIG_MAPS,
  CONTROLLER_REVISIONS,
  CRDS,
  DAEMON_SETS,
  DEPLOYMENTS,
  NAMESPACES,
  NODES,
  PODS,
  SECRETS,
  SERVICES,
} from "../../cluster/kinds.ts";
import { COPIED_KINDS } from "../../datastore/copied-kinds.ts";
import { CodedError } from "../../kit/errors.ts";
import type { ReleaseFiles } from "../../releases/release-files.ts";
import type { ActionName } from "../actions/all.ts";
import type { DropOldDataInputs } from "../actions/datastore/drop-old-data.ts";
import type { ImportDatastoreInputs } from "../actions/datastore/import-datastore.ts";
import type { KeepOldDataInputs } from "../actions/datastore/keep-old-data.ts";
import type { LockDatastoreInputs } from "../actions/datastore/lock-datastore.ts";
import type { OpenDatastoreInputs } from "../actions/datastore/open-datastore.ts";
import type { EnableAutoHostEndpointsInputs } from "../actions/migrations/enable-auto-host-endpoints.ts";
import type { MigrateByOperatorInputs } from "../actions/migrations/migrate-by-operator.ts";
import type { HoldAgentsInputs } from "../actions/nodes/hold-agents.ts";
import type { LabelNodesInputs } from "../actions/nodes/label-nodes.ts";
import type { MoveAgentsInputs } from "../actions/nodes/move-agents.ts";
import type { UpdateAgentsInputs } from "../actions/nodes/update-agents.ts";
import type { WaitForRolloutInputs } from "../actions/nodes/wait-for-rollout.ts";
import type { WaitForStatusInputs } from "../actions/nodes/wait-for-status.ts";
import { type ApplyManifestInputs, objectsOf } from "../actions/objects/apply-manifest.ts";
import type { CopySecretsInputs } from "../actions/objects/copy-secrets.ts";
import type { Expectation } from "../actions/objects/expectation.ts";
import type { MergePatchInputs } from "../actions/objects/merge-patch.ts";
import type { MigrateStoredVersionsInputs } from "../actions/objects/migrate-stored-versions.ts";
import type { Settle } from "../actions/objects/settle.ts";
import { type Target, targetOf } from "../actions/objects/target.ts";
import { CANARY_NAMESPACE } from "../canary/canary-objects.ts";
import type { EtcdPlace } from "../migrations/datastore/etcd-place.ts";
import type { Step } from "../plan.ts";
import { SERVICE_KINDS } from "../service-objects.ts";
import {
  applyRights,
  expectationRights,
  patchRights,
  type RightsContext,
  removeRights,
  restoreRights,
  rolloutRights,
  settleRights,
  statusRights,
  WATCH,
} from "./object-rights.ts";
import { type Right, rightsOn } from "./right.ts";

/** What a step needs to be run, and what it needs in addition to be undone. */
export interface StepRights {
  run: readonly Right[];
  undo?: readonly Right[];
}

interface StepContext extends RightsContext {
  /** The objects of the step's published file. */
  published: readonly KubeObject[];
}

type Declared<Inputs> = (inputs: Inputs, context: StepContext) => StepRights;

/** A row of the table, for a step whose inputs have this type: a plan holds them as plain data. */
function declare<Inputs extends object>(rights: Declared<Inputs>): Declared<Step["inputs"]> {
  return (inputs, context) => rights(inputs as Inputs, context);
}

type Applied = { objects?: readonly KubeObject[]; afterUndo?: Settle; only?: string; letGo?: boolean };

const applied = declare<Applied>(({ objects, afterUndo, only, letGo }, context) => {
  const all = (objects ?? context.published).filter(({ kind }) => only === undefined || kind === only);
  return {
    run: all.flatMap((object) => applyRights(object, context)),
    undo: [
      ...all.flatMap((object) => [...restoreRights(object, context), ...undoing(object, context)]),
      ...(letGo ? all.flatMap((object) => patchRights(targetOf(object), context)) : []),
      ...settleRights(afterUndo, context),
    ],
  };
});

function undoing({ apiVersion, kind, metadata }: KubeObject, context: RightsContext): Right[] {
  const { namespace, name } = metadata;
  return removeRights({ apiVersion, kind, name, ...(namespace !== undefined && { namespace }) }, context);
}

const removed = declare<
  { target?: Target; targets?: readonly Target[]; endpoints?: readonly Target[] } & {
    afterUndo?: Settle;
  }
>(({ target, targets, endpoints, afterUndo }, context) => {
  const all = [...(target ? [target] : []), ...(targets ?? []), ...(endpoints ?? [])];
  return {
    run: all.flatMap((one) => removeRights(one, context)),
    undo: [...all.flatMap((one) => restoreRights(one, context)), ...settleRights(afterUndo, context)],
  };
});

const patched = declare<MergePatchInputs>(({ target, afterApply, afterUndo }, context) => ({
  run: [...patchRights(target, context), ...settleRights(afterApply, context)],
  undo: [
    ...patchRights(target, context),
    ...settleRights(afterUndo, context),
    ...rightsOn(PODS, WATCH, { namespace: context.names.namespaces.system, sometimes: "while nodes drain" }),
  ],
}));

const expected = declare<{ until: readonly Expectation[]; back?: { until: readonly Expectation[] } }>(
  ({ until, back }, context) => ({
    run: expectationRights(until, context),
    undo: expectationRights(back?.until ?? [], context),
  }),
);

/** What agents report of their nodes, and the configuration they follow. */
function agentRights({ names }: RightsContext): Right[] {
  const { kind: _, plural } = names.kinds.dataplaneConfiguration;
  const configuration = { ...names.groups.stored, plural: storedPlural(names, plural), namespaced: false };
  return [
    ...rightsOn(configuration, WATCH, { name: names.singleton }),
    ...rightsOn(NODES, WATCH),
    ...rightsOn(PODS, WATCH, { namespace: names.namespaces.system }),
    ...statusRightsOf(names.statuses.network, names),
  ];
}

function storedPlural(names: RightsContext["names"], plural: string): string {
  return names.kinds.dataplaneConfiguration.stored?.plural ?? plural;
}

function statusRightsOf(name: string, names: RightsContext["names"]): Right[] {
  const { group } = names.groups.operator;
  return [
    ...rightsOn({ group, plural: names.kinds.status.plural, namespaced: false }, WATCH, { name }),
    ...rightsOn({ group, plural: names.kinds.installation.plural, namespaced: false }, ["get"], {
      name: names.singleton,
    }),
  ];
}

/** The configurations of single nodes, which hold them on a data plane. */
function holdRights({ nodes }: { nodes: readonly string[] }, { names }: RightsContext, release: boolean): Right[] {
  const { plural } = names.kinds.dataplaneConfiguration;
  const kind = { ...names.groups.stored, plural: storedPlural(names, plural), namespaced: false };
  const own = "if the node has a configuration of its own";
  return nodes.flatMap((node) => {
    const name = `node.${node}`;
    return [
      ...rightsOn(kind, ["get"], { name }),
      ...rightsOn(kind, ["patch"], { name, sometimes: own }),
      ...(release ? rightsOn(kind, ["delete", ...WATCH], { name }) : rightsOn(kind, ["create"])),
    ];
  });
}

const CANARY = { namespace: CANARY_NAMESPACE };

function canaryRights(): Right[] {
  const taken = "if an earlier canary is still there";
  return [
    ...rightsOn(NAMESPACES, ["get", "patch"], { name: CANARY_NAMESPACE }),
    ...rightsOn(NAMESPACES, ["create"]),
    ...rightsOn(NAMESPACES, ["delete", ...WATCH], { name: CANARY_NAMESPACE, sometimes: taken }),
    ...rightsOn(PODS, ["create", ...WATCH], CANARY),
    ...rightsOn(PODS, ["get"], { ...CANARY, subresource: "log" }),
    ...rightsOn(SERVICES, ["create", "get"], CANARY),
  ];
}

function canaryEndRights(): Right[] {
  return [
    ...rightsOn(NAMESPACES, ["get", "delete", ...WATCH], { name: CANARY_NAMESPACE }),
    ...rightsOn(PODS, ["get"], { ...CANARY, subresource: "log" }),
  ];
}

/** Everything of the service, by its groups, its namespaces and its names. */
function serviceRights({ names }: RightsContext, verbs: readonly string[], sometimes?: string): Right[] {
  const { namespaces, groups } = names;
  const own = [groups.operator.group, groups.stored.group];
  const every = [namespaces.operator, namespaces.system, namespaces.apiServerBeforeV331, namespaces.orchestratorSystem];
  const why = sometimes === undefined ? {} : { sometimes };
  return [
    ...SERVICE_KINDS.clusterWide.flatMap((kind) => rightsOn(kind, verbs, why)),
    ...SERVICE_KINDS.inNamespaces.flatMap((kind) =>
      every.flatMap((namespace) => rightsOn(kind, verbs, { namespace, ...why })),
    ),
    ...own.flatMap((group) =>
      rightsOn({ group, plural: "*", namespaced: false }, verbs, { sometimes: sometimes ?? "if its CRDs are there" }),
    ),
  ];
}

/** Objects that no step names: those an operator makes. */
function restoreServiceRights(context: RightsContext): Right[] {
  const grants = ["bind", "escalate"].flatMap((verb) =>
    ["clusterroles", "roles"].map((resource) => ({ verb, group: "rbac.authorization.k8s.io", resource })),
  );
  const { operator } = context.names.groups;
  return [
    ...serviceRights(context, ["get", ...WATCH, "create", "update", "patch", "delete"], "of what an operator changed"),
    ...rightsOn({ group: operator.group, plural: "*", namespaced: false }, ["update"], { subresource: "status" }),
    ...rightsOn(NAMESPACES, WATCH),
    ...rightsOn(PODS, WATCH),
    ...grants,
  ];
}

const OWNED = [
  { verb: "list", group: "*", resource: "*" },
  { verb: "get", group: "*", resource: "*" },
] as const;
const OWNED_PATCH: Right = { verb: "patch", group: "*", resource: "*", sometimes: "if a v3 resource owns an object" };

function ownerStore({ names }: RightsContext, verbs: readonly string[]): Right[] {
  return rightsOn(SECRETS, verbs, { namespace: names.namespaces.orchestratorSystem });
}

const owners = declare<object>((_, context) => {
  const all = [...OWNED, OWNED_PATCH, ...ownerStore(context, ["list", "create", "delete"])];
  return { run: all, undo: all };
});

function proxyRights({ names }: RightsContext): Right[] {
  const namespace = names.namespaces.orchestratorSystem;
  const { configMap, daemonSet } = names.serviceProxy;
  return [
    ...rightsOn(CONFIG_MAPS, ["list"], { namespace }),
    ...[configMap, "kube-proxy-config"].flatMap((name) =>
      rightsOn(CONFIG_MAPS, ["get", "patch"], { namespace, name, sometimes: "where the platform keeps the settings" }),
    ),
    ...rightsOn(DAEMON_SETS, ["get", "patch", ...WATCH], { namespace, name: daemonSet }),
    ...rightsOn(PODS, WATCH, { namespace }),
  ];
}

function agentReplacement(workload: Target, context: RightsContext): Right[] {
  return [
    ...rolloutRights({ workload }, context),
    ...rightsOn(CONTROLLER_REVISIONS, WATCH, { namespace: workload.namespace }),
    ...rightsOn(NODES, WATCH),
    ...rightsOn(PODS, ["delete"], { namespace: workload.namespace }),
  ];
}

/** In etcd, its own certificate or user says what may be done. */
function etcdRights({ secret, user }: EtcdPlace): Right[] {
  const places = [secret, user?.secret].flatMap((place) => place ?? []);
  return places.flatMap((place) => rightsOn(SECRETS, ["get"], place));
}

/** Everything that the datastore keeps. */
function ourStored({ groups }: RightsContext["names"], verbs: readonly string[], sometimes?: string): Right[] {
  const why = sometimes === undefined ? {} : { sometimes };
  return rightsOn({ group: groups.stored.group, plural: "*", namespaced: false }, verbs, why);
}

function informationRights(names: RightsContext["names"]): Right[] {
  const { stored } = v3Places(names).find(({ noun }) => noun === "clusterInformation")!;
  return rightsOn(stored, ["get", "patch"], { name: names.singleton });
}

/** The public system keeps what is known of a node with the node. */
function nodeDataRights({ dialect }: RightsContext["names"]): Right[] {
  if (dialect === "vendor") return [];
  return [...rightsOn(NODES, ["list"]), ...rightsOn(NODES, ["patch"], { sometimes: "if etcd has data of nodes" })];
}

const STEP_RIGHTS: Readonly<Record<ActionName, Declared<Step["inputs"]>>> = {
  "apply-objects": applied,
  "apply-manifest": applied,
  "delete-object": removed,
  "delete-objects": removed,
  "delete-host-endpoints": removed,
  "remove-custom-resource": declare<{ target: Target; withoutOperator?: boolean }>((inputs, context) => {
    const { run, undo } = removed(inputs as unknown as Step["inputs"], context);
    const { group } = context.names.groups.operator;
    return {
      run: [
        ...run,
        ...rightsOn({ group, plural: context.names.kinds.status.plural, namespaced: false }, WATCH),
        ...(inputs.withoutOperator ? patchRights(inputs.target, context) : []),
      ],
      ...(undo && { undo }),
    };
  }),
  "merge-patch": patched,
  "select-dataplane": patched,
  "enable-auto-host-endpoints": declare<EnableAutoHostEndpointsInputs>(({ configuration }, context) => {
    const kind = v3Places(context.names).find(({ noun }) => noun === "hostEndpoint")?.stored;
    const endpoints = kind ? rightsOn(kind, WATCH) : [];
    return { run: [...patchRights(configuration, context), ...endpoints], undo: endpoints };
  }),
  "adopt-fields": declare<{ objects: readonly Target[] }>(({ objects }, context) => ({
    run: objects.flatMap((target) => patchRights(target, context)),
  })),
  "run-tool": expected,
  "wait-outside": expected,
  "verify-version": expected,
  "wait-for-rollout": declare<WaitForRolloutInputs>((inputs, context) => ({ run: rolloutRights(inputs, context) })),
  "wait-for-status": declare<WaitForStatusInputs>((inputs, context) => ({
    run: [
      ...statusRights(inputs, context),
      ...(inputs.enough ? expectationRights([{ target: inputs.enough, exists: true }], context) : []),
    ],
  })),
  "prove-dataplane": declare<object>((_, context) => {
    const { system } = context.names.namespaces;
    const agents = {
      workload: { apiVersion: "apps/v1", kind: "DaemonSet", namespace: system, name: context.names.workloads.node },
    };
    const calico = context.names.dialect === "calico";
    return { run: [...agentRights(context), ...(calico ? rolloutRights(agents, context) : [])] };
  }),
  "hold-nodes": declare<{ nodes: readonly string[] }>((inputs, context) => ({
    run: holdRights(inputs, context, false),
    undo: holdRights(inputs, context, true),
  })),
  "release-nodes": declare<{ nodes: readonly string[]; canary?: unknown }>((inputs, context) => {
    const { namespaces, serviceProxy } = context.names;
    const proxy = { namespace: namespaces.orchestratorSystem, name: serviceProxy.daemonSet };
    return {
      run: [...holdRights(inputs, context, true), ...agentRights(context), ...(inputs.canary ? canaryEndReads() : [])],
      undo: [...holdRights(inputs, context, false), ...rightsOn(DAEMON_SETS, ["get"], proxy)],
    };
  }),
  "update-agents": declare<UpdateAgentsInputs>(({ workload, canary }, context) => ({
    run: [...agentReplacement(workload, context), ...(canary ? canaryEndReads() : [])],
  })),
  "move-agents": declare<MoveAgentsInputs>(({ from, to, nodes, canary }, context) => ({
    run: [
      ...[from, ...to].flatMap((workload) => [
        ...patchRights(workload, context).filter(({ verb }) => verb === "get"),
        ...rightsOn(PODS, WATCH, { namespace: workload.namespace }),
      ]),
      ...rightsOn(NODES, WATCH),
      ...nodes.flatMap((name) => rightsOn(NODES, ["get", "patch"], { name })),
      ...(canary ? canaryEndReads() : []),
    ],
  })),
  "migrate-by-operator": declare<MigrateByOperatorInputs>(
    ({ operator, from, to, nodes, statuses, canary }, context) => {
      const { group } = context.names.groups.operator;
      const status = { group, plural: context.names.kinds.status.plural, namespaced: false };
      const moved = "if a node has moved";
      return {
        run: [
          ...serviceRights(context, ["list"]),
          ...patchRights(operator, context),
          ...statuses.flatMap((name) => [
            ...rightsOn(status, ["get"], { name }),
            ...rightsOn(status, ["delete"], { name, sometimes: "if the operator refused before" }),
          ]),
          ...statusRights({ statuses }, context),
          ...rightsOn(status, WATCH),
          ...rightsOn(NODES, WATCH),
          ...rightsOn(DAEMON_SETS, WATCH, { namespace: from.namespace }),
          ...rightsOn(DEPLOYMENTS, WATCH, { namespace: from.namespace }),
          ...rightsOn(DAEMON_SETS, WATCH, { namespace: to.namespace }),
          ...[operator, to].flatMap(({ namespace }) => rightsOn(PODS, WATCH, { namespace })),
          ...(canary ? canaryEndReads() : []),
        ],
        undo: [
          ...restoreServiceRights(context),
          ...rightsOn(NODES, WATCH),
          ...nodes.flatMap((name) => rightsOn(NODES, ["get", "patch"], { name, sometimes: moved })),
          ...rightsOn(NODES, ["patch"], { sometimes: "if a node joined meanwhile" }),
        ],
      };
    },
  ),
  "hold-agents": declare<HoldAgentsInputs>(({ workload }, context) => ({
    run: patchRights(workload, context),
    undo: agentReplacement(workload, context),
  })),
  "lock-datastore": declare<LockDatastoreInputs>(({ etcd }) => ({ run: etcdRights(etcd) })),
  "import-datastore": declare<ImportDatastoreInputs>(({ etcd }, { names }) => ({
    run: [
      ...etcdRights(etcd),
      ...ourStored(names, ["list"]),
      ...ourStored(names, ["create"]),
      ...ourStored(names, ["get", "update"], "of an import that was cut off"),
      ...nodeDataRights(names),
    ],
    undo: ourStored(names, ["delete"], "if the CRDs were there before"),
  })),
  "open-datastore": declare<OpenDatastoreInputs>(({ etcd }, { names }) => ({
    run: [
      ...etcdRights(etcd),
      ...informationRights(names),
      ...ourStored(names, ["list"], "if something was written to etcd past the lock"),
    ],
    undo: [...ourStored(names, ["list"]), ...COPIED_KINDS.flatMap((kind) => rightsOn(kind, ["list"]))],
  })),
  "keep-old-data": declare<KeepOldDataInputs>(({ etcd }) => ({ run: [], undo: etcdRights(etcd) })),
  "drop-old-data": declare<DropOldDataInputs>(({ etcd }, { names }) => ({
    run: [...etcdRights(etcd), ...informationRights(names)],
  })),
  "copy-secrets": declare<CopySecretsInputs>(({ from, to, names }) => ({
    run: names.flatMap((name) => [
      ...rightsOn(SECRETS, ["get"], { namespace: from, name, sometimes: "if it is not there" }),
      ...rightsOn(SECRETS, ["get"], { namespace: to, name }),
      ...rightsOn(SECRETS, ["create"], { namespace: to, sometimes: "if it is not there" }),
    ]),
    undo: names.flatMap((name) =>
      rightsOn(SECRETS, ["get", "delete", ...WATCH], { namespace: to, name, sometimes: "if it was not there" }),
    ),
  })),
  "start-canary": declare<object>(() => ({ run: canaryRights(), undo: canaryEndRights() })),
  "stop-canary": declare<object>(() => ({ run: canaryEndRights(), undo: canaryRights() })),
  "label-nodes": declare<LabelNodesInputs>(({ nodes }) => ({
    run: Object.keys(nodes).flatMap((name) => rightsOn(NODES, ["get", "patch"], { name })),
  })),
  "set-proxy-mode": declare<object>((_, context) => ({ run: proxyRights(context) })),
  "clean-nodes": declare<object>(() => ({ run: cleanRights() })),
  "forget-lost-pods": declare<{ namespaces: readonly string[] }>(({ namespaces }) => ({
    run: [
      ...rightsOn(NODES, ["list"]),
      ...namespaces.flatMap((namespace) =>
        rightsOn(PODS, ["list", "delete"], { namespace, sometimes: "if a node is down" }),
      ),
    ],
  })),
  "remove-orphans": declare<object>((_, context) => ({
    run: [
      ...serviceRights(context, ["list"]),
      ...serviceRights(context, ["get", "watch", "delete"], "of what an operator left"),
    ],
    undo: restoreServiceRights(context),
  })),
  "prove-removed": declare<object>((_, context) => ({ run: serviceRights(context, ["list"]) })),
  "save-service": declare<object>((_, context) => ({
    run: serviceRights(context, ["list"]),
    undo: restoreServiceRights(context),
  })),
  "migrate-stored-versions": declare<MigrateStoredVersionsInputs>(({ definitions }) => ({
    run: definitions.flatMap((name) => {
      const [plural = "", ...group] = name.split(".");
      const sometimes = "if objects are stored in an older version";
      return [
        ...rightsOn(CRDS, ["get"], { name }),
        ...rightsOn(CRDS, ["patch"], { name, subresource: "status", sometimes }),
        ...rightsOn({ group: group.join("."), plural, namespaced: false }, ["list", "update"], { sometimes }),
      ];
    }),
  })),
  "save-owner-references": owners,
  "strip-owner-references": owners,
  "restore-owner-references": owners,
  "forget-owner-references": owners,
  "prove-owned-objects": owners,
};

function canaryEndReads(): Right[] {
  return [
    ...rightsOn(NAMESPACES, ["get"], { name: CANARY_NAMESPACE }),
    ...rightsOn(PODS, ["get"], { ...CANARY, subresource: "log" }),
  ];
}

function cleanRights(): Right[] {
  const name = CLEANUP_NAMESPACE;
  const down = "if a node is down, or was not cleaned before";
  return [
    ...rightsOn(NODES, WATCH),
    ...rightsOn(NODES, ["patch"], { sometimes: "if its agent wrote annotations" }),
    ...rightsOn(NAMESPACES, ["get", "create", "delete", ...WATCH], { name }),
    ...rightsOn(PODS, ["get", "create", ...WATCH], { namespace: name }),
    ...rightsOn(PODS, ["delete"], { namespace: name, sometimes: down }),
    ...rightsOn(PODS, ["get"], { namespace: name, subresource: "log", sometimes: "if a node cannot be cleaned" }),
  ];
}

/** What a step needs. `files` are those of the run: a step names a published file by its digest. */
export async function stepRights(
  step: Step,
  context: RightsContext,
  work: { files: ReleaseFiles; signal: AbortSignal },
): Promise<StepRights> {
  const declared = (STEP_RIGHTS as Readonly<Record<string, Declared<Step["inputs"]>>>)[step.action];
  // Of a newer release: the run refuses it, and says why.
  if (declared === undefined) return { run: [] };
  const published = step.action === "apply-manifest" ? await publishedBy(step, work) : [];
  return declared(step.inputs, { ...context, published, kindOf: withDefinitions(context.kindOf, published) });
}

/** A file that cannot be read is the step's to report, if the step still needs it. */
async function publishedBy(step: Step, work: { files: ReleaseFiles; signal: AbortSignal }): Promise<KubeObject[]> {
  try {
    return await objectsOf(step.inputs as unknown as ApplyManifestInputs, work);
  } catch (error) {
    if (error instanceof CodedError) return [];
    throw error;
  }
}

/** A file may define the kinds of what it holds. */
function withDefinitions(kindOf: RightsContext["kindOf"], objects: readonly KubeObject[]): RightsContext["kindOf"] {
  const defined = objects
    .filter(({ kind }) => kind === CRDS.kind)
    .flatMap((object) => {
      const { group, scope, names, versions } = object["spec"] as {
        group: string;
        scope: string;
        names: { kind: string; plural: string };
        versions: { name: string }[];
      };
      return versions.map(({ name: version }) => ({ group, version, ...names, namespaced: scope === "Namespaced" }));
    });
  return (type) =>
    kindOf(type) ?? defined.find((one) => groupVersion(one) === type.apiVersion && one.kind === type.kind);
}

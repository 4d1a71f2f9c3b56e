import { groupVersion, type KubeObject } from "../../../../api/object.ts";
import {
  type Encapsulation,
  encapsulationOf,
  READY_TUNNELS,
  type Tunnel,
  tunnelOf,
} from "../../../../api/protocol/pool-tunnels.ts";
import type { IPPool } from "../../../../api/resources/ip-pool.ts";
import type { EncapsulationWait } from "../../../actions/nodes/await-encapsulation.ts";
import type { Settle } from "../../../actions/objects/settle.ts";
import { nameOf, type Target, targetOf } from "../../../actions/objects/target.ts";
import type { Budget } from "../../../canary/budget.ts";
import { chooseCanary } from "../../../canary/canary-plan.ts";
import { fieldAt } from "../../../field-at.ts";
import { fingerprint } from "../../../fingerprint.ts";
import { makePlan } from "../../../make-plan.ts";
import type { Observation } from "../../../observation.ts";
import type { Plan, Step } from "../../../plan.ts";
import { atPath, singleton } from "../../cluster-view.ts";
import { mergePatchStep, waitForRolloutStep } from "../../steps.ts";
import { withCanary } from "../../switch/canary-steps.ts";
import { errors } from "./errors.ts";

export const TARGETS = {
  vxlan: { encapsulation: "VXLAN", spec: { ipipMode: "Never", vxlanMode: "Always" } },
  "vxlan-cross-subnet": { encapsulation: "VXLANCrossSubnet", spec: { ipipMode: "Never", vxlanMode: "CrossSubnet" } },
} as const satisfies Record<string, { encapsulation: Encapsulation; spec: object }>;
export type EncapsulationTarget = keyof typeof TARGETS;

interface EncapsulationRequest {
  to: EncapsulationTarget;
  /** One pool alone (default: every pool of pods that differs). */
  pool?: string;
  command: string;
  budget?: Budget;
  force?: boolean;
}

type Pool = IPPool & KubeObject;
type AskedPool = { cidr?: string; encapsulation?: string };

interface Change {
  observation: Observation;
  to: (typeof TARGETS)[EncapsulationTarget];
  pools: readonly Pool[];
  /** Of the agents. */
  namespace: string;
}

const GUIDE = "See docs/guide/migrate-encapsulation.md";

/** Every node is ready for the new tunnel before one sends in it, and for the old one until none does. */
export function planMigrateEncapsulation(observation: Observation, request: EncapsulationRequest): Plan {
  const { names, service } = observation;
  const { budget, force } = request;
  if (service.method === "none") throw errors.MIGRATE_ENCAPSULATION_NOT_INSTALLED();
  if (service.datastore === "etcd") throw errors.MIGRATE_ENCAPSULATION_ETCD();
  const to = TARGETS[request.to];
  const pools = concerned(observation, request.pool).filter(({ spec }) => encapsulationOf(spec) !== to.encapsulation);
  const namespace = service.nodeAgents?.metadata.namespace ?? names.namespaces.system;
  const change: Change = { observation, to, pools, namespace };
  const isReported = agentsReport(observation);
  const steps = pools.length === 0 ? [] : isReported ? reportedSteps(change) : blindSteps(change);
  const canary =
    budget === undefined || steps.length === 0
      ? { notMeasured: steps.length === 0 ? "nothing changes" : "--canary-traffic is off" }
      : // Nodes that had no tunnel speak from their address in it afterwards.
        chooseCanary(observation, { budget, switches: true, ...(force && { force }) });
  return makePlan({
    procedure: "migrate",
    names: names.dialect,
    title: titleOf(change),
    command: request.command,
    observed: fingerprint(observation),
    ...withCanary({ steps, notes: notesOf(change, isReported) }, canary),
  });
}

/** Pools that pods or nodes have addresses of. */
function concerned({ service }: Observation, name: string | undefined): Pool[] {
  const all = (service.pools as readonly Pool[]).filter(
    ({ spec: { allowedUses = [] } }) => allowedUses.length === 0 || allowedUses.some((use) => use !== "LoadBalancer"),
  );
  if (name === undefined) return all;
  const found = all.filter(({ metadata }) => metadata.name === name);
  if (found.length > 0) return found;
  throw errors.MIGRATE_ENCAPSULATION_NO_POOL(
    name,
    all.map(({ metadata }) => metadata.name),
  );
}

/** Agents of older releases, and of the public system, do not say how they send. */
function agentsReport({ service, names }: Observation): boolean {
  return (
    names.dialect === "vendor" &&
    service.agents.length > 0 &&
    service.agents.every(({ report }) => report.encapsulation !== undefined)
  );
}

function reportedSteps(change: Change): Step[] {
  const { pools, namespace } = change;
  const tunnels = tunnelsOf(change);
  const ready: EncapsulationWait = { namespace, tunnels };
  const value = tunnels.join(",");
  const annotate = (pool: Pool, id: string, title: string, text: string | null, settle: object) =>
    mergePatchStep(
      {
        id: `${id}-${pool.metadata.name}`,
        title,
        where: nameOf(targetOf(pool)),
        because: `A node must receive both ways until every node sends in the new one. ${GUIDE}#steps.`,
        risk: "low",
      },
      { target: targetOf(pool), patch: { metadata: { annotations: { [READY_TUNNELS]: text } } }, ...settle },
    );
  return [
    ...pools.map((pool) =>
      annotate(pool, "prepare", "Create the tunnels on every node", value, {
        afterApply: { encapsulation: ready },
      }),
    ),
    ...changeSteps(change),
    ...pools.map((pool) =>
      annotate(pool, "settle", "Remove tunnels that no pool uses", null, { afterUndo: { encapsulation: ready } }),
    ),
  ];
}

/** In the order of preparation: what any of the pools uses now, and what all will use. */
function tunnelsOf({ pools }: Change): Tunnel[] {
  const now = pools.flatMap(({ spec }) => tunnelOf(spec)?.tunnel ?? []);
  return [...new Set<Tunnel>([...now, "vxlan"])].sort();
}

/** By the Installation where it lists the pools, because the operator would change them back; else pool by pool. */
function changeSteps(change: Change): Step[] {
  const { observation, to, pools, namespace } = change;
  const listed = listedPools(observation);
  const isListed = ({ spec }: Pool) => listed.some(({ cidr }) => cidr === spec.cidr);
  const settles = (some: readonly Pool[], encapsulation: (pool: Pool) => Encapsulation): Settle => ({
    encapsulation: { namespace, pools: some.map((pool) => `${pool.spec.cidr} ${encapsulation(pool)}`) },
  });
  const both = (some: readonly Pool[], status: Settle = {}) => ({
    afterApply: { ...status, ...settles(some, () => to.encapsulation) },
    afterUndo: { ...status, ...settles(some, ({ spec }) => encapsulationOf(spec)) },
  });
  const ofOperator = pools.filter(isListed);
  const status: Settle = { status: { statuses: [observation.names.statuses.ipPools] } };
  return [
    ...(ofOperator.length > 0 ? [installationStep(change, both(ofOperator, status))] : []),
    ...pools.filter((pool) => !isListed(pool)).map((pool) => poolStep(change, pool, both([pool]))),
  ];
}

/** The Installation first: an operator that follows it would undo the change of a pool, and one that does not would leave the two different. */
function blindSteps(change: Change): Step[] {
  const { observation, pools } = change;
  const { nodeAgents } = observation.service;
  const listed = listedPools(observation);
  const isListed = pools.some(({ spec }) => listed.some(({ cidr }) => cidr === spec.cidr));
  const workload = nodeAgents && targetOf(nodeAgents);
  const rollouts = workload ? { afterUndo: { rollouts: [{ workload }] } } : {};
  return [
    ...(isListed ? [installationStep(change, rollouts)] : []),
    ...pools.map((pool) => poolStep(change, pool, {})),
    ...(workload
      ? [
          waitForRolloutStep(
            {
              id: "agents-follow",
              title: "Wait for the agents",
              where: nameOf(workload),
              because: `The agents of this release follow one by one, and do not report when they have. ${GUIDE}#older-releases.`,
            },
            { workload },
          ),
        ]
      : []),
  ];
}

function poolStep({ to }: Change, pool: Pool, settle: { afterApply?: Settle; afterUndo?: Settle }): Step {
  const target = targetOf(pool);
  return mergePatchStep(
    {
      id: `change-${pool.metadata.name}`,
      title: `Set encapsulation to ${to.encapsulation}`,
      where: nameOf(target),
      because: becauseOf(pool, to.encapsulation),
      risk: "medium",
    },
    { target, patch: { spec: to.spec }, ...settle },
  );
}

function installationStep(change: Change, settle: { afterApply?: Settle; afterUndo?: Settle }): Step {
  const { observation, pools, to } = change;
  const target: Target = singleton(observation.names, "installation");
  const isChanged = ({ cidr }: AskedPool) => pools.some(({ spec }) => spec.cidr === cidr);
  const next = listedPools(observation).map((pool) =>
    isChanged(pool) ? { ...pool, encapsulation: to.encapsulation } : pool,
  );
  return mergePatchStep(
    {
      id: "change-installation",
      title: `Set encapsulation to ${to.encapsulation}`,
      where: nameOf(target),
      because: `The operator owns the pools that the Installation lists. ${GUIDE}#steps.`,
      risk: "medium",
    },
    { target, patch: atPath(poolsPath(observation), next), ...settle },
  );
}

function becauseOf({ spec }: Pool, to: Encapsulation): string {
  return `Packets to its pods travel as ${encapsulationOf(spec)} now, and as ${to} then. ${GUIDE}#steps.`;
}

function poolsPath({ names }: Observation): string {
  return names.fields.linuxDataplane.replace(/\.linuxDataplane$/, ".ipPools");
}

/** Those an operator creates; the defaults of an Installation without a list are in its status. */
function listedPools(observation: Observation): AskedPool[] {
  const { installation, method } = observation.service;
  if (!installation || method === "manifest") return [];
  const path = poolsPath(observation);
  const pools = fieldAt(installation, path) ?? fieldAt(installation, path.replace(/^spec\./, "status.computed."));
  return Array.isArray(pools) ? (pools as AskedPool[]) : [];
}

function titleOf({ pools, to }: Change): string {
  if (pools.length === 0) return `Every pool uses ${to.encapsulation} already`;
  return `Change ${pools.length} IP pool${pools.length === 1 ? "" : "s"} to ${to.encapsulation}`;
}

function notesOf(change: Change, isReported: boolean): string[] {
  const { pools, to, observation } = change;
  if (pools.length === 0) return [];
  const list = pools
    .map(({ metadata, spec }) => `${metadata.name} (${spec.cidr}, ${encapsulationOf(spec)})`)
    .join(", ");
  const stored = `${groupVersion(observation.names.groups.stored)} ${observation.names.kinds.ipPool.kind}`;
  return [
    `${stored}: ${list}.`,
    ...(isReported
      ? []
      : [
          `This cannot be made free of loss on this release: its agents follow one by one and do not report when they have. Until the last has followed, packets between nodes can be lost and connections can end. Run it when that is acceptable, or upgrade first. ${GUIDE}#older-releases.`,
        ]),
    "Running pods keep their MTU, which is larger than what fits into VXLAN. The kernel reports to senders of longer packets what fits (path MTU), and cuts packets that may be cut. Pods get the MTU of VXLAN, 50 bytes less than the network's, when they are restarted.",
    ...(pools.some(({ spec }) => tunnelOf(spec) === undefined)
      ? [
          "A node's own new connections to pods of other nodes come from its address in the tunnel then, no longer from its own. Policies that allow nodes by address must allow that too: it is from a pool.",
        ]
      : []),
    ...(to.encapsulation === "VXLANCrossSubnet"
      ? [
          "Nodes whose uplinks check reverse paths strictly (net.ipv4.conf.*.rp_filter 1) can lose packets within a subnet while it changes; --to vxlan does not.",
        ]
      : []),
  ];
}

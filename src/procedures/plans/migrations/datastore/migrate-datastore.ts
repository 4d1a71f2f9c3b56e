import { parseVersion, sameLine } from "../../../../api/tables/version.ts";
import { INSTALLED_RELEASE } from "../../../../api/tables/version-gates.ts";
import type { Budget } from "../../../canary/budget.ts";
import { chooseCanary, watchOf } from "../../../canary/canary-plan.ts";
import { fingerprint } from "../../../fingerprint.ts";
import { makePlan } from "../../../make-plan.ts";
import type { EtcdPlace } from "../../../migrations/datastore/etcd-place.ts";
import type { Observation } from "../../../observation.ts";
import type { Plan } from "../../../plan.ts";
import { unavailableAllowed } from "../../cluster-view.ts";
import { bothEnds, linuxNodes, nodeWaves, refuseUnknownCanary, type WavesInputs } from "../../node-waves.ts";
import { deleteObjectStep, step } from "../../steps.ts";
import { withCanary } from "../../switch/canary-steps.ts";
import { asInventory, refuseUnknownLosses } from "../../upgrade/inventory.ts";
import { upgradeImpact } from "../../upgrade/upgrade-impact.ts";
import { errors } from "./errors.ts";
import { type DatastoreFacts, GUIDE, migrateSteps } from "./migrate-steps.ts";

interface MigrateDatastoreRequest {
  command: string;
  budget?: Budget;
  force?: boolean;
  /** One node first, then a few at a time; all of them in one wave where it is left out. */
  waves?: WavesInputs;
  acceptLoss?: readonly string[];
}

/** What cannot be migrated is refused before etcd is asked. */
export function refuseUnmigratable({ names, service }: Observation): void {
  if (service.method !== "manifest") throw errors.MIGRATE_DATASTORE_NO_MANIFEST(service.method);
  if (service.datastore !== "etcd") throw errors.MIGRATE_DATASTORE_NOT_ETCD();
  const runs = service.version ?? "an unknown version";
  if (names.dialect === "vendor") {
    if (runs !== INSTALLED_RELEASE) throw errors.MIGRATE_DATASTORE_OTHER_VERSION(runs, INSTALLED_RELEASE);
    return;
  }
  // Where the public system keeps what is known of one line of releases.
  const [version, line] = [parseVersion(runs), parseVersion(INSTALLED_RELEASE)!];
  const known = `v${line.major}.${line.minor}.x`;
  if (!version || !sameLine(version, line)) throw errors.MIGRATE_DATASTORE_OTHER_VERSION(runs, known);
  if (service.variant === "overlay") throw errors.MIGRATE_DATASTORE_CANAL();
}

/** Everything of ours moves from etcd to CRDs, under a lock, and the agents after it, node by node. */
export function planMigrateDatastore(
  observation: Observation,
  facts: DatastoreFacts,
  request: MigrateDatastoreRequest,
): Plan {
  const { acceptLoss = [], budget, force } = request;
  const inventory = asInventory(facts.found, acceptLoss);
  refuseUnknownLosses(inventory, acceptLoss);
  const waves = wavesOf(observation, request.waves);
  const canary =
    budget === undefined
      ? { notMeasured: "--canary-traffic is off" }
      : chooseCanary(observation, { budget, first: bothEnds(waves), ...(force && { force }) });
  const watch = "inputs" in canary ? watchOf(canary.inputs) : undefined;
  const atOnce = unavailableAllowed(observation.service.nodeAgents, waves.flat().length);
  return makePlan({
    procedure: "migrate",
    names: observation.names.dialect,
    title: `Migrate ${facts.file} from etcd to the Kubernetes datastore`,
    command: request.command,
    observed: fingerprint(observation),
    inventory,
    impact: upgradeImpact(observation, inventory),
    ...withCanary(
      {
        steps: migrateSteps(observation, facts, { waves, atOnce, canary: watch }),
        notes: notesOf(observation, facts, { nodes: waves.flat().length, atOnce }),
      },
      canary,
    ),
  });
}

/** Nodes that have an agent; the others get one of the new template when they can run one. */
function wavesOf({ nodes, service }: Observation, inputs: WavesInputs | undefined): string[][] {
  const linux = linuxNodes(nodes);
  refuseUnknownCanary(linux, inputs?.canary);
  const running = new Set(service.agents.map(({ node }) => node));
  const moving = linux.filter(({ name }) => running.has(name));
  if (moving.length === 0) return [];
  return inputs ? nodeWaves(moving, inputs) : [moving.map(({ name }) => name)];
}

/** Until an agent that was replaced is ready; measured, on nodes that have the image. */
const SECONDS_A_BATCH = 20;
const OBJECTS_A_SECOND = 200;

function notesOf(
  { names }: Observation,
  facts: DatastoreFacts,
  { nodes, atOnce }: { nodes: number; atOnce: number },
): string[] {
  const { counts, edits, etcd, revision } = facts;
  const objects = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const pause = Math.ceil(nodes / Math.max(1, atOnce)) * SECONDS_A_BATCH + Math.ceil(objects / OBJECTS_A_SECOND) + 10;
  const kinds = Object.entries(counts).map(([kind, count]) => `${count} ${kind}`);
  return [
    `etcd at ${etcd.endpoints.join(", ")} has ${objects} objects at revision ${revision}: ${kinds.join(", ")}.`,
    `Until the last agent has switched, for about ${pause} s, new pods wait for their network and no policy or pool can be changed; policy stays enforced. --no-waves is the shortest.`,
    ...(names.dialect === "calico" ? [LOCKED_FELIX] : []),
    ...(edits.length === 0
      ? ["No edits of the manifest were found."]
      : [`Carried over of your edits (${edits.length}):`]),
    ...edits.map(({ path }) => `  ${path}`),
    `The old data stays in etcd, locked, and vendorctl rollback goes back to it with all that has changed since. Once no rollback is needed: vendorctl migrate datastore --drop-old-data.`,
    "Objects get new UIDs in Kubernetes; owner references between them follow.",
  ];
}

const LOCKED_FELIX =
  "Calico's agents follow no change while their datastore is locked: rules stay as they are, NetworkPolicies of Kubernetes take effect afterwards, and pods that are deleted stay Terminating until then.";

/** Removes what was left in etcd. */
export function planDropOldData(
  observation: Observation,
  etcd: EtcdPlace | undefined,
  { command }: { command: string },
): Plan {
  const { names, service } = observation;
  if (!etcd || service.datastore !== "api") throw errors.MIGRATE_DATASTORE_NOTHING_OLD();
  const { secret, endpoints } = etcd;
  const drop = step(
    "drop-old-data",
    {
      id: "drop-old-data",
      title: "Delete the old data in etcd",
      where: endpoints.join(", "),
      because: `Nothing reads it since the datastore was migrated. ${GUIDE}#old-data.`,
      risk: "high",
      reversible: "the data is deleted from etcd, and no rollback can return to it",
    },
    { etcd },
  );
  const target = { apiVersion: "v1", kind: "Secret", ...(secret ?? { namespace: "", name: "" }) };
  return makePlan({
    procedure: "migrate",
    names: names.dialect,
    title: "Drop the old data in etcd",
    command,
    observed: fingerprint(observation),
    steps: [
      drop,
      ...(secret
        ? [
            deleteObjectStep(
              {
                id: "etcd-secret",
                title: "Delete the Secret of etcd's certificates",
                where: `Secret ${secret.namespace}/${secret.name}`,
                because: `No pod mounts it any more. ${GUIDE}#old-data.`,
                risk: "low",
              },
              { target },
            ),
          ]
        : []),
    ],
    notes: ["After this, vendorctl rollback cannot return to etcd."],
  });
}

import type { InstallationSpec } from "../../../../api/resources/installation.ts";
import { INSTALLED_RELEASE } from "../../../../api/tables/version-gates.ts";
import { validateObject } from "../../../../api/validation/validate.ts";
import { nameOf, targetOf } from "../../../actions/objects/target.ts";
import type { Budget } from "../../../canary/budget.ts";
import { chooseCanary, watchOf } from "../../../canary/canary-plan.ts";
import { clusterFacts, kindOf } from "../../../cluster-facts.ts";
import { fingerprint } from "../../../fingerprint.ts";
import { makePlan } from "../../../make-plan.ts";
import type { Observation } from "../../../observation.ts";
import type { Plan } from "../../../plan.ts";
import { isEbpfOn } from "../../cluster-view.ts";
import { bothEnds, linuxNodes, nodeWaves, refuseUnknownCanary, type WavesInputs } from "../../node-waves.ts";
import { errors as planErrors } from "../../plan-errors.ts";
import { withCanary } from "../../switch/canary-steps.ts";
import { asInventory, refuseUnknownLosses } from "../../upgrade/inventory.ts";
import { upgradeImpact } from "../../upgrade/upgrade-impact.ts";
import { type Conversion, convertManifest } from "./convert-manifest.ts";
import { errors } from "./errors.ts";
import { GUIDE, type ManifestFacts, migrateSteps } from "./migrate-steps.ts";
import { installationOf, overlayDaemonSet } from "./objects.ts";

export interface MigrateOperatorRequest {
  command: string;
  budget?: Budget;
  force?: boolean;
  /** One node first, then a few at a time; all of them in one wave where it is left out. */
  waves?: WavesInputs;
  acceptLoss?: readonly string[];
}

/** What cannot be migrated is refused before anything more is read. */
export function refuseUnmigratable({ names, service }: Observation): void {
  if (service.method !== "manifest") throw errors.MIGRATE_OPERATOR_NO_MANIFEST(service.method);
  if (service.datastore === "etcd") {
    const { policyAndOverlayEtcd, policyAndNetworkingEtcd } = names.manifests;
    throw errors.MIGRATE_OPERATOR_ETCD(service.variant === "overlay" ? policyAndOverlayEtcd : policyAndNetworkingEtcd);
  }
  if (names.dialect === "calico" && service.variant === "overlay")
    throw errors.MIGRATE_OPERATOR_CANAL(names.manifests.policyAndOverlay);
  if (service.version !== INSTALLED_RELEASE)
    throw errors.MIGRATE_OPERATOR_OTHER_VERSION(service.version ?? "an unknown version", INSTALLED_RELEASE);
}

/** The manifest's agents are replaced by the operator's, node by node; everything else is made before, and removed after. */
export function planMigrateOperator(
  observation: Observation,
  facts: ManifestFacts,
  request: MigrateOperatorRequest,
): Plan {
  const { acceptLoss = [], budget, force } = request;
  const conversion = converted(observation, facts);
  const inventory = asInventory(conversion.notCarried, acceptLoss);
  refuseUnknownLosses(inventory, acceptLoss);
  const waves = wavesOf(observation, request.waves);
  const canary =
    budget === undefined
      ? { notMeasured: "--canary-traffic is off" }
      : chooseCanary(observation, { budget, first: bothEnds(waves), ...(force && { force }) });
  const watch = "inputs" in canary ? watchOf(canary.inputs) : undefined;
  return makePlan({
    procedure: "migrate",
    names: observation.names.dialect,
    title: `Migrate ${facts.file} to the operator`,
    command: request.command,
    observed: fingerprint(observation),
    inventory,
    impact: upgradeImpact(observation, inventory),
    ...withCanary(
      {
        steps: migrateSteps(observation, facts, conversion, { waves, canary: watch }),
        notes: notesOf(observation, facts, conversion),
      },
      canary,
    ),
  });
}

/** What the operator would refuse is foreseen: a pool that it would not accept is not listed, and stays as it is; anything else ends here. */
function converted(observation: Observation, { objects, edits }: ManifestFacts): Conversion {
  const { service, names } = observation;
  const conversion = convertManifest(
    { kind: kindOf(observation), objects, edits, pools: service.pools, ebpf: isEbpfOn(observation) },
    names,
  );
  const { installation } = conversion;
  const problems = (spec: InstallationSpec) =>
    validateObject(installationOf(spec, observation.names), clusterFacts(observation));
  const network = installation.vendorNetwork ?? {};
  const without = { ...installation, vendorNetwork: { ...network, ipPools: [] } };
  const [problem] = problems(without);
  if (problem) throw planErrors.INSTALL_OPERATOR_WOULD_REFUSE(problem.path, problem.message, problem.fix);
  const ipPools = (network.ipPools ?? []).filter(
    (pool) => problems({ ...without, vendorNetwork: { ...network, ipPools: [pool] } }).length === 0,
  );
  return { ...conversion, installation: { ...installation, vendorNetwork: { ...network, ipPools } } };
}

/** Nodes that have an agent; the others get the operator's when they can run one. */
function wavesOf({ nodes, service }: Observation, inputs: WavesInputs | undefined): string[][] {
  const linux = linuxNodes(nodes);
  refuseUnknownCanary(linux, inputs?.canary);
  const running = new Set(service.agents.map(({ node }) => node));
  const moving = linux.filter(({ name }) => running.has(name));
  return inputs ? nodeWaves(moving, inputs) : [moving.map(({ name }) => name)];
}

function notesOf(observation: Observation, { edits }: ManifestFacts, { carried, installation }: Conversion): string[] {
  const overlay = overlayDaemonSet(observation);
  const none = edits.length === 0 ? ["No edits of the manifest were found."] : [];
  const kept = carried.length === 0 ? [] : [`${carried.length} of ${edits.length} edits are carried over:`];
  const listed = new Set((installation.vendorNetwork?.ipPools ?? []).map(({ name }) => name));
  const left = observation.service.pools.filter(({ metadata }) => !listed.has(metadata.name));
  return [
    ...none,
    ...kept,
    ...carried.map(({ edit, field }) => `  ${edit}: ${field}`),
    `The Installation: ${JSON.stringify(installation)}`,
    ...left.map(({ kind, metadata }) => `${kind} ${metadata.name} stays as it is; the Installation does not list it.`),
    ...(overlay
      ? [`The overlay stays as ${nameOf(targetOf(overlay))}, which the operator does not upgrade. ${GUIDE}#overlay.`]
      : []),
    "The manifest has no aggregated v3 API, and neither has the new installation. To add it, create an APIServer named default; see docs/guide/operator.md.",
  ];
}

import { groupVersion, type KubeObject } from "../../../api/object.ts";
import type { HostEndpoint } from "../../../api/resources/host-endpoint.ts";
import { storedPolicyName } from "../../../api/resources/policy-names.ts";
import { fieldAt } from "../../field-at.ts";
import { fingerprint } from "../../fingerprint.ts";
import { makePlan } from "../../make-plan.ts";
import { errors } from "../../migrations/errors.ts";
import type { Observation, SeenNode } from "../../observation.ts";
import type { Plan, Step } from "../../plan.ts";
import { atPath, singleton } from "../cluster-view.ts";
import { deleteObjectStep, step } from "../steps.ts";
import { failsafesOf } from "./control-plane-probes.ts";
import { simulationSentences, temporaryPolicySentences } from "./host-endpoint-messages.ts";
import {
  type PolicyReview,
  reviewPolicy,
  type SimulatedNode,
  type Simulation,
  type SimulationInputs,
  simulateHostEndpoints,
} from "./host-endpoint-simulation.ts";

const RULE =
  "Nodes get the labels first and the automatic endpoints next, so that policies apply all the time; the old endpoints go last. See docs/guide/host-endpoints.md.";
const TEMPORARY_RULE =
  "The temporary policy of an upgrade from before v3.14 allows all traffic to and from nodes. See docs/guide/host-endpoints.md#the-temporary-policy.";
const API_SERVER_PORT = 6443;

export interface HostEndpointInputs {
  /** The policies that will act on the nodes have been looked at. */
  acceptPolicies?: boolean;
  deleteTemporaryPolicy?: boolean;
  command: string;
}

type Endpoint = KubeObject & HostEndpoint;

/** From people's own all-interfaces endpoints to automatic ones. */
export function planHostEndpoints(observation: Observation, inputs: HostEndpointInputs): Plan {
  const { names, service, nodes } = observation;
  if (service.datastore === "etcd") throw errors.HOST_ENDPOINTS_NEED_API();
  const old = oldEndpoints(observation);
  refuseMissingNodes(old, nodes);
  refuseTakenNames(observation);
  const labels = labelsToMove(old, nodes);
  const temporary = temporaryPolicy(observation);
  const simulated = simulationInputs(observation, labels);
  const goes = inputs.deleteTemporaryPolicy === true && temporary !== undefined;
  const review = temporary && reviewPolicy(simulated, (policy) => policy === temporary);
  const end = goes
    ? { ...simulated, policies: simulated.policies.filter((policy) => policy !== temporary) }
    : simulated;
  const simulation = simulateHostEndpoints(end);
  if (!inputs.acceptPolicies) refuseBites(simulation, goes ? review : undefined);
  return makePlan({
    procedure: "migrate",
    names: names.dialect,
    title: titleOf(old.length, nodes.length),
    command: inputs.command,
    observed: fingerprint(observation),
    steps: [
      ...labelSteps(labels),
      ...enableSteps(observation, labels),
      ...deleteSteps(observation, old),
      ...(goes ? [temporaryStep(observation, temporary)] : []),
    ],
    notes: [
      ...simulationSentences(simulation),
      ...temporaryPolicySentences(names.hostEndpoints.temporaryUpgradePolicy, review, goes),
      ...leftAloneSentences(observation, old),
    ],
  });
}

function titleOf(old: number, nodes: number): string {
  const what =
    old === 0
      ? "Enable automatic host endpoints"
      : `Replace ${old} all-interfaces host endpoint${old === 1 ? "" : "s"} by automatic ones`;
  return `${what}, on ${nodes} node${nodes === 1 ? "" : "s"}`;
}

/** As the specification distinguishes them: no created-by label and no automatic suffix; and for all interfaces. */
function oldEndpoints({ v3, names }: Observation): Endpoint[] {
  const { createdBy } = names.labels;
  return (v3.hostEndpoints as Endpoint[]).filter(
    ({ metadata, spec }) =>
      metadata.labels?.[createdBy.key] === undefined &&
      !metadata.name.endsWith(names.hostEndpoints.suffix) &&
      spec?.interfaceName === "*",
  );
}

function refuseMissingNodes(old: readonly Endpoint[], nodes: readonly SeenNode[]): void {
  const known = new Set(nodes.map(({ name }) => name));
  const lost = old.filter(({ spec }) => !known.has(spec.node));
  if (lost.length === 0) return;
  throw errors.HOST_ENDPOINT_NODE_MISSING(
    lost.map(({ metadata, spec }) => `${metadata.name} (node ${spec.node})`).join(", "),
  );
}

/** An endpoint named like an automatic one without their label: the controllers leave it alone, and the node gets none. */
function refuseTakenNames({ v3, names, nodes }: Observation): void {
  const { createdBy } = names.labels;
  const needed = new Set(nodes.map(({ name }) => `${name}${names.hostEndpoints.suffix}`));
  const taken = v3.hostEndpoints.filter(
    ({ metadata }) => needed.has(metadata.name) && metadata.labels?.[createdBy.key] !== createdBy.value,
  );
  if (taken.length > 0) throw errors.HOST_ENDPOINT_NAME_TAKEN(taken.map(({ metadata }) => metadata.name).join(", "));
}

type LabelsOfNodes = Map<string, Record<string, string>>;

/** Labels the endpoints have and their nodes lack. If two differ, only the user can decide. */
function labelsToMove(old: readonly Endpoint[], nodes: readonly SeenNode[]): LabelsOfNodes {
  const conflicts: string[] = [];
  const moved: LabelsOfNodes = new Map();
  for (const node of nodes) {
    const wanted: Record<string, string> = {};
    const saidBy: Record<string, string> = {};
    for (const { metadata } of old.filter(({ spec }) => spec.node === node.name)) {
      for (const [key, value] of Object.entries(metadata.labels ?? {})) {
        const has = node.labels[key] ?? wanted[key];
        const who = node.labels[key] === undefined ? `host endpoint ${saidBy[key]}` : `node ${node.name}`;
        if (has !== undefined && has !== value) {
          conflicts.push(`${key} is "${value}" on host endpoint ${metadata.name} and "${has}" on ${who}`);
        } else if (node.labels[key] === undefined) {
          wanted[key] = value;
          saidBy[key] ??= metadata.name;
        }
      }
    }
    if (Object.keys(wanted).length > 0) moved.set(node.name, wanted);
  }
  if (conflicts.length > 0) throw errors.HOST_ENDPOINT_LABEL_CONFLICT(conflicts.join("; "));
  return moved;
}

function simulationInputs(observation: Observation, labels: LabelsOfNodes): SimulationInputs {
  const { v3, names, nodes, service, apiAddress } = observation;
  const { key, value } = names.labels.createdBy;
  const simulated = nodes
    .filter(({ operatingSystem }) => operatingSystem !== "windows")
    .map((node): SimulatedNode => {
      const now = (v3.hostEndpoints as Endpoint[]).filter(
        ({ spec }) => spec?.node === node.name && spec.interfaceName === "*",
      );
      return {
        name: node.name,
        addresses: node.addresses,
        controlPlane: node.controlPlane,
        labels: { ...node.labels, ...labels.get(node.name), [key]: value },
        now: now.map(({ metadata, spec }) => ({
          labels: metadata.labels ?? {},
          hasProfile: (spec.profiles ?? []).length > 0,
        })),
      };
    });
  return {
    nodes: simulated,
    policies: v3.globalNetworkPolicies,
    tiers: v3.tiers,
    failsafes: failsafesOf(service.dataplaneConfiguration),
    apiServerPort: apiAddress.servers[0]?.port ?? API_SERVER_PORT,
  };
}

function refuseBites({ bites, cuts }: Simulation, review: PolicyReview | undefined): void {
  if (bites.length === 0 && cuts.length === 0 && (review?.cuts.length ?? 0) === 0) return;
  const policies = [...new Set(bites.map(({ policy }) => policy))];
  const cut = [...new Set(cuts.map(({ what, protocol, port }) => `${what} (${protocol} ${port})`))];
  const what = [
    ...(policies.length > 0 ? [policies.join(", ")] : []),
    ...(cut.length > 0 ? [`these would be denied: ${cut.join(", ")}`] : []),
  ];
  throw errors.HOST_ENDPOINT_POLICIES_BITE(what.join("; "));
}

function labelSteps(labels: LabelsOfNodes): Step[] {
  if (labels.size === 0) return [];
  const names = [...labels.keys()];
  const shown = names.length <= 3 ? names.join(", ") : `${names.length} nodes`;
  const said = {
    id: "label-nodes",
    title: "Copy host endpoint labels to nodes",
    where: shown,
    because: `${RULE} Automatic endpoints take their labels from their node.`,
    risk: "low",
  } as const;
  return [step("label-nodes", said, { nodes: Object.fromEntries(labels) })];
}

function enableSteps(observation: Observation, labels: LabelsOfNodes): Step[] {
  const { names, service, nodes } = observation;
  const path = names.fields.autoCreateHostEndpoints;
  const configuration = service.kubeControllersConfiguration;
  const wasEnabled = fieldAt(configuration, path) === "Enabled";
  const section = path.slice(0, path.lastIndexOf("."));
  const only = fieldAt(configuration, `${section}.createDefaultHostEndpoint`) === "Disabled";
  if (wasEnabled && !only && labels.size === 0 && everyNodeHasOne(observation)) return [];
  const wanted = { autoCreate: "Enabled", ...(only && { createDefaultHostEndpoint: "Enabled" }) };
  const target = singleton(names, "kubeControllersConfiguration", "stored");
  const linux = nodes.filter(({ operatingSystem }) => operatingSystem !== "windows");
  const said = {
    id: "enable-auto-host-endpoints",
    title: "Enable automatic host endpoints",
    where: `${target.kind} ${target.name}`,
    because: RULE,
    risk: "medium",
  } as const;
  return [
    step("enable-auto-host-endpoints", said, {
      configuration: target,
      patch: atPath(section, wanted),
      nodes: Object.fromEntries(linux.map(({ name }) => [name, labels.get(name) ?? {}])),
      wasEnabled,
    }),
  ];
}

function everyNodeHasOne({ v3, names, nodes }: Observation): boolean {
  const { key, value } = names.labels.createdBy;
  const automatic = (v3.hostEndpoints as Endpoint[]).filter(
    ({ metadata, spec }) => metadata.labels?.[key] === value && spec?.interfaceName === "*",
  );
  const have = new Set(automatic.map(({ spec }) => spec.node));
  return nodes.every(({ name, operatingSystem }) => operatingSystem === "windows" || have.has(name));
}

function deleteSteps({ names }: Observation, old: readonly Endpoint[]): Step[] {
  if (old.length === 0) return [];
  const apiVersion = groupVersion(names.groups.stored);
  const { kind } = names.kinds.hostEndpoint;
  const said = {
    id: "delete-old-host-endpoints",
    title: `Delete the old host endpoints`,
    where: old.length <= 3 ? old.map(({ metadata }) => metadata.name).join(", ") : `${old.length} host endpoints`,
    because: `${RULE} Old endpoints have neither the created-by label nor the suffix ${names.hostEndpoints.suffix}.`,
    risk: "medium",
  } as const;
  const endpoints = old.map(({ metadata }) => ({ apiVersion, kind, name: metadata.name }));
  return [step("delete-host-endpoints", said, { endpoints })];
}

function temporaryPolicy({ v3, names }: Observation): KubeObject | undefined {
  const name = names.hostEndpoints.temporaryUpgradePolicy;
  return v3.globalNetworkPolicies.find(({ metadata }) => storedPolicyName(metadata.name) === storedPolicyName(name));
}

function temporaryStep({ names }: Observation, { metadata }: KubeObject): Step {
  const target = {
    apiVersion: groupVersion(names.groups.stored),
    kind: names.kinds.globalNetworkPolicy.kind,
    name: metadata.name,
  };
  const said = {
    id: "delete-temporary-policy",
    title: `Delete the temporary upgrade policy`,
    where: `${target.kind} ${target.name}`,
    because: TEMPORARY_RULE,
    risk: "medium",
  } as const;
  return deleteObjectStep(said, { target });
}

function leftAloneSentences({ v3, names }: Observation, old: readonly Endpoint[]): string[] {
  const { createdBy } = names.labels;
  const others = (v3.hostEndpoints as Endpoint[]).filter(
    (one) => !old.includes(one) && one.metadata.labels?.[createdBy.key] === undefined,
  );
  if (others.length === 0) return [];
  const shown = others.map(({ metadata, spec }) => `${metadata.name} (${spec?.interfaceName ?? "by address"})`);
  return [`Kept, because they are not for all interfaces: ${shown.join(", ")}.`];
}

import { nameOf, targetOf } from "../../../actions/objects/target.ts";
import { chooseCanary, watchOf } from "../../../canary/canary-plan.ts";
import { kindOf } from "../../../cluster-facts.ts";
import { fingerprint } from "../../../fingerprint.ts";
import { makePlan } from "../../../make-plan.ts";
import type { Observation } from "../../../observation.ts";
import type { Plan } from "../../../plan.ts";
import { linuxNodes } from "../../node-waves.ts";
import { withCanary } from "../../switch/canary-steps.ts";
import { asInventory, refuseUnknownLosses } from "../../upgrade/inventory.ts";
import { upgradeImpact } from "../../upgrade/upgrade-impact.ts";
import type { MigrateOperatorRequest } from "../operator/migrate-operator.ts";
import { convertLive, type PublicConversion } from "./convert-live.ts";
import { type PublicManifestFacts, publicSteps } from "./public-steps.ts";

/** The public operator moves the nodes itself; what it would refuse or drop is foreseen, and its rollback is ours. */
export function planMigratePublicOperator(
  observation: Observation,
  facts: PublicManifestFacts,
  request: Omit<MigrateOperatorRequest, "waves">,
): Plan {
  const { acceptLoss = [], budget, force, command } = request;
  const { service, names } = observation;
  const conversion = convertLive(
    {
      ...{ live: facts.live, edits: facts.edits, pools: service.pools, kind: kindOf(observation) },
      ...{ configuration: service.dataplaneConfiguration, endpointMap: facts.endpointMap },
    },
    names,
  );
  const inventory = asInventory(conversion.notCarried, acceptLoss);
  refuseUnknownLosses(inventory, acceptLoss);
  const nodes = movingNodes(observation);
  const canary =
    budget === undefined
      ? { notMeasured: "--canary-traffic is off" }
      : chooseCanary(observation, { budget, first: nodes, ...(force && { force }) });
  const watch = "inputs" in canary ? watchOf(canary.inputs) : undefined;
  return makePlan({
    procedure: "migrate",
    names: names.dialect,
    title: `Migrate ${facts.file} to the operator`,
    command,
    observed: fingerprint(observation),
    inventory,
    impact: upgradeImpact(observation, inventory),
    ...withCanary(
      {
        steps: publicSteps(observation, facts, conversion, { nodes, canary: watch }),
        notes: notesOf(observation, facts, conversion),
      },
      canary,
    ),
  });
}

/** Nodes that have an agent. */
function movingNodes({ nodes, service }: Observation): string[] {
  const running = new Set(service.agents.map(({ node }) => node));
  return linuxNodes(nodes).flatMap(({ name }) => (running.has(name) ? [name] : []));
}

function notesOf(
  { service }: Observation,
  { edits, live, operator }: PublicManifestFacts,
  { carried, installation, pools, ebpf }: PublicConversion,
): string[] {
  const left = service.pools.map(({ metadata }) => metadata.name).filter((name) => !pools.includes(name));
  const image = operator.find(({ kind }) => kind === "Deployment")?.["spec"] as
    | { template: { spec: { containers: { image: string }[] } } }
    | undefined;
  return [
    ...(edits.length === 0 ? ["No edits of the manifest were found."] : []),
    ...(carried.length === 0 ? [] : [`${carried.length} of ${edits.length} edits are carried over by the operator:`]),
    ...carried.map(({ edit, field }) => `  ${edit}: ${field}`),
    `The Installation that vendorctl creates: ${JSON.stringify(installation)}. The operator adds what it finds in ${nameOf(targetOf(live.agents))}.`,
    ...pools.map((name) => `IPPool ${name} is listed in the Installation, and belongs to the operator from then on.`),
    ...left.map((name) => `IPPool ${name} stays as it is; the Installation does not list it.`),
    ...(ebpf ? ["eBPF stays on; the operator copies the address of the API server to its namespace itself."] : []),
    ...("registry" in installation
      ? [`The operator's own image is ${image?.template.spec.containers[0]?.image}: nodes must be able to pull it.`]
      : []),
    "Until the step migrate-nodes nothing that runs has changed, and a rollback restarts no agent. From that step on it moves each node that has moved back, one after another: its agent is replaced twice, by the manifest's and again when the manifest is as it was. Rules, routes and connections stay in the kernel meanwhile.",
    "The operator replaces each agent a second time at the end, when it no longer needs the label of the migration.",
    "The manifest has no aggregated v3 API, and neither has the new installation. To add it, create an APIServer named default.",
  ];
}

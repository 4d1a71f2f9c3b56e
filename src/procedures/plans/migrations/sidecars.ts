import type { KubeObject } from "../../../api/object.ts";
import { nameOf } from "../../actions/objects/target.ts";
import { fingerprint } from "../../fingerprint.ts";
import { hashOf, makePlan } from "../../make-plan.ts";
import type { BarePod, SidecarCarrier } from "../../migrations/sidecar-carriers.ts";
import type { Observation } from "../../observation.ts";
import type { Plan, Step } from "../../plan.ts";
import { applyObjectsStep, mergePatchStep, waitForRolloutStep } from "../steps.ts";

const RULE =
  "New pods get the sidecar that the injector's ConfigMap names; running pods keep theirs until they are restarted. See docs/guide/sidecars.md.";
const SAFE =
  "An upgraded node agent works with an older sidecar, so connectivity is kept while workloads are restarted.";

export interface SidecarInputs {
  meshVersion: string;
  map: KubeObject;
  carriers: readonly SidecarCarrier[];
  bare: readonly BarePod[];
  command: string;
}

/** First what new pods get, then new pods, one workload after the other. */
export function planSidecars(observation: Observation, inputs: SidecarInputs): Plan {
  const { names } = observation;
  const { map, meshVersion, carriers, bare } = inputs;
  const mark = { key: `${names.groups.served.group}/sidecar-injector`, value: hashOf(map).slice(0, 16) };
  const left = carriers.filter(({ annotations }) => annotations[mark.key] !== mark.value);
  return makePlan({
    procedure: "migrate",
    names: names.dialect,
    title: `Update the sidecars of ${left.length} workload${left.length === 1 ? "" : "s"} to ${observation.tool.version}, mesh ${meshVersion}`,
    command: inputs.command,
    observed: fingerprint(observation),
    steps: [mapStep(map, meshVersion), ...left.flatMap((carrier) => rollSteps(carrier, mark))],
    notes: [
      `Why this order is safe: ${SAFE} So the service is upgraded first, then the injector's ConfigMap, then one workload after another.`,
      ...(carriers.length === 0 ? ["No pod has the sidecar; new pods get it from the new ConfigMap."] : []),
      ...(left.length < carriers.length
        ? [`${carriers.length - left.length} workloads have been restarted with this ConfigMap already.`]
        : []),
      ...bareSentences(bare),
    ],
  });
}

function mapStep(map: KubeObject, meshVersion: string): Step {
  const { namespace, name } = map.metadata;
  return applyObjectsStep(
    {
      id: "apply-injector-map",
      title: `Apply the injector map of mesh ${meshVersion}`,
      where: `ConfigMap ${namespace}/${name}`,
      because: RULE,
      risk: "low",
    },
    { objects: [map] },
  );
}

/** The mark is made of the map, so a run that begins again does not restart what has been restarted for it. */
function rollSteps({ workload }: SidecarCarrier, mark: { key: string; value: string }): Step[] {
  const where = nameOf(workload);
  const id = `${workload.kind.toLowerCase()}-${workload.namespace}-${workload.name}`;
  const rollout = { workload };
  return [
    mergePatchStep(
      { id: `roll-${id}`, title: "Restart the workload", where, because: RULE, risk: "low" },
      {
        target: workload,
        patch: { spec: { template: { metadata: { annotations: { [mark.key]: mark.value } } } } },
        afterUndo: { rollouts: [rollout] },
      },
    ),
    waitForRolloutStep({ id: `wait-${id}`, title: "Wait for the new sidecar", where, because: SAFE }, rollout),
  ];
}

function bareSentences(bare: readonly BarePod[]): string[] {
  if (bare.length === 0) return [];
  const shown = bare.slice(0, 5).map(({ namespace, name }) => `${namespace}/${name}`);
  const more = bare.length > shown.length ? ` and ${bare.length - shown.length} more` : "";
  return [`Pods that nothing restarts keep their old sidecar until you replace them: ${shown.join(", ")}${more}.`];
}

import type { Names } from "../../../api/names.ts";
import type { KubeObject } from "../../../api/object.ts";
import { nameOf, type Target } from "../../actions/objects/target.ts";
import { fingerprint } from "../../fingerprint.ts";
import { hashOf, makePlan } from "../../make-plan.ts";
import { injectedByMap } from "../../migrations/injector-map.ts";
import type { BarePod, SidecarCarrier } from "../../migrations/sidecar-carriers.ts";
import type { Observation } from "../../observation.ts";
import type { Plan, Step } from "../../plan.ts";
import { applyObjectsStep, deleteObjectStep, mergePatchStep, waitForRolloutStep } from "../steps.ts";

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
    steps: [
      ...canarySteps(map, names),
      mapStep(map, meshVersion),
      ...left.flatMap((carrier) => rollSteps(carrier, mark)),
    ],
    notes: [
      `Why this order is safe: ${SAFE} So the service is upgraded first, then a sidecar is proved, then the injector's ConfigMap is applied, then one workload after another.`,
      ...(canarySteps(map, names).length === 0
        ? [
            "The sidecar of this ConfigMap cannot be proved before it is applied: its template is for the mesh alone to read.",
          ]
        : []),
      ...(carriers.length === 0 ? ["No pod has the sidecar; new pods get it from the new ConfigMap."] : []),
      ...(left.length < carriers.length
        ? [`${carriers.length - left.length} workloads have been restarted with this ConfigMap already.`]
        : []),
      ...bareSentences(bare),
    ],
  });
}

const PROOF =
  "A pod with the new sidecar alone is ready when the sidecar has the policy of its pod and has answered. Until then nothing that is in use is changed.";

/** The new sidecar as the injector will add it, in a pod that serves nothing. */
function canarySteps(map: KubeObject, names: Names): Step[] {
  const { containers = [], volumes } = injectedByMap(map, names) ?? {};
  const sidecar = containers.find(({ name }) => name === names.manifests.sidecarContainer);
  if (!sidecar) return [];
  const { namespace } = map.metadata;
  const name = `${names.manifests.sidecarContainer}-canary`;
  const labels = { app: name };
  const canary: KubeObject = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name, namespace },
    spec: {
      replicas: 1,
      selector: { matchLabels: labels },
      template: {
        // It has the sidecar already.
        metadata: { labels, annotations: { "sidecar.istio.io/inject": "false" } },
        spec: { automountServiceAccountToken: false, containers: [sidecar], volumes },
      },
    },
  };
  const workload = { apiVersion: canary.apiVersion, kind: canary.kind, namespace, name } as Target;
  const where = nameOf(workload);
  return [
    applyObjectsStep(
      { id: "start-canary", title: "Start a pod with the new sidecar", where, because: PROOF },
      { objects: [canary] },
    ),
    waitForRolloutStep(
      { id: "prove-canary", title: "Wait until its sidecar answers", where, because: PROOF },
      { workload },
    ),
    deleteObjectStep(
      { id: "stop-canary", title: "Delete the pod", where, because: PROOF },
      { target: workload, propagation: "Foreground" },
    ),
  ];
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

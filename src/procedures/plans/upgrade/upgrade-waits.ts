import type { KubeObject } from "../../../api/object.ts";
import { parseVersion, sameLine } from "../../../api/tables/version.ts";
import { VERSION_GATES } from "../../../api/tables/version-gates.ts";
import type { Expectation } from "../../actions/objects/expectation.ts";
import { nameOf, type Target, targetOf } from "../../actions/objects/target.ts";
import type { CanaryWatch } from "../../canary/canary-plan.ts";
import type { Observation } from "../../observation.ts";
import type { Step } from "../../plan.ts";
import { operatorTarget, singleton } from "../cluster-view.ts";
import { step, waitForRolloutStep, waitForStatusStep } from "../steps.ts";
import { type AgentWaves, releaseAgentsStep, releaseManifestStep, renderedStep, updateSteps } from "./agent-waves.ts";
import type { UpgradePath } from "./upgrade-path.ts";

/** What the waits need of a roll-out in waves. */
interface Rollout extends AgentWaves {
  canary: CanaryWatch | undefined;
}

/** Until the new version runs and says so. `objects`: those of the manifest. */
export function waitSteps(
  observation: Observation,
  path: UpgradePath,
  objects: readonly KubeObject[],
  rollout: Rollout | undefined,
): Step[] {
  const verify = verifyStep(observation, path);
  if (path.method === "manifest") return [...manifestWaits(observation, objects, rollout), verify];
  const [operator, complete] = operatorWaits(observation);
  const agents = rollout
    ? [
        // A repair of the version that runs changes no image that could be waited for.
        ...(path.from === path.to ? [] : [renderedStep(observation, rollout)]),
        ...updateSteps(rollout, rollout),
        releaseAgentsStep(observation),
      ]
    : [];
  // Within a line the old operator's status of each part looks like the new one's: only the version shows whose it is.
  const reported = isWithinLine(path) ? [verify, complete] : [complete, verify];
  return [operator, ...agents, ...reported];
}

const isWithinLine = ({ from, to }: UpgradePath): boolean => sameLine(parseVersion(from)!, parseVersion(to)!);

/** The DaemonSet of the node agents, where it is. */
export function agentsTarget({ names, service }: Observation, method: UpgradePath["method"]): Target {
  const byManifest = method === "manifest";
  const { orchestratorSystem, system } = names.namespaces;
  const namespace = service.nodeAgents?.metadata.namespace ?? (byManifest ? orchestratorSystem : system);
  const overlay = byManifest && service.variant === "overlay";
  const name = overlay ? names.workloads.overlayNode : names.workloads.node;
  return { apiVersion: "apps/v1", kind: "DaemonSet", namespace, name };
}

/** Running, with the READY the specification names. */
function manifestWaits(observation: Observation, objects: readonly KubeObject[], rollout: Rollout | undefined): Step[] {
  const { names, service } = observation;
  const nodes = agentsTarget(observation, "manifest");
  const controllers: Target = { ...nodes, kind: "Deployment", name: names.workloads.kubeControllers };
  const { ready } = names;
  const wanted =
    service.datastore === "etcd"
      ? ready.etcdDatastore
      : service.variant === "overlay"
        ? ready.overlay
        : ready.apiDatastore;
  const because =
    "A node agent is upgraded when its pod is Running and ready: 2/2 with the API datastore, 1/2 with etcd. See docs/guide/upgrade.md.";
  const agents = rollout
    ? [...updateSteps(rollout, { ...rollout, ready: wanted }), releaseManifestStep(objects, rollout)]
    : [];
  // Agents of the new release may not understand an older Typha, so it comes first.
  const typha = objects.find(({ kind, metadata }) => kind === "Deployment" && metadata.name === names.workloads.typha);
  return [
    ...(typha
      ? [
          waitForRolloutStep(
            { id: "typha-updated", title: "Wait for Typha", where: nameOf(targetOf(typha)), because, risk: "medium" },
            { workload: targetOf(typha) },
          ),
        ]
      : []),
    ...agents,
    waitForRolloutStep(
      {
        id: "nodes-updated",
        title: `Wait for the node agents (READY ${wanted})`,
        where: nameOf(nodes),
        because,
        risk: "medium",
      },
      { workload: nodes, ready: wanted },
    ),
    waitForRolloutStep(
      { id: "controllers-updated", title: "Wait for the controllers", where: nameOf(controllers), because },
      { workload: controllers },
    ),
  ];
}

function operatorWaits({ names, service }: Observation): [operator: Step, complete: Step] {
  const { statuses, kinds } = names;
  const wanted = [
    statuses.network,
    ...(service.apiServer ? [statuses.apiServer] : []),
    ...(service.flowLogs ? [statuses.flowLogs] : []),
    ...(service.flowUI ? [statuses.flowUI] : []),
  ];
  return [
    waitForRolloutStep(
      {
        id: "operator-updated",
        title: "Wait for the new operator",
        where: nameOf(operatorTarget(names)),
        because: "The new operator rolls the new version out. See docs/guide/upgrade.md.",
      },
      { workload: operatorTarget(names) },
    ),
    waitForStatusStep(
      {
        id: "complete",
        title: "Wait for every component",
        where: `${kinds.status.kind} ${wanted.join(", ")}`,
        because:
          "The operator rolls the new version out and reports in its status when it is complete. See docs/guide/operator.md#status.",
        risk: "medium",
      },
      { statuses: wanted, fresh: true },
    ),
  ];
}

function verifyStep(observation: Observation, path: UpgradePath): Step {
  const { names, service } = observation;
  const { to, method } = path;
  const { major, minor, patch } = parseVersion(to)!;
  const line = `v${major}.${minor}`;
  // Within a line the old version is of it too, and would pass for the new one.
  const within = isWithinLine(path);
  const matches = within ? `^v?${major}\\.${minor}\\.${patch}$` : `^v?${major}\\.${minor}\\.`;
  const information: Expectation = {
    target: singleton(names, "clusterInformation", "stored"),
    path: names.fields.clusterVersion.split("."),
    matches,
  };
  const reported: Expectation = {
    target: singleton(names, "installation"),
    path: names.fields.statusVersion.split("."),
    matches,
  };
  const until: Expectation[] = [
    ...(method === "manifest" ? [] : [reported]),
    ...(service.datastore === "etcd" ? [agentsImage(observation, matches.replace("^", ":"))] : [information]),
  ];
  return step(
    "verify-version",
    {
      id: "verify-version",
      title: `Verify version ${within ? to : `${line}.x`}`,
      where: until.map(({ target }) => nameOf(target)).join(", "),
      because: `ClusterInformation must report ${line}.x. ${VERSION_GATES.target.because}`,
    },
    { until },
  );
}

/** With etcd the version is written there; what the API has of it is what the pods run. */
function agentsImage(observation: Observation, matches: string): Expectation {
  return {
    target: agentsTarget(observation, "manifest"),
    path: ["spec", "template", "spec", "containers", "0", "image"],
    matches,
  };
}

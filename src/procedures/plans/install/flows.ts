import { groupVersion, type KubeObject } from "../../../api/object.ts";
import { VERSION_GATES } from "../../../api/tables/version-gates.ts";
import { nameOf } from "../../actions/objects/target.ts";
import { fingerprint } from "../../fingerprint.ts";
import { makePlan } from "../../make-plan.ts";
import type { Observation } from "../../observation.ts";
import type { Plan, Step } from "../../plan.ts";
import { singleton } from "../cluster-view.ts";
import { applyObjectsStep, deleteObjectStep, waitForStatusStep } from "../steps.ts";
import { errors } from "../upgrade/upgrade-errors.ts";

const RULE =
  "The operator runs flow logs and the flow UI while their resources exist, from v3.30 on. See docs/guide/operator.md#maintain.";

/** Flow logs, and with `ui` the page that shows them. */
export function planEnableFlows(observation: Observation, { ui, command }: { ui: boolean; command: string }): Plan {
  const { names, service } = observation;
  refuseWithoutOperator(observation);
  const wanted = [
    { noun: "flowLogs" as const, there: service.flowLogs, status: names.statuses.flowLogs },
    ...(ui ? [{ noun: "flowUI" as const, there: service.flowUI, status: names.statuses.flowUI }] : []),
  ];
  const steps = wanted.flatMap(({ noun, there, status }): Step[] => {
    const target = singleton(names, noun);
    const object: KubeObject = {
      apiVersion: groupVersion(names.groups.operator),
      kind: target.kind,
      metadata: { name: target.name },
    };
    const create = applyObjectsStep(
      {
        id: `enable-${status}`,
        title: `Create ${target.kind} ${target.name}`,
        where: nameOf(target),
        because: RULE,
        risk: "low",
      },
      { objects: [{ ...object, spec: {} }] },
    );
    const wait = waitForStatusStep(
      {
        id: `${status}-available`,
        title: `Wait for ${status}`,
        where: `${names.kinds.status.kind} ${status}`,
        because: RULE,
      },
      { statuses: [status] },
    );
    return there ? [wait] : [create, wait];
  });
  return plan(observation, command, `Enable flow logs${ui ? " and the flow UI" : ""}`, steps);
}

/** The page first: it needs the logs. */
export function planDisableFlows(observation: Observation, { command }: { command: string }): Plan {
  const { names, service } = observation;
  refuseWithoutOperator(observation);
  const there = [
    ...(service.flowUI ? [singleton(names, "flowUI")] : []),
    ...(service.flowLogs ? [singleton(names, "flowLogs")] : []),
  ];
  if (there.length === 0) throw errors.FLOWS_NOT_ENABLED();
  const steps = there.map((target) =>
    deleteObjectStep(
      {
        id: `disable-${target.kind.toLowerCase()}`,
        title: `Delete ${target.kind} ${target.name}`,
        where: nameOf(target),
        because: "The operator removes flow logs and the flow UI when their resources are deleted.",
        risk: "low",
      },
      { target },
    ),
  );
  return plan(observation, command, "Disable flow logs and the flow UI", steps);
}

function refuseWithoutOperator({ service }: Observation): void {
  if (service.method === "none") throw errors.UPGRADE_NOTHING_INSTALLED();
  if (service.method === "manifest") throw errors.FLOWS_NEED_OPERATOR();
}

function plan(observation: Observation, command: string, title: string, steps: readonly Step[]): Plan {
  return makePlan({
    procedure: "flows",
    names: observation.names.dialect,
    title,
    command,
    observed: fingerprint(observation),
    steps,
    notes: [VERSION_GATES.flowLogs.because],
  });
}

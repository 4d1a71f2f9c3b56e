import { CLUSTER_KINDS } from "../../../api/tables/cluster-kinds.ts";
import { nameOf } from "../../actions/objects/target.ts";
import { kindOf } from "../../cluster-facts.ts";
import { fieldAt } from "../../field-at.ts";
import type { Observation } from "../../observation.ts";
import type { Step } from "../../plan.ts";
import { operatorTarget } from "../cluster-view.ts";
import { mergePatchStep } from "../steps.ts";

/** The nameserver the operator needs on this kind of cluster, if it needs one of its own. */
export function operatorNameserver(observation: Observation): string | undefined {
  const row = CLUSTER_KINDS[kindOf(observation)];
  return row.operatorNameserver;
}

/**
 * Install step 4. Only with `dnsPolicy: None` is the nameserver the single one, as the specification wants it: with any other policy
 * it is one more at the end of a list whose first may never answer.
 */
export function operatorNameserverSteps(observation: Observation, undo?: "wait after undo"): Step[] {
  const { names, service } = observation;
  const nameserver = operatorNameserver(observation);
  if (nameserver === undefined) return [];
  const has = fieldAt(service.operator, "spec.template.spec.dnsConfig.nameservers");
  if (Array.isArray(has) && has.includes(nameserver)) return [];
  const target = operatorTarget(names);
  return [
    mergePatchStep(
      {
        id: "operator-nameserver",
        title: `Set the operator's name server`,
        where: nameOf(target),
        because: CLUSTER_KINDS[kindOf(observation)].because,
        risk: "low",
      },
      {
        target,
        patch: { spec: { template: { spec: { dnsPolicy: "None", dnsConfig: { nameservers: [nameserver] } } } } },
        afterApply: { rollouts: [{ workload: target }] },
        ...(undo && { afterUndo: { rollouts: [{ workload: target }] } }),
      },
    ),
  ];
}

import { FLOWS_API, vendorNames } from "../../api/names.ts";
import { withFix } from "../../api/protocol/status-message.ts";
import type { flowLogs } from "../../api/resources/flow-logs.ts";
import type { ObjectOf } from "../../api/resources/resource.ts";
import { flowResourceProblems } from "../../api/validation/flow-resources.ts";
import { theOne } from "../observed.ts";
import { degradedInPart, type Outcome, progressing, ready } from "../outcome.ts";
import type { ReconcileContext } from "../reconcile-context.ts";
import { firstFew } from "../workload-health.ts";
import { apiAnswers } from "./api-service.ts";
import { reconcileOptional } from "./optional-part.ts";

type Collection = NonNullable<NonNullable<ObjectOf<typeof flowLogs>["status"]>["collection"]>;

/** vendor-flow-logs says twice a minute how collecting goes. */
const SAID_WITHIN_MS = 120_000;

/** Flow logs, from v3.30 on. */
export const reconcileFlowLogs = reconcileOptional({
  noun: "flowLogs",
  component: "flow-logs",
  notInstalled: "There is no FlowLogs named default.",
  assess: assessFlowLogs,
  requests: ({ flowLogs }) => flowLogs,
  problems: ({ self }) => flowResourceProblems(vendorNames.singleton, { version: self.version }),
});

function assessFlowLogs(hands: ReconcileContext, now: number): Outcome {
  const answers = apiAnswers(hands, now, { ...FLOWS_API, workload: vendorNames.workloads.flowLogs });
  if (answers.kind !== "ready") return answers;
  const object = theOne(hands.observe().flowLogs);
  const { collection } = (object?.["status"] ?? {}) as { collection?: Collection };
  const said = Date.parse(collection?.time ?? "");
  if (!collection || !(now - said < SAID_WITHIN_MS))
    return progressing("vendor-flow-logs to say what it collects", 5_000);
  const { nodes = 0, silentNodes = [], lateNodes = [], skewedNodes = [] } = collection;
  if (silentNodes.length > 0 || nodes === 0) {
    const which = nodes === 0 ? "no node" : `not from ${firstFew(silentNodes)}`;
    const message = nodes === 0 ? "No node sends flows." : `Flows come, but ${which}.`;
    return degradedInPart("FlowNodesSilent", withFix(message, "vendor node show problems, on such a node"));
  }
  const notes = [
    ...(lateNodes.length > 0 ? [`late from ${firstFew(lateNodes)}`] : []),
    ...(skewedNodes.length > 0 ? [`clocks differ on ${firstFew(skewedNodes)}`] : []),
    ...(collection.merged ? [`${collection.merged} sums were merged for want of room`] : []),
    ...(collection.unattributed ? [`${collection.unattributed} packets are in no flow`] : []),
  ];
  const kept = `${collection.rows ?? 0} rows since ${collection.since ?? "now"}, ${collection.rowsPerSecond ?? 0} a second`;
  return ready(`Flows come from ${nodes} nodes; ${[kept, ...notes].join("; ")}.`, [
    ...answers.checked,
    `FlowLogs ${vendorNames.singleton}: vendor-flow-logs reported at ${collection.time}`,
  ]);
}

import { FLOW_LOGS_API, vendorNames } from "../../api/names.ts";
import { isSimulatedNode } from "../../api/protocol/simulated-node.ts";
import { withFix } from "../../api/protocol/status-message.ts";
import type { FlowLogs } from "../../api/resources/flow-logs.ts";
import { flowExportProblems, flowResourceProblems } from "../../api/validation/flow-resources.ts";
import { type Observed, theOne } from "../observed.ts";
import { degradedInPart, type Outcome, progressing, ready } from "../outcome.ts";
import type { ReconcileContext } from "../reconcile-context.ts";
import { firstFew } from "../workload-health.ts";
import { apiAnswers } from "./api-service.ts";
import { reconcileOptional } from "./optional-part.ts";

type Status = NonNullable<FlowLogs["status"]>;

/** vendor-flow-logs says twice a minute how collecting goes. */
const SAID_WITHIN_MS = 120_000;

/** Flow logs, from v3.30 on. */
export const reconcileFlowLogs = reconcileOptional({
  noun: "flowLogs",
  component: "flow-logs",
  notInstalled: "There is no FlowLogs named default.",
  assess: assessFlowLogs,
  requests: ({ flowLogs }) => flowLogs,
  problems: ({ self, flowLogs }) => [
    ...flowResourceProblems(vendorNames.singleton, { version: self.version }),
    ...flowExportProblems((theOne(flowLogs) as FlowLogs | undefined)?.spec),
  ],
});

/** Agents hear of it by the Service, and send a first time at once. */
const FIRST_WITHIN_MS = 60_000;

function withoutNodes({ nodes }: Observed, age: number): Outcome {
  if (nodes.every(({ metadata }) => isSimulatedNode(metadata.annotations ?? {}))) {
    return degradedInPart("FlowNodesSilent", "No node sends flows: all nodes are simulated, and no packet moves.");
  }
  if (age < FIRST_WITHIN_MS) return progressing("the first flows of a node", 3_000);
  return degradedInPart("FlowNodesSilent", withFix("No node sends flows.", "vendor node show problems, on a node"));
}

/** A collector that is started again is no trouble. */
const FAILING_MS = 60_000;

function exportTrouble(exported: Status["export"], now: number): Outcome | undefined {
  if (!exported?.failure || now - Date.parse(exported.failingSince ?? "") < FAILING_MS) return undefined;
  const { failure, waiting = 0, dropped = 0 } = exported;
  const lost = dropped > 0 ? `, and ${dropped} are lost` : "";
  const message = `Flows come, but are not exported since ${exported.failingSince}: ${failure}. ${waiting} wait${lost}.`;
  return degradedInPart(
    "FlowExportFailing",
    withFix(message, "kubectl get flowlogs default -o yaml, for the endpoint"),
  );
}

function diskTrouble(disk: Status["disk"]): Outcome | undefined {
  if (!disk?.failure) return undefined;
  const message = `Flows cannot be written to disk since ${disk.failingSince}: ${disk.failure}. Nodes keep them meanwhile.`;
  return degradedInPart("FlowDiskFailing", withFix(message, "kubectl get flowlogs default -o yaml, for the claim"));
}

function assessFlowLogs(hands: ReconcileContext, now: number): Outcome {
  const answers = apiAnswers(hands, now, { ...FLOW_LOGS_API, workload: vendorNames.workloads.flowLogs });
  if (answers.kind !== "ready") return answers;
  const object = theOne(hands.observe().flowLogs);
  const { collection, disk, export: exported } = (object?.["status"] ?? {}) as Status;
  const said = Date.parse(collection?.time ?? "");
  if (!collection || !(now - said < SAID_WITHIN_MS))
    return progressing("vendor-flow-logs to say what it collects", 5_000);
  const { nodes = 0, silentNodes = [], lateNodes = [], skewedNodes = [] } = collection;
  if (nodes === 0) return withoutNodes(hands.observe(), now - Date.parse(object?.metadata.creationTimestamp ?? ""));
  if (silentNodes.length > 0) {
    const message = `Flows come, but not from ${firstFew(silentNodes)}.`;
    return degradedInPart("FlowNodesSilent", withFix(message, "vendor node show problems, on such a node"));
  }
  const trouble = diskTrouble(disk) ?? exportTrouble(exported, now);
  if (trouble) return trouble;
  const notes = [
    ...(disk ? [disk.since === undefined ? "they are kept on disk" : `on disk since ${disk.since}`] : []),
    ...(exported ? [`${exported.sent ?? 0} were exported`] : []),
    ...(exported?.dropped ? [`${exported.dropped} could not be exported and are lost there`] : []),
    ...(lateNodes.length > 0 ? [`late from ${firstFew(lateNodes)}`] : []),
    ...(skewedNodes.length > 0 ? [`clocks differ on ${firstFew(skewedNodes)}`] : []),
    ...(collection.shed?.length ? [`${collection.shed.join(", ")} of some were merged for want of memory`] : []),
    ...(collection.merged ? ["some were merged because there were too many"] : []),
    ...(collection.unattributed ? ["some packets are in none"] : []),
  ];
  // Figures are in FlowLogs: here they would be a write for each report.
  return ready(`${[`Flows come from ${nodes} ${nodes === 1 ? "node" : "nodes"}`, ...notes].join("; ")}.`, [
    ...answers.checked,
    `FlowLogs ${vendorNames.singleton}: vendor-flow-logs reported within two minutes`,
  ]);
}

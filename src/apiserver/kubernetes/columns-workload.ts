import type { Condition, KubeObject } from "../../api/object.ts";
import type { Column } from "../resource.ts";
import { ageSince, humanDuration } from "./age.ts";
import {
  AGE,
  count,
  dig,
  labelsText,
  NAME,
  numberAt,
  SPEC_SELECTOR,
  templateColumns,
  text,
  textAt,
  wide,
} from "./column.ts";
import { specOf, statusOf, type WorkloadSpec } from "./shapes.ts";

const readyOf = (object: KubeObject): string =>
  `${numberAt("status.readyReplicas")(object, NEVER)}/${numberAt("spec.replicas")(object, NEVER)}`;
const NEVER = new Date(0);

interface JobSpec {
  completions?: number;
  parallelism?: number;
  suspend?: boolean;
}
interface JobStatus {
  succeeded?: number;
  startTime?: string;
  completionTime?: string;
  conditions?: Condition[];
}

function completions(job: KubeObject): string {
  const spec = specOf<JobSpec>(job);
  const done = statusOf<JobStatus>(job).succeeded ?? 0;
  if (spec.completions !== undefined) return `${done}/${spec.completions}`;
  const parallel = spec.parallelism ?? 0;
  return parallel > 1 ? `${done}/1 of ${parallel}` : `${done}/1`;
}

function jobStatus(job: KubeObject): string {
  const holds = (type: string) =>
    (statusOf<JobStatus>(job).conditions ?? []).some((one) => one.type === type && one.status === "True");
  if (holds("Complete")) return "Complete";
  if (holds("Failed")) return "Failed";
  if (job.metadata.deletionTimestamp) return "Terminating";
  if (holds("Suspended")) return "Suspended";
  if (holds("FailureTarget")) return "FailureTarget";
  return holds("SuccessCriteriaMet") ? "SuccessCriteriaMet" : "Running";
}

function jobDuration(job: KubeObject, now: Date): string {
  const { startTime, completionTime } = statusOf<JobStatus>(job);
  if (!startTime) return "";
  if (!completionTime) return ageSince(startTime, now);
  return humanDuration((Date.parse(completionTime) - Date.parse(startTime)) / 1000);
}

const REPLICAS: readonly Column[] = [
  count("Desired", numberAt("spec.replicas"), "Pods asked for."),
  count("Current", numberAt("status.replicas"), "Pods there are."),
  count("Ready", numberAt("status.readyReplicas"), "Pods that are ready."),
  AGE,
];

export const WORKLOAD_COLUMNS: Readonly<Record<string, readonly Column[]>> = {
  Deployment: [
    NAME,
    text("Ready", readyOf, "Ready pods, of those asked for."),
    count("Up-to-date", numberAt("status.updatedReplicas"), "Pods of the newest template."),
    count("Available", numberAt("status.availableReplicas"), "Pods ready for long enough."),
    AGE,
    ...templateColumns("spec.template", SPEC_SELECTOR),
  ],
  ReplicaSet: [NAME, ...REPLICAS, ...templateColumns("spec.template", SPEC_SELECTOR)],
  ReplicationController: [
    NAME,
    ...REPLICAS,
    ...templateColumns("spec.template", (object) =>
      labelsText(dig(object, "spec.selector") as Record<string, string> | undefined),
    ),
  ],
  DaemonSet: [
    NAME,
    count("Desired", numberAt("status.desiredNumberScheduled"), "Nodes that should run the pod."),
    count("Current", numberAt("status.currentNumberScheduled"), "Nodes that run the pod and should."),
    count("Ready", numberAt("status.numberReady"), "Nodes where it is ready."),
    count("Up-to-date", numberAt("status.updatedNumberScheduled"), "Nodes that run the newest template."),
    count("Available", numberAt("status.numberAvailable"), "Nodes where it is ready for long enough."),
    text("Node Selector", (object) => labelsText(specOf<WorkloadSpec>(object).template?.spec?.nodeSelector)),
    AGE,
    ...templateColumns("spec.template", SPEC_SELECTOR),
  ],
  StatefulSet: [NAME, text("Ready", readyOf, "Ready pods, of those asked for."), AGE, ...templateColumns()],
  Job: [
    NAME,
    text("Status", jobStatus, "How the job ended, or that it runs."),
    text("Completions", completions, "Pods that succeeded, of those needed."),
    text("Duration", jobDuration, "How long the job has run."),
    AGE,
    ...templateColumns("spec.template", SPEC_SELECTOR),
  ],
  CronJob: [
    NAME,
    text("Schedule", textAt("spec.schedule", "")),
    text("Timezone", textAt("spec.timeZone")),
    { ...text("Suspend", (object) => (dig(object, "spec.suspend") ? "True" : "False")), type: "boolean" },
    count("Active", (object) => ((dig(object, "status.active") as unknown[] | undefined) ?? []).length),
    text("Last Schedule", (object, now) => {
      const last = dig(object, "status.lastScheduleTime");
      return last ? ageSince(String(last), now) : "<none>";
    }),
    AGE,
    ...templateColumns("spec.jobTemplate.spec.template", (object) =>
      SPEC_SELECTOR({ ...object, spec: dig(object, "spec.jobTemplate.spec") }, NEVER),
    ),
  ],
  ControllerRevision: [
    NAME,
    text("Controller", (object) => {
      const owner = object.metadata.ownerReferences?.find((one) => one.controller);
      return owner ? `${owner.kind.toLowerCase()}.${owner.apiVersion.split("/")[0]}/${owner.name}` : "<none>";
    }),
    count("Revision", numberAt("revision")),
    AGE,
  ],
  PodTemplate: [
    NAME,
    ...templateColumns("template").map((column) => ({ ...column, priority: 0 })),
    text("Pod Labels", (object) => labelsText(dig(object, "template.metadata.labels") as Record<string, string>)),
  ],
  HorizontalPodAutoscaler: [
    NAME,
    text(
      "Reference",
      (object) =>
        `${textAt("spec.scaleTargetRef.kind")(object, NEVER)}/${textAt("spec.scaleTargetRef.name")(object, NEVER)}`,
    ),
    text("Targets", (object) =>
      ((dig(object, "spec.metrics") as unknown[] | undefined) ?? []).length === 0 ? "<none>" : "<unknown>",
    ),
    text("MinPods", textAt("spec.minReplicas", "<unset>")),
    count("MaxPods", numberAt("spec.maxReplicas")),
    count("Replicas", numberAt("status.currentReplicas")),
    AGE,
  ],
  PodDisruptionBudget: [
    NAME,
    text("Min Available", textAt("spec.minAvailable", "N/A")),
    text("Max Unavailable", textAt("spec.maxUnavailable", "N/A")),
    count("Allowed Disruptions", numberAt("status.disruptionsAllowed")),
    AGE,
  ],
  PriorityClass: [
    NAME,
    count("Value", numberAt("value")),
    { ...text("Global-Default", (object) => object["globalDefault"] === true), type: "boolean" },
    AGE,
    text("PreemptionPolicy", textAt("preemptionPolicy", "")),
  ],
  ResourceQuota: [
    NAME,
    text("Request", (object) => quotaText(object, (resource) => !resource.startsWith("limits."))),
    text("Limit", (object) => quotaText(object, (resource) => resource.startsWith("limits."))),
    AGE,
  ],
  RuntimeClass: [NAME, text("Handler", textAt("handler", "")), AGE],
  Lease: [NAME, text("Holder", textAt("spec.holderIdentity", ""), "Who holds the lease."), AGE],
  Node: [
    NAME,
    text("Status", nodeStatus, "Whether the node is ready, and whether it takes new pods."),
    text("Roles", nodeRoles, "What the node is for."),
    AGE,
    text("Version", textAt("status.nodeInfo.kubeletVersion", ""), "Version of its node agent."),
    wide(text("Internal-IP", (node) => nodeAddress(node, "InternalIP"))),
    wide(text("External-IP", (node) => nodeAddress(node, "ExternalIP"))),
    wide(text("OS-Image", textAt("status.nodeInfo.osImage", "<unknown>"))),
    wide(text("Kernel-Version", textAt("status.nodeInfo.kernelVersion", "<unknown>"))),
    wide(text("Container-Runtime", textAt("status.nodeInfo.containerRuntimeVersion", "<unknown>"))),
  ],
};

function quotaText(quota: KubeObject, wanted: (resource: string) => boolean): string {
  const hard = (dig(quota, "status.hard") ?? {}) as Record<string, string>;
  const used = (dig(quota, "status.used") ?? {}) as Record<string, string>;
  const names = Object.keys(hard).filter(wanted).sort();
  return names.map((name) => `${name}: ${used[name] ?? 0}/${hard[name]}`).join(", ");
}

function nodeStatus(node: KubeObject): string {
  const conditions = (dig(node, "status.conditions") ?? []) as Condition[];
  const ready = conditions.find((one) => one.type === "Ready");
  const words = [ready === undefined ? "Unknown" : ready.status === "True" ? "Ready" : "NotReady"];
  if (dig(node, "spec.unschedulable")) words.push("SchedulingDisabled");
  return words.join(",");
}

const ROLE = "node-role.kubernetes.io/";

function nodeRoles(node: KubeObject): string {
  const labels = Object.entries(node.metadata.labels ?? {});
  const roles = labels.flatMap(([key, value]) => {
    if (key.startsWith(ROLE) && key.length > ROLE.length) return [key.slice(ROLE.length)];
    return key === "kubernetes.io/role" && value !== "" ? [value] : [];
  });
  return [...new Set(roles)].sort().join(",") || "<none>";
}

function nodeAddress(node: KubeObject, type: string): string {
  const addresses = (dig(node, "status.addresses") ?? []) as { type: string; address: string }[];
  return addresses.find((one) => one.type === type)?.address ?? "<none>";
}

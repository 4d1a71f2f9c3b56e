import type { KubeObject } from "../../api/object.ts";
import type { Column } from "../resource.ts";
import { humanDuration } from "./age.ts";
import { AGE, NAME, NONE, text, textAt, wide } from "./column.ts";
import { type ContainerState, type ContainerStatus, type PodSpec, type PodStatus, specOf, statusOf } from "./shapes.ts";

/** What `kubectl get pods` says of one pod. */
interface PodSummary {
  status: string;
  ready: number;
  total: number;
  restarts: number;
  lastRestart: number;
}

export const POD_COLUMNS: readonly Column[] = [
  NAME,
  text(
    "Ready",
    (pod) => {
      const { ready, total } = summarize(pod);
      return `${ready}/${total}`;
    },
    "Containers that are ready, of all there are.",
  ),
  text("Status", (pod) => summarize(pod).status, "What the pod is doing, or what keeps it from doing it."),
  text("Restarts", restartsText, "How often its containers were restarted, and when last."),
  AGE,
  wide(text("IP", (pod) => statusOf<PodStatus>(pod).podIPs?.[0]?.ip ?? statusOf<PodStatus>(pod).podIP ?? NONE)),
  wide(text("Node", textAt("spec.nodeName"))),
  wide(text("Nominated Node", textAt("status.nominatedNodeName"))),
  wide(text("Readiness Gates", gatesText)),
];

function restartsText(pod: KubeObject, now: Date): string {
  const { restarts, lastRestart } = summarize(pod);
  if (restarts === 0 || lastRestart === 0) return String(restarts);
  return `${restarts} (${humanDuration((now.getTime() - lastRestart) / 1000)} ago)`;
}

function gatesText(pod: KubeObject): string {
  const gates = specOf<PodSpec>(pod).readinessGates ?? [];
  if (gates.length === 0) return NONE;
  const conditions = statusOf<PodStatus>(pod).conditions ?? [];
  const open = gates.filter((gate) => conditions.some((c) => c.type === gate.conditionType && c.status === "True"));
  return `${open.length}/${gates.length}`;
}

function summarize(pod: KubeObject): PodSummary {
  const spec = specOf<PodSpec>(pod);
  const status = statusOf<PodStatus>(pod);
  const sidecars = new Set((spec.initContainers ?? []).filter((c) => c.restartPolicy === "Always").map((c) => c.name));
  const summary: PodSummary = {
    status: status.reason || status.phase || "",
    ready: 0,
    total: (spec.containers ?? []).length + sidecars.size,
    restarts: 0,
    lastRestart: 0,
  };
  if (condition(status, "PodScheduled")?.reason === "SchedulingGated") summary.status = "SchedulingGated";
  const waiting = readInitContainers(summary, spec, status, sidecars);
  if (!waiting || condition(status, "Initialized")?.status === "True") readContainers(summary, status, sidecars);
  if (pod.metadata.deletionTimestamp) {
    const finished = status.phase === "Succeeded" || status.phase === "Failed";
    if (status.reason === "NodeLost") summary.status = "Unknown";
    else if (!finished) summary.status = "Terminating";
  }
  return summary;
}

/** True while an init container keeps the pod from starting; the status then says which. */
function readInitContainers(
  summary: PodSummary,
  spec: Partial<PodSpec>,
  status: Partial<PodStatus>,
  sidecars: ReadonlySet<string | undefined>,
): boolean {
  for (const [i, container] of (status.initContainerStatuses ?? []).entries()) {
    countRestarts(summary, container);
    const { terminated, waiting } = container.state ?? {};
    if (terminated?.exitCode === 0) continue;
    if (sidecars.has(container.name) && container.started) {
      if (container.ready) summary.ready++;
      continue;
    }
    if (terminated) summary.status = `Init:${endText(terminated)}`;
    else if (waiting?.reason && waiting.reason !== "PodInitializing") summary.status = `Init:${waiting.reason}`;
    else summary.status = `Init:${i}/${(spec.initContainers ?? []).length}`;
    return true;
  }
  return false;
}

function readContainers(
  summary: PodSummary,
  status: Partial<PodStatus>,
  sidecars: ReadonlySet<string | undefined>,
): void {
  // Once the pod runs, only containers that still run count as restarting.
  summary.restarts = 0;
  summary.lastRestart = 0;
  for (const container of status.initContainerStatuses ?? []) {
    if (sidecars.has(container.name)) countRestarts(summary, container);
  }
  let running = false;
  // Backwards, so that the first container has the last word.
  for (const container of [...(status.containerStatuses ?? [])].reverse()) {
    countRestarts(summary, container);
    const { waiting, terminated, running: runs } = container.state ?? {};
    if (waiting?.reason) summary.status = waiting.reason;
    else if (terminated) summary.status = endText(terminated);
    else if (container.ready && runs) {
      running = true;
      summary.ready++;
    }
  }
  if (summary.status === "Completed" && running) {
    summary.status = condition(status, "Ready")?.status === "True" ? "Running" : "NotReady";
  }
}

function countRestarts(summary: PodSummary, container: ContainerStatus): void {
  summary.restarts += container.restartCount ?? 0;
  const ended = Date.parse(container.lastState?.terminated?.finishedAt ?? "");
  if (ended > summary.lastRestart) summary.lastRestart = ended;
}

function endText({ reason, signal, exitCode }: NonNullable<ContainerState["terminated"]>): string {
  if (reason) return reason;
  return signal ? `Signal:${signal}` : `ExitCode:${exitCode ?? 0}`;
}

function condition(status: Partial<PodStatus>, type: string) {
  return status.conditions?.find((one) => one.type === type);
}

import type { Condition } from "../../api/object.ts";
import { timestamp } from "../controllers/timestamp.ts";
import type { Container, ContainerState, ContainerStatus, Pod, PodStatus } from "../controllers/workload-types.ts";

/** Where one container is in its life, as the kubelet knows it. */
export interface ContainerLifecycle {
  state:
    | { at: "waiting"; reason: string; message?: string }
    | { at: "running"; since: number; started: boolean; ready: boolean }
    | { at: "ended"; since: number; until: number; exitCode: number; reason: string; message?: string };
  last: ContainerState;
  restarts: number;
  containerID?: string;
  imageID: string;
}

export interface PodLifecycle {
  startedAt: number;
  hostIPs: readonly string[];
  podIPs: readonly string[];
  /** By container name, init containers too. */
  containers: ReadonlyMap<string, ContainerLifecycle>;
  /** The pod's end, when nothing of it will be restarted. */
  outcome: "Succeeded" | "Failed" | undefined;
}

export const FRESH: ContainerLifecycle = {
  state: { at: "waiting", reason: "ContainerCreating" },
  last: {},
  restarts: 0,
  imageID: "",
};

/** The status of a pod in the API. Pure: the same events give the same status. */
export function podStatus(pod: Pod, life: PodLifecycle, now: number): PodStatus {
  const inits = pod.spec.initContainers ?? [];
  const main = pod.spec.containers.map((container) => containerStatus(container, life, false));
  const init = inits.map((container) => containerStatus(container, life, true));
  const initialized = inits.every((container) => isInitialized(container, life));
  const podIPs = life.podIPs.length > 0 ? life.podIPs : pod.spec.hostNetwork ? life.hostIPs : [];
  const status: PodStatus = {
    phase: life.outcome ?? phaseOf(pod, life, initialized),
    conditions: conditionsOf(pod, life, initialized, podIPs.length > 0, now),
    hostIP: life.hostIPs[0],
    hostIPs: life.hostIPs.map((ip) => ({ ip })),
    startTime: pod.status?.startTime ?? timestamp(life.startedAt),
    containerStatuses: initialized ? main : main.map(notYet),
  };
  if (podIPs.length > 0) {
    status.podIP = podIPs[0];
    status.podIPs = podIPs.map((ip) => ({ ip }));
  }
  if (init.length > 0) status.initContainerStatuses = init;
  return status;
}

function lifeOf(container: Container, life: PodLifecycle): ContainerLifecycle {
  return life.containers.get(container.name) ?? FRESH;
}

function isInitialized(container: Container, life: PodLifecycle): boolean {
  const { state } = lifeOf(container, life);
  if (container.restartPolicy === "Always") return state.at === "running";
  return state.at === "ended" && state.exitCode === 0;
}

/** A finished init container counts as ready; a finished main one does not. */
function containerStatus(container: Container, life: PodLifecycle, isInit: boolean): ContainerStatus {
  const { state, last, restarts, containerID, imageID } = lifeOf(container, life);
  const running = state.at === "running";
  const done = state.at === "ended" && state.exitCode === 0;
  const status: ContainerStatus = {
    name: container.name,
    image: container.image ?? "",
    imageID,
    ready: running ? state.ready : done && isInit,
    started: running && state.started,
    restartCount: restarts,
    state: stateOf(state, containerID),
    lastState: last,
  };
  if (containerID) status.containerID = containerID;
  return status;
}

function notYet(status: ContainerStatus): ContainerStatus {
  return { ...status, state: { waiting: { reason: "PodInitializing" } } };
}

export function stateOf(state: ContainerLifecycle["state"], containerID: string | undefined): ContainerState {
  switch (state.at) {
    case "waiting":
      return { waiting: state.message ? { reason: state.reason, message: state.message } : { reason: state.reason } };
    case "running":
      return { running: { startedAt: timestamp(state.since) } };
    case "ended":
      return {
        terminated: {
          exitCode: state.exitCode,
          reason: state.reason,
          ...(state.message ? { message: state.message } : {}),
          startedAt: timestamp(state.since),
          finishedAt: timestamp(state.until),
          ...(containerID ? { containerID } : {}),
        },
      };
  }
}

/** Pending until every container has run at least once. */
function phaseOf(pod: Pod, life: PodLifecycle, initialized: boolean): "Pending" | "Running" {
  if (!initialized) return "Pending";
  const started = pod.spec.containers.every((container) => {
    const { state, last } = lifeOf(container, life);
    return state.at !== "waiting" || last.terminated !== undefined;
  });
  return started ? "Running" : "Pending";
}

function conditionsOf(
  pod: Pod,
  life: PodLifecycle,
  initialized: boolean,
  hasSandbox: boolean,
  now: number,
): NonNullable<PodStatus["conditions"]> {
  const unready = pod.spec.containers.filter((container) => {
    const { state } = lifeOf(container, life);
    return !(state.at === "running" && state.ready);
  });
  const names = (containers: readonly Container[]) => `[${containers.map(({ name }) => name).join(" ")}]`;
  const incomplete = (pod.spec.initContainers ?? []).filter((container) => !isInitialized(container, life));
  const done = life.outcome === "Succeeded";
  const why: Pick<Condition, "reason" | "message"> = done
    ? { reason: "PodCompleted" }
    : life.outcome === "Failed"
      ? { reason: "PodFailed" }
      : { reason: "ContainersNotReady", message: `containers with unready status: ${names(unready)}` };
  const gate = unmetGate(pod);
  const notInitialized = {
    reason: "ContainersNotInitialized",
    message: `containers with incomplete status: ${names(incomplete)}`,
  };
  const wanted: Condition[] = [
    { type: "PodReadyToStartContainers", status: hasSandbox && !life.outcome ? "True" : "False" },
    initialized
      ? { type: "Initialized", status: "True", ...(done ? { reason: "PodCompleted" } : {}) }
      : { type: "Initialized", status: "False", ...notInitialized },
    unready.length > 0
      ? { type: "Ready", status: "False", ...why }
      : gate
        ? { type: "Ready", status: "False", reason: "ReadinessGatesNotReady", message: gate }
        : { type: "Ready", status: "True" },
    unready.length > 0
      ? { type: "ContainersReady", status: "False", ...why }
      : { type: "ContainersReady", status: "True" },
    { type: "PodScheduled", status: "True" },
  ];
  const before = pod.status?.conditions ?? [];
  const foreign = before.filter(({ type }) => !wanted.some((condition) => condition.type === type));
  return [...wanted.map((condition) => dated(condition, before, now)), ...foreign];
}

function dated(condition: Condition, before: readonly Condition[], now: number): Condition {
  const last = before.find(({ type }) => type === condition.type);
  const same = last?.status === condition.status && last.lastTransitionTime !== undefined;
  return { ...condition, lastTransitionTime: same ? last.lastTransitionTime : timestamp(now) };
}

function unmetGate(pod: Pod): string | undefined {
  const gates = (pod.spec["readinessGates"] as { conditionType: string }[] | undefined) ?? [];
  const unmet = gates.find(
    ({ conditionType }) =>
      pod.status?.conditions?.find((condition) => condition.type === conditionType)?.status !== "True",
  );
  return unmet && `corresponding condition of pod readiness gate "${unmet.conditionType}" does not exist.`;
}

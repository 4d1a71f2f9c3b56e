import type { Condition } from "../../../api/object.ts";
import { isActive, isReady } from "../pod-state.ts";
import { timestamp } from "../timestamp.ts";
import type { Job, JobStatus, Pod } from "../workload-types.ts";
import { formatIndexes, parseIndexes } from "./index-ranges.ts";

export const INDEX_ANNOTATION = "batch.kubernetes.io/job-completion-index";

/** A failed pod is tried again after 10 s, 20 s, 40 s, … at most 6 min. */
const FIRST_RETRY_MS = 10_000;
const LAST_RETRY_MS = 360_000;

export interface ObservedJob {
  job: Job;
  /** Those it controls, finished ones too. */
  pods: readonly Pod[];
  settled: boolean;
  now: number;
}

export interface JobPlan {
  /** One entry per pod to create: its completion index, or undefined for a job without indexes. */
  create: (number | undefined)[];
  remove: Pod[];
  /** The job's time is over: it goes, with its pods. */
  expire: boolean;
  status: JobStatus;
  recheckMs: number | undefined;
}

type Verdict = { type: "Complete" | "Failed"; reason: string; message: string };

export function planJob(observed: ObservedJob): JobPlan {
  const { job } = observed;
  const tally = tallyOf(observed);
  const ended = finishedCondition(job);
  if (ended) return afterwards(observed, ended);
  const verdict = verdictOf(observed, tally);
  const suspended = job.spec.suspend === true && !verdict;
  const leaving = job.metadata.deletionTimestamp !== undefined;
  const status = statusOf(observed, tally, verdict, suspended);
  if (verdict || suspended)
    return { create: [], remove: tally.active, expire: false, status, recheckMs: ttl(observed, verdict) };
  if (!observed.settled || leaving) return { create: [], remove: [], expire: false, status, recheckMs: undefined };
  const wait = retryIn(observed, tally);
  const wanted = wantedActive(job, tally);
  const missing = wanted - tally.active.length;
  return {
    create: missing > 0 && wait <= 0 ? indexesToRun(job, tally, missing) : [],
    remove: missing < 0 ? tally.active.slice(missing) : [],
    expire: false,
    status,
    recheckMs: soonest(missing > 0 && wait > 0 ? wait : undefined, deadlineIn(observed)),
  };
}

interface Tally {
  active: Pod[];
  succeeded: number;
  failed: number;
  done: Set<number>;
  lastFailure: number;
}

function tallyOf({ job, pods }: ObservedJob): Tally {
  const succeeded = pods.filter((pod) => pod.status?.phase === "Succeeded");
  const failed = pods.filter((pod) => pod.status?.phase === "Failed");
  const done = new Set(parseIndexes(job.status?.completedIndexes));
  for (const pod of succeeded) if (indexOf(pod) !== undefined) done.add(indexOf(pod) as number);
  return {
    active: pods.filter(isActive),
    // A finished pod may be deleted by hand; what was counted once stays counted.
    succeeded: indexed(job) ? done.size : Math.max(job.status?.succeeded ?? 0, succeeded.length),
    failed: Math.max(job.status?.failed ?? 0, failed.length),
    done,
    lastFailure: Math.max(0, ...failed.map(finishedAt)),
  };
}

function verdictOf(observed: ObservedJob, tally: Tally): Verdict | undefined {
  const { job } = observed;
  const limit = job.spec.backoffLimit ?? 6;
  if (tally.failed > limit || restarts(tally.active) > limit) {
    return {
      type: "Failed",
      reason: "BackoffLimitExceeded",
      message: "Job has reached the specified backoff limit",
    };
  }
  const deadline = deadlineIn(observed);
  if (deadline !== undefined && deadline <= 0) {
    return {
      type: "Failed",
      reason: "DeadlineExceeded",
      message: "Job was active longer than specified deadline",
    };
  }
  const completions = job.spec.completions ?? undefined;
  const enough =
    completions === undefined ? tally.succeeded > 0 && tally.active.length === 0 : tally.succeeded >= completions;
  return enough
    ? { type: "Complete", reason: "CompletionsReached", message: "Reached expected number of succeeded pods" }
    : undefined;
}

function wantedActive(job: Job, tally: Tally): number {
  const parallelism = job.spec.parallelism ?? 1;
  const completions = job.spec.completions ?? undefined;
  // A work queue without a count: once one worker is content no new ones start.
  if (completions === undefined) return tally.succeeded > 0 ? tally.active.length : parallelism;
  return Math.min(parallelism, completions - tally.succeeded);
}

function indexesToRun(job: Job, tally: Tally, missing: number): (number | undefined)[] {
  if (!indexed(job)) return Array.from({ length: missing }, () => undefined);
  const taken = new Set([...tally.done, ...tally.active.map(indexOf)]);
  const free: number[] = [];
  for (let index = 0; index < (job.spec.completions ?? 0) && free.length < missing; index++) {
    if (!taken.has(index)) free.push(index);
  }
  return free;
}

function statusOf(
  { job, now }: ObservedJob,
  tally: Tally,
  verdict: Verdict | undefined,
  suspended: boolean,
): JobStatus {
  const active = verdict || suspended ? 0 : tally.active.length;
  const status: JobStatus = { startTime: suspended ? undefined : (job.status?.startTime ?? timestamp(now)) };
  if (active > 0) status.active = active;
  if (tally.succeeded > 0) status.succeeded = tally.succeeded;
  if (tally.failed > 0) status.failed = tally.failed;
  status.ready = active > 0 ? tally.active.filter(isReady).length : 0;
  status.terminating = verdict || suspended ? tally.active.length : 0;
  status.uncountedTerminatedPods = {};
  if (tally.done.size > 0) status.completedIndexes = formatIndexes(tally.done);
  const conditions = conditionsOf(job, verdict, suspended, now);
  if (conditions.length > 0) status.conditions = conditions;
  if (verdict?.type === "Complete") status.completionTime = timestamp(now);
  return status;
}

function conditionsOf(job: Job, verdict: Verdict | undefined, suspended: boolean, now: number): Condition[] {
  const conditions: (Condition & { lastProbeTime?: string })[] = [...(job.status?.conditions ?? [])];
  const add = (type: string, status: "True" | "False", reason: string, message: string) => {
    const at = timestamp(now);
    conditions.push({ type, status, reason, message, lastProbeTime: at, lastTransitionTime: at });
  };
  const pausedAt = conditions.findIndex((condition) => condition.type === "Suspended");
  const paused = conditions[pausedAt]?.status === "True";
  if (paused !== suspended && (suspended || pausedAt >= 0)) {
    if (pausedAt >= 0) conditions.splice(pausedAt, 1);
    if (suspended) add("Suspended", "True", "JobSuspended", "Job suspended");
    else add("Suspended", "False", "JobResumed", "Job resumed");
  }
  if (verdict) {
    add(verdict.type === "Complete" ? "SuccessCriteriaMet" : "FailureTarget", "True", verdict.reason, verdict.message);
    add(verdict.type, "True", verdict.reason, verdict.message);
  }
  return conditions;
}

function afterwards(observed: ObservedJob, ended: Condition): JobPlan {
  const { job, pods, now } = observed;
  const since = Date.parse(ended.lastTransitionTime ?? "") || now;
  const seconds = job.spec.ttlSecondsAfterFinished;
  const left = seconds === undefined ? undefined : since + seconds * 1000 - now;
  const status: JobStatus = { ...job.status };
  status.terminating = pods.filter((pod) => pod.metadata.deletionTimestamp).length;
  return {
    create: [],
    remove: pods.filter(isActive),
    expire: left !== undefined && left <= 0 && job.metadata.deletionTimestamp === undefined,
    status,
    recheckMs: left !== undefined && left > 0 ? left : undefined,
  };
}

function ttl({ job }: ObservedJob, verdict: Verdict | undefined): number | undefined {
  const seconds = job.spec.ttlSecondsAfterFinished;
  return verdict && seconds !== undefined ? seconds * 1000 : undefined;
}

export function finishedCondition(job: Job): Condition | undefined {
  return job.status?.conditions?.find(
    (condition) => (condition.type === "Complete" || condition.type === "Failed") && condition.status === "True",
  );
}

function retryIn({ now }: ObservedJob, { failed, lastFailure }: Tally): number {
  if (failed === 0 || lastFailure === 0) return 0;
  return lastFailure + Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** (failed - 1)) - now;
}

function deadlineIn({ job, now }: ObservedJob): number | undefined {
  const seconds = job.spec.activeDeadlineSeconds;
  if (seconds === undefined || job.spec.suspend) return undefined;
  const started = Date.parse(job.status?.startTime ?? "") || now;
  return started + seconds * 1000 - now;
}

function finishedAt(pod: Pod): number {
  const ends = (pod.status?.containerStatuses ?? []).map((container) => container.state.terminated?.finishedAt ?? "");
  return Math.max(0, ...ends.map((end) => Date.parse(end) || 0));
}

function restarts(pods: Pod[]): number {
  return pods
    .filter((pod) => pod.spec.restartPolicy === "OnFailure")
    .flatMap((pod) => pod.status?.containerStatuses ?? [])
    .reduce((sum, container) => sum + container.restartCount, 0);
}

function soonest(...waits: (number | undefined)[]): number | undefined {
  const known = waits.filter((wait) => wait !== undefined);
  return known.length > 0 ? Math.min(...known) : undefined;
}

export function indexed(job: Job): boolean {
  return job.spec.completionMode === "Indexed";
}

function indexOf(pod: Pod): number | undefined {
  const index = pod.metadata.annotations?.[INDEX_ANNOTATION];
  return index === undefined ? undefined : Number(index);
}

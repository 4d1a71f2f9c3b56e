import type { KubeObject } from "../../../api/object.ts";
import type { StatusCause } from "../../../api/status.ts";
import type { Strategy } from "../../resource.ts";
import { ownSpec, type PodTemplate, type Selector, specOf } from "../shapes.ts";
import { freshStatus } from "./fresh-status.ts";
import { templateProblems } from "./pod-rules.ts";
import { causes, immutable, invalid, notNegative, required } from "./rules.ts";
import { defaultTemplate, selects } from "./workload.ts";

interface JobSpec {
  completions?: number;
  parallelism?: number;
  backoffLimit?: number;
  activeDeadlineSeconds?: number;
  completionMode?: string;
  podReplacementPolicy?: string;
  podFailurePolicy?: object;
  suspend?: boolean;
  manualSelector?: boolean;
  selector?: Selector;
  template?: PodTemplate;
}

export const jobStrategy: Strategy = {
  setDefaults(job) {
    const spec = ownSpec<JobSpec>(job);
    if (spec.completions === undefined && spec.parallelism === undefined) spec.completions = 1;
    spec.parallelism ??= 1;
    spec.backoffLimit ??= 6;
    spec.completionMode ||= "NonIndexed";
    spec.suspend ??= false;
    spec.manualSelector ??= false;
    spec.podReplacementPolicy ||= spec.podFailurePolicy ? "Failed" : "TerminatingOrFailed";
    const labels = spec.template?.metadata?.labels;
    if (labels && Object.keys(job.metadata.labels ?? {}).length === 0) job.metadata.labels = { ...labels };
    defaultTemplate(spec.template);
  },
  prepareForCreate(job) {
    job["status"] = {};
    const spec = ownSpec<JobSpec>(job);
    if (!spec.manualSelector) claimPods(job, spec);
  },
  validate(job) {
    const spec = specOf<JobSpec>(job);
    const labels = spec.template?.metadata?.labels ?? {};
    return causes(
      notNegative("spec.parallelism", spec.parallelism),
      notNegative("spec.completions", spec.completions),
      notNegative("spec.backoffLimit", spec.backoffLimit),
      notNegative("spec.activeDeadlineSeconds", spec.activeDeadlineSeconds),
      spec.selector === undefined && required("spec.selector"),
      spec.selector !== undefined &&
        !selects(spec.selector, labels) &&
        invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`"),
      templateProblems(spec.template, "spec.template"),
      endingProblems(spec.template, "spec.template.spec.restartPolicy"),
    );
  },
  validateUpdate(job, old) {
    const [next, before] = [specOf<JobSpec>(job), specOf<JobSpec>(old)];
    return causes(
      before.completionMode !== "Indexed" && immutable("spec.completions", next.completions, before.completions),
      immutable("spec.selector", next.selector, before.selector),
      immutable("spec.completionMode", next.completionMode, before.completionMode),
      !before.suspend && immutable("spec.template", next.template, before.template),
    );
  },
};

/** A job finds its own pods by its uid, so that two jobs of one template never share any. */
function claimPods(job: KubeObject, spec: JobSpec): void {
  const uid = job.metadata.uid ?? "";
  const { name } = job.metadata;
  spec.template ??= {};
  spec.template.metadata ??= {};
  spec.template.metadata.labels = {
    ...spec.template.metadata.labels,
    "batch.kubernetes.io/controller-uid": uid,
    "batch.kubernetes.io/job-name": name,
    "controller-uid": uid,
    "job-name": name,
  };
  spec.selector ??= { matchLabels: { "batch.kubernetes.io/controller-uid": uid } };
}

function endingProblems(template: PodTemplate | undefined, field: string): StatusCause[] {
  const policy = template?.spec?.restartPolicy;
  return policy === "OnFailure" || policy === "Never" ? [] : [required(field, 'valid values: "OnFailure", "Never"')];
}

interface CronJobSpec {
  schedule?: string;
  concurrencyPolicy?: string;
  suspend?: boolean;
  successfulJobsHistoryLimit?: number;
  failedJobsHistoryLimit?: number;
  jobTemplate?: { spec?: JobSpec };
}

export const cronJobStrategy: Strategy = {
  setDefaults(cronJob) {
    const spec = ownSpec<CronJobSpec>(cronJob);
    spec.concurrencyPolicy ||= "Allow";
    spec.suspend ??= false;
    spec.successfulJobsHistoryLimit ??= 3;
    spec.failedJobsHistoryLimit ??= 1;
    defaultTemplate(spec.jobTemplate?.spec?.template);
  },
  prepareForCreate: freshStatus(),
  validate(cronJob) {
    const spec = specOf<CronJobSpec>(cronJob);
    const schedule = spec.schedule ?? "";
    const template = spec.jobTemplate?.spec?.template;
    const path = "spec.jobTemplate.spec.template";
    const readable = schedule.startsWith("@") || schedule.trim().split(/\s+/).length === 5;
    return causes(
      schedule !== "" &&
        !readable &&
        invalid("spec.schedule", schedule, `expected exactly 5 fields, found ${schedule.trim().split(/\s+/).length}`),
      templateProblems(template, path),
      endingProblems(template, `${path}.spec.restartPolicy`),
      notNegative("spec.successfulJobsHistoryLimit", spec.successfulJobsHistoryLimit),
      notNegative("spec.failedJobsHistoryLimit", spec.failedJobsHistoryLimit),
    );
  },
};

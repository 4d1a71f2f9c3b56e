import { isDeepStrictEqual } from "node:util";
import type { KubeObject } from "../../../api/object.ts";
import type { StatusCause } from "../../../api/status.ts";
import type { Strategy } from "../../resource.ts";
import { ownSpec, type PodTemplate, type Selector, specOf, type WorkloadSpec } from "../shapes.ts";
import { freshStatus } from "./fresh-status.ts";
import { defaultPodSpec } from "./pod-defaults.ts";
import { templateProblems } from "./pod-rules.ts";
import { causes, forbidden, immutable, invalid, notNegative, required, unsupported } from "./rules.ts";

/** Workloads that keep a number of pods made from a template. */

export function defaultTemplate(template: PodTemplate | undefined): void {
  if (!template) return;
  template.spec ??= {};
  defaultPodSpec(template.spec);
}

export function selects(selector: Selector, labels: Readonly<Record<string, string>>): boolean {
  const matches = Object.entries(selector.matchLabels ?? {}).every(([key, value]) => labels[key] === value);
  return (
    matches &&
    (selector.matchExpressions ?? []).every(({ key = "", operator, values = [] }) => {
      const value = labels[key];
      if (operator === "Exists") return value !== undefined;
      if (operator === "DoesNotExist") return value === undefined;
      if (operator === "In") return value !== undefined && values.includes(value);
      return value === undefined || !values.includes(value);
    })
  );
}

function workloadProblems(object: KubeObject): StatusCause[] {
  const spec = specOf<WorkloadSpec>(object);
  const { selector, template } = spec;
  const labels = template?.metadata?.labels ?? {};
  const policy = template?.spec?.restartPolicy;
  const empty = selector !== undefined && isEmpty(selector);
  return causes(
    notNegative("spec.replicas", spec.replicas),
    notNegative("spec.minReadySeconds", spec.minReadySeconds),
    selector === undefined && required("spec.selector"),
    empty && invalid("spec.selector", selector, `empty selector is invalid for ${object.kind.toLowerCase()}`),
    selector !== undefined &&
      !empty &&
      !selects(selector, labels) &&
      invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`"),
    templateProblems(template, "spec.template"),
    policy !== undefined && policy !== "Always" && unsupported("spec.template.spec.restartPolicy", policy, ["Always"]),
  );
}

function isEmpty(selector: Selector): boolean {
  return Object.keys(selector.matchLabels ?? {}).length + (selector.matchExpressions ?? []).length === 0;
}

const selectorStays = (next: KubeObject, old: KubeObject): StatusCause[] =>
  immutable("spec.selector", specOf<WorkloadSpec>(next).selector, specOf<WorkloadSpec>(old).selector);

export const deploymentStrategy: Strategy = {
  setDefaults(object) {
    const spec = ownSpec<WorkloadSpec>(object);
    spec.replicas ??= 1;
    spec.strategy ??= {};
    spec.strategy.type ||= "RollingUpdate";
    if (spec.strategy.type === "RollingUpdate") {
      spec.strategy.rollingUpdate ??= {};
      spec.strategy.rollingUpdate.maxUnavailable ??= "25%";
      spec.strategy.rollingUpdate.maxSurge ??= "25%";
    }
    spec.revisionHistoryLimit ??= 10;
    spec.progressDeadlineSeconds ??= 600;
    defaultTemplate(spec.template);
  },
  prepareForCreate: freshStatus(),
  validate(object) {
    const { strategy, progressDeadlineSeconds = 600, minReadySeconds = 0 } = specOf<WorkloadSpec>(object);
    const both = strategy?.type === "Recreate" && strategy.rollingUpdate;
    const stuck = isZero(strategy?.rollingUpdate?.maxSurge) && isZero(strategy?.rollingUpdate?.maxUnavailable);
    return causes(
      workloadProblems(object),
      both && forbidden("spec.strategy.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'"),
      stuck && invalid("spec.strategy.rollingUpdate.maxUnavailable", 0, "may not be 0 when `maxSurge` is 0"),
      progressDeadlineSeconds <= minReadySeconds &&
        invalid("spec.progressDeadlineSeconds", progressDeadlineSeconds, "must be greater than minReadySeconds"),
    );
  },
  validateUpdate: selectorStays,
};

const isZero = (amount: number | string | undefined): boolean => amount === 0 || amount === "0" || amount === "0%";

export const replicaSetStrategy: Strategy = {
  setDefaults(object) {
    const spec = ownSpec<WorkloadSpec>(object);
    spec.replicas ??= 1;
    defaultTemplate(spec.template);
  },
  prepareForCreate: freshStatus({ replicas: 0 }),
  validate: workloadProblems,
  validateUpdate: selectorStays,
};

export const daemonSetStrategy: Strategy = {
  setDefaults(object) {
    const spec = ownSpec<WorkloadSpec>(object);
    spec.updateStrategy ??= {};
    spec.updateStrategy.type ||= "RollingUpdate";
    if (spec.updateStrategy.type === "RollingUpdate") {
      spec.updateStrategy.rollingUpdate ??= {};
      spec.updateStrategy.rollingUpdate.maxUnavailable ??= 1;
      spec.updateStrategy.rollingUpdate.maxSurge ??= 0;
    }
    spec.revisionHistoryLimit ??= 10;
    defaultTemplate(spec.template);
  },
  prepareForCreate(object) {
    object["status"] = { currentNumberScheduled: 0, numberMisscheduled: 0, desiredNumberScheduled: 0, numberReady: 0 };
  },
  validate: workloadProblems,
  validateUpdate: selectorStays,
};

interface StatefulSetSpec extends WorkloadSpec {
  podManagementPolicy?: string;
  persistentVolumeClaimRetentionPolicy?: { whenDeleted?: string; whenScaled?: string };
  ordinals?: object;
}

const STATEFUL_RULE =
  "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

export const statefulSetStrategy: Strategy = {
  setDefaults(object) {
    const spec = ownSpec<StatefulSetSpec>(object);
    spec.replicas ??= 1;
    spec.podManagementPolicy ||= "OrderedReady";
    spec.updateStrategy ??= {};
    spec.updateStrategy.type ||= "RollingUpdate";
    if (spec.updateStrategy.type === "RollingUpdate") {
      spec.updateStrategy.rollingUpdate ??= {};
      spec.updateStrategy.rollingUpdate.partition ??= 0;
    }
    spec.persistentVolumeClaimRetentionPolicy ??= {};
    spec.persistentVolumeClaimRetentionPolicy.whenDeleted ||= "Retain";
    spec.persistentVolumeClaimRetentionPolicy.whenScaled ||= "Retain";
    spec.revisionHistoryLimit ??= 10;
    defaultTemplate(spec.template);
  },
  prepareForCreate: freshStatus({ replicas: 0, availableReplicas: 0 }),
  validate: workloadProblems,
  validateUpdate(object, old) {
    const fixed = (spec: Partial<StatefulSetSpec>) => ({
      ...spec,
      replicas: 0,
      ordinals: 0,
      template: 0,
      updateStrategy: 0,
      revisionHistoryLimit: 0,
      persistentVolumeClaimRetentionPolicy: 0,
      minReadySeconds: 0,
    });
    const same = isDeepStrictEqual(fixed(specOf<StatefulSetSpec>(object)), fixed(specOf<StatefulSetSpec>(old)));
    return same ? [] : [forbidden("spec", STATEFUL_RULE)];
  },
};

interface ReplicationControllerSpec {
  replicas?: number;
  selector?: Record<string, string>;
  template?: PodTemplate;
}

export const replicationControllerStrategy: Strategy = {
  setDefaults(object) {
    const spec = ownSpec<ReplicationControllerSpec>(object);
    const labels = spec.template?.metadata?.labels;
    spec.replicas ??= 1;
    if (labels && Object.keys(spec.selector ?? {}).length === 0) spec.selector = { ...labels };
    if (labels && Object.keys(object.metadata.labels ?? {}).length === 0) object.metadata.labels = { ...labels };
    defaultTemplate(spec.template);
  },
  prepareForCreate: freshStatus({ replicas: 0 }),
  validate(object) {
    const { selector = {}, template, replicas } = specOf<ReplicationControllerSpec>(object);
    const labels = template?.metadata?.labels ?? {};
    return causes(
      notNegative("spec.replicas", replicas),
      Object.keys(selector).length === 0 && required("spec.selector"),
      !selects({ matchLabels: selector }, labels) &&
        invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`"),
      templateProblems(template, "spec.template"),
    );
  },
};

export const podTemplateStrategy: Strategy = {
  setDefaults: (object) => defaultTemplate(object["template"] as PodTemplate | undefined),
  validate: (object) => templateProblems(object["template"] as PodTemplate | undefined, "template"),
};

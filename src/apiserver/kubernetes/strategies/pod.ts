import { isDeepStrictEqual } from "node:util";
import type { KubeObject } from "../../../api/object.ts";
import type { StatusCause } from "../../../api/status.ts";
import type { Strategy } from "../../resource.ts";
import { quantityValue } from "../quantity.ts";
import { ownSpec, type PodSpec, specOf } from "../shapes.ts";
import { allContainers, defaultPod, defaultPodSpec } from "./pod-defaults.ts";
import { podSpecProblems } from "./pod-rules.ts";
import { forbidden, invalid } from "./rules.ts";

interface Toleration {
  key?: string;
  operator?: string;
  effect?: string;
  tolerationSeconds?: number;
}

interface PrioritySpec {
  priority?: number;
  priorityClassName?: string;
  preemptionPolicy?: string;
  tolerations?: Toleration[];
}

/** The two classes every cluster has; a pod's priority is written on it when it is created. */
const SYSTEM_PRIORITY: Readonly<Record<string, number>> = {
  "system-cluster-critical": 2_000_000_000,
  "system-node-critical": 2_000_001_000,
};

/** A pod stays this long on a node that went away, unless it says otherwise. */
const PATIENCE_S = 300;

export const podStrategy: Strategy = {
  setDefaults(pod) {
    const spec = ownSpec<PodSpec>(pod);
    defaultPodSpec(spec);
    defaultPod(spec);
  },
  prepareForCreate(pod) {
    const spec = ownSpec<PodSpec & PrioritySpec>(pod);
    spec.priority ??= SYSTEM_PRIORITY[spec.priorityClassName ?? ""] ?? 0;
    spec.preemptionPolicy ??= "PreemptLowerPriority";
    spec.tolerations = withPatience((spec.tolerations ?? []) as Toleration[]);
    pod["status"] = { phase: "Pending", qosClass: qosClass(spec) };
  },
  validate: (pod) => podSpecProblems(specOf<PodSpec>(pod), "spec"),
  validateUpdate: updateProblems,
  gracePeriodSeconds(pod) {
    // A pod that was never scheduled or has already ended needs no kubelet to stop it.
    const phase = (pod["status"] as { phase?: string } | undefined)?.phase;
    const spec = specOf<PodSpec>(pod);
    if (!spec.nodeName || phase === "Succeeded" || phase === "Failed") return 0;
    return spec.terminationGracePeriodSeconds ?? 30;
  },
};

function withPatience(tolerations: readonly Toleration[]): Toleration[] {
  const missing = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"].filter(
    (key) =>
      !tolerations.some(
        (one) =>
          (one.key === key || (!one.key && one.operator === "Exists")) && (!one.effect || one.effect === "NoExecute"),
      ),
  );
  const added = missing.map((key) => ({
    key,
    operator: "Exists",
    effect: "NoExecute",
    tolerationSeconds: PATIENCE_S,
  }));
  return [...tolerations, ...added];
}

/** Guaranteed: limits equal requests, everywhere. BestEffort: no requests. Burstable: the rest. */
function qosClass(spec: PodSpec): string {
  let guaranteed = true;
  let asks = false;
  for (const { resources } of allContainers(spec)) {
    for (const name of ["cpu", "memory"]) {
      const request = quantityValue(resources?.requests?.[name] ?? 0);
      const limit = quantityValue(resources?.limits?.[name] ?? 0);
      if (request > 0 || limit > 0) asks = true;
      if (limit === 0 || request !== limit) guaranteed = false;
    }
  }
  if (!asks) return "BestEffort";
  return guaranteed ? "Guaranteed" : "Burstable";
}

const MAY_CHANGE =
  "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

function updateProblems(pod: KubeObject, old: KubeObject): StatusCause[] {
  const [next, before] = [specOf<PodSpec>(pod), specOf<PodSpec>(old)];
  if (isDeepStrictEqual(next, before)) return [];
  const added = (before.tolerations ?? []).every((one) =>
    (next.tolerations ?? []).some((other) => sameToleration(one, other)),
  );
  const tolerations = added
    ? []
    : [forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")];
  const longer = deadlineProblem(next.activeDeadlineSeconds, before.activeDeadlineSeconds);
  const same = isDeepStrictEqual(fixedPart(next, before), fixedPart(before, before));
  return [...tolerations, ...longer, ...(same ? [] : [forbidden("spec", MAY_CHANGE)])];
}

function sameToleration(a: Toleration, b: Toleration): boolean {
  return isDeepStrictEqual({ ...a, tolerationSeconds: 0 }, { ...b, tolerationSeconds: 0 });
}

function deadlineProblem(next: number | undefined, before: number | undefined): StatusCause[] {
  const field = "spec.activeDeadlineSeconds";
  if (before === undefined || next === before) return [];
  if (next === undefined) return [forbidden(field, "must not update from a positive integer to nil value")];
  return next > before ? [invalid(field, next, `must be less than or equal to previous value`)] : [];
}

/** The spec without what may change. Being placed on a node is not a change of what was asked for. */
function fixedPart(spec: Partial<PodSpec>, before: Partial<PodSpec>): unknown {
  const { tolerations: _t, activeDeadlineSeconds: _a, ...rest } = spec;
  const withoutImages = (list: PodSpec["containers"]) => list?.map(({ image: _image, ...container }) => container);
  return {
    ...rest,
    nodeName: before.nodeName ? spec.nodeName : undefined,
    terminationGracePeriodSeconds:
      (before.terminationGracePeriodSeconds ?? 0) < 0 ? undefined : spec.terminationGracePeriodSeconds,
    containers: withoutImages(spec.containers),
    initContainers: withoutImages(spec.initContainers),
    ephemeralContainers: undefined,
  };
}

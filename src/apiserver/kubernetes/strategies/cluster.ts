import type { Strategy } from "../../resource.ts";
import { ownSpec, specOf } from "../shapes.ts";
import { freshStatus } from "./fresh-status.ts";
import { causes, forbidden, invalid, notNegative } from "./rules.ts";

/** Kinds that describe the cluster itself: namespaces, nodes, leases, storage, priorities. */

const NAME_LABEL = "kubernetes.io/metadata.name";

export const namespaceStrategy: Strategy = {
  setDefaults(namespace) {
    const { name } = namespace.metadata;
    if (name) namespace.metadata.labels = { ...namespace.metadata.labels, [NAME_LABEL]: name };
  },
  prepareForCreate(namespace) {
    ownSpec<{ finalizers?: string[] }>(namespace).finalizers = ["kubernetes"];
    namespace["status"] = { phase: "Active" };
  },
};

interface NodeSpec {
  podCIDR?: string;
  podCIDRs?: string[];
}

export const nodeStrategy: Strategy = {
  setDefaults(node) {
    const spec = ownSpec<NodeSpec>(node);
    if (spec.podCIDR && !spec.podCIDRs) spec.podCIDRs = [spec.podCIDR];
    if (!spec.podCIDR && spec.podCIDRs?.[0]) spec.podCIDR = spec.podCIDRs[0];
  },
  validateUpdate(node, old) {
    const [next, before] = [specOf<NodeSpec>(node).podCIDR, specOf<NodeSpec>(old).podCIDR];
    if (!before || next === before) return [];
    return [forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid')];
  },
};

interface LeaseSpec {
  leaseDurationSeconds?: number;
  leaseTransitions?: number;
}

export const leaseStrategy: Strategy = {
  validate(lease) {
    const { leaseDurationSeconds: duration, leaseTransitions } = specOf<LeaseSpec>(lease);
    return causes(
      duration !== undefined &&
        duration <= 0 &&
        invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"),
      notNegative("spec.leaseTransitions", leaseTransitions),
    );
  },
};

export const persistentVolumeStrategy: Strategy = {
  setDefaults(volume) {
    const spec = ownSpec<{ persistentVolumeReclaimPolicy?: string; volumeMode?: string }>(volume);
    spec.persistentVolumeReclaimPolicy ||= "Retain";
    spec.volumeMode ||= "Filesystem";
  },
  prepareForCreate: freshStatus({ phase: "Pending" }),
};

export const persistentVolumeClaimStrategy: Strategy = {
  setDefaults(claim) {
    ownSpec<{ volumeMode?: string }>(claim).volumeMode ||= "Filesystem";
  },
  prepareForCreate: freshStatus({ phase: "Pending" }),
};

export const storageClassStrategy: Strategy = {
  setDefaults(storageClass) {
    storageClass["reclaimPolicy"] ||= "Delete";
    storageClass["volumeBindingMode"] ||= "Immediate";
  },
};

export const priorityClassStrategy: Strategy = {
  setDefaults(priorityClass) {
    priorityClass["preemptionPolicy"] ||= "PreemptLowerPriority";
  },
  validateUpdate(next, old) {
    return causes(next["value"] !== old["value"] && forbidden("value", "may not be changed in an update."));
  },
};

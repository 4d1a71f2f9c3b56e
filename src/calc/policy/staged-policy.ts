import type { Names } from "../../api/names.ts";
import { groupVersion, type KubeObject, type ObjectRef, type ResourceKind } from "../../api/object.ts";
import { globalNetworkPolicy, networkPolicy } from "../../api/resources/network-policy.ts";
import { storedPolicyName } from "../../api/resources/policy-names.ts";
import { placesOf } from "../../api/resources/resource.ts";
import {
  type STAGED_ACTIONS,
  stagedGlobalNetworkPolicy,
  stagedKubernetesNetworkPolicy,
  stagedNetworkPolicy,
} from "../../api/resources/staged-policy.ts";

/** A kind of staged policies, as it is stored, and the kind that its policies would be of. */
export interface StagedKind {
  staged: ResourceKind;
  enforced: ResourceKind;
  /** What `Policy.id` of both begins with. */
  prefix: "np" | "gnp" | "knp";
}

const KUBERNETES_POLICIES: ResourceKind = {
  ...{ group: "networking.k8s.io", version: "v1", kind: "NetworkPolicy", plural: "networkpolicies" },
  namespaced: true,
};

export function stagedKinds(names: Names): StagedKind[] {
  const stored = (resource: Parameters<typeof placesOf>[0]) => placesOf(resource, names).stored;
  return [
    { staged: stored(stagedNetworkPolicy), enforced: stored(networkPolicy), prefix: "np" },
    { staged: stored(stagedGlobalNetworkPolicy), enforced: stored(globalNetworkPolicy), prefix: "gnp" },
    { staged: stored(stagedKubernetesNetworkPolicy), enforced: KUBERNETES_POLICIES, prefix: "knp" },
  ];
}

/** `Policy.id`, the same for a staged policy and for the enforced one of its name. */
export function policyIdOf({ prefix }: StagedKind, { name, namespace }: ObjectRef): string {
  const kept = prefix === "knp" ? name : storedPolicyName(name);
  return prefix === "gnp" ? `${prefix}/${kept}` : `${prefix}/${namespace}/${kept}`;
}

/** `ignored`: it changes nothing; undefined: the enforced policy of its name would be gone. */
export function asEnforced({ enforced, prefix }: StagedKind, object: KubeObject): KubeObject | "ignored" | undefined {
  const { stagedAction = "Set", ...spec } = (object["spec"] ?? {}) as StagedSpec;
  if (stagedAction === "Ignore") return "ignored";
  if (stagedAction === "Delete") return undefined;
  return {
    ...{ apiVersion: groupVersion(enforced), kind: enforced.kind, metadata: object.metadata },
    spec: prefix === "knp" ? withPolicyTypes(spec) : spec,
  };
}

interface StagedSpec {
  stagedAction?: (typeof STAGED_ACTIONS)[number];
  policyTypes?: readonly string[];
  egress?: unknown;
}

/** As Kubernetes fills them in. */
function withPolicyTypes(spec: StagedSpec): StagedSpec {
  if ((spec.policyTypes ?? []).length > 0) return spec;
  return { ...spec, policyTypes: spec.egress ? ["Ingress", "Egress"] : ["Ingress"] };
}

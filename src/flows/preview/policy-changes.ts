import type { V3Kind } from "../../aggregated/v3-kinds.ts";
import type { Noun } from "../../api/names.ts";
import { groupVersion, type KubeObject, type ObjectRef, type ResourceKind } from "../../api/object.ts";
import { storedPolicyName } from "../../api/resources/policy-names.ts";
import type { InputName } from "../../calc/calculator-kinds.ts";
import { NETWORK_POLICIES } from "../../cluster/kinds.ts";
import type { ClusterObjects } from "../explain/cluster-objects.ts";
import { errors } from "./errors.ts";
import type { PreviewRequest } from "./preview-request.ts";

/** One object that a preview writes or deletes, as far as its rights and its place are concerned. */
export interface PolicyChange {
  verb: "create" | "update" | "delete";
  input: InputName;
  /** As the writer knows it. */
  served: ResourceKind;
  /** As it is kept, and calculated. */
  kept: ResourceKind;
  /** Undefined: a policy of Kubernetes. */
  v3: V3Kind | undefined;
  /** Empty: it is in none. */
  namespace: string;
  /** As it was given. */
  name: string;
  ref: ObjectRef;
  /** As it was given; of a deletion, nothing. */
  object: KubeObject | undefined;
  /** As it is kept now. */
  old: KubeObject | undefined;
}

const INPUTS: Partial<Record<Noun, InputName>> = {
  networkPolicy: "networkPolicies",
  globalNetworkPolicy: "globalNetworkPolicies",
  tier: "tiers",
  networkSet: "networkSets",
  globalNetworkSet: "globalNetworkSets",
};

export interface ChangeParts {
  kinds: readonly V3Kind[];
  objects: ClusterObjects;
  /** Of the request: where an object is that names none. */
  namespace: string;
}

export function policyChanges({ objects: given, deleted }: PreviewRequest, parts: ChangeParts): PolicyChange[] {
  const changes = [
    ...given.map((object) => changeOf(object, object.metadata, object, parts)),
    ...deleted.map((named) => changeOf(named, named, undefined, parts)),
  ];
  const seen = new Set<string>();
  for (const { input, ref, served, namespace, name } of changes) {
    const key = JSON.stringify([input, ref.namespace, ref.name]);
    if (seen.has(key))
      throw errors.FLOW_PREVIEW_BAD(`${served.kind} ${namespace && `${namespace}/`}${name} is in the preview twice`);
    seen.add(key);
  }
  return changes;
}

function changeOf(
  { apiVersion, kind }: Pick<KubeObject, "apiVersion" | "kind">,
  { name, namespace: own }: ObjectRef,
  object: KubeObject | undefined,
  parts: ChangeParts,
): PolicyChange {
  const found = placeOf(apiVersion, kind, parts.kinds);
  if (!found)
    throw errors.FLOW_PREVIEW_BAD(
      `${kind.slice(0, 60)} in ${apiVersion.slice(0, 60)} is nothing that a preview takes: policies, tiers and network sets of ${parts.kinds[0]?.served.group}/${parts.kinds[0]?.served.version}, and NetworkPolicy of networking.k8s.io/v1`,
    );
  const { served, v3 } = found;
  if (!served.namespaced && own) throw errors.FLOW_PREVIEW_BAD(`a ${served.kind} belongs to no namespace`);
  const namespace = served.namespaced ? own || parts.namespace : "";
  if (served.namespaced && namespace === "")
    throw errors.FLOW_PREVIEW_BAD(`the ${served.kind} ${name.slice(0, 253)} has no namespace`);
  const ref = {
    name: v3?.tiered ? storedPolicyName(name) : name,
    ...(namespace === "" ? {} : { namespace }),
  };
  const old = (parts.objects.get(found.input) ?? []).find(
    ({ metadata }) => metadata.name === ref.name && (metadata.namespace ?? "") === namespace,
  );
  const placed = object && structuredClone(object);
  if (placed && namespace !== "") placed.metadata.namespace = namespace;
  const verb = !object ? "delete" : old ? "update" : "create";
  return { ...found, verb, namespace, name, ref, object: placed, old };
}

function placeOf(
  apiVersion: string,
  kind: string,
  kinds: readonly V3Kind[],
): Pick<PolicyChange, "input" | "served" | "kept" | "v3"> | undefined {
  if (kind === NETWORK_POLICIES.kind && apiVersion === groupVersion(NETWORK_POLICIES))
    return { input: "kubernetesPolicies", served: NETWORK_POLICIES, kept: NETWORK_POLICIES, v3: undefined };
  const v3 = kinds.find(({ served }) => served.kind === kind && groupVersion(served) === apiVersion);
  const input = v3 && INPUTS[v3.noun];
  return input && { input, served: v3.served, kept: v3.stored, v3 };
}

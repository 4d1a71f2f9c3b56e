import type { KubeObject } from "../../api/object.ts";
import type { Component, RenderInputs } from "./inputs.ts";

const MANAGED_BY = { key: "app.kubernetes.io/managed-by", value: "vendor-operator" } as const;
const COMPONENT_LABEL = "operator.vendor.io/component";

/** Pools outlive the installation: pods hold their addresses. */
const NEVER_OWNED = new Set(["IPPool"]);

/** The labels by which the operator knows its own without any memory. */
export function ownLabels(component: Component): Record<string, string> {
  return { [MANAGED_BY.key]: MANAGED_BY.value, [COMPONENT_LABEL]: component };
}

/** The labels by which people and dashboards find what belongs together. Selectors have none of them: they cannot change. */
export function recommendedLabels(
  { metadata }: KubeObject,
  component: Component | "operator",
  version: string,
): Record<string, string> {
  return {
    "app.kubernetes.io/name": metadata.labels?.["k8s-app"] ?? "vendor",
    "app.kubernetes.io/part-of": "vendor",
    "app.kubernetes.io/component": component,
    // A label holds no plus sign, a version may.
    "app.kubernetes.io/version": version.replace("+", "_"),
  };
}

/** The object as the operator applies it: its labels on, and the resource that asked for it as owner. */
export function owned(
  object: KubeObject,
  component: Component,
  inputs: Pick<RenderInputs, "owner" | "version">,
): KubeObject {
  const owner = NEVER_OWNED.has(object.kind) ? undefined : inputs.owner(component);
  return {
    ...object,
    metadata: {
      ...object.metadata,
      labels: {
        ...object.metadata.labels,
        ...recommendedLabels(object, component, inputs.version),
        ...ownLabels(component),
      },
      ...(owner ? { ownerReferences: [{ ...owner, blockOwnerDeletion: false }] } : {}),
    },
  };
}

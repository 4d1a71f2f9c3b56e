/**
 * Labels the service derives from where an endpoint is, so that selectors can use it. Users may not set them: set by hand they would make
 * policy select the wrong things.
 */
export const DERIVED_LABELS = {
  /** On pods and network sets: their namespace. What has none is global. */
  namespace: "vendor.io/namespace",
  /** On pods alone, with the value `ORCHESTRATOR`. */
  orchestrator: "vendor.io/orchestrator",
  /** On pods: name of their service account. */
  serviceAccount: "vendor.io/serviceaccount",
} as const;

/** What runs the pods. */
export const ORCHESTRATOR = "k8s";

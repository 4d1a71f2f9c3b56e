import { NAMESPACE_LABEL_PREFIX, SERVICE_ACCOUNT_LABEL_PREFIX } from "./profile-names.ts";

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

/** The public system's words for the same labels; objects brought over from it may have them. */
const PUBLIC_DERIVED_LABELS = [
  "projectcalico.org/namespace",
  "projectcalico.org/orchestrator",
  "projectcalico.org/serviceaccount",
];

const KEYS: ReadonlySet<string> = new Set([...Object.values(DERIVED_LABELS), ...PUBLIC_DERIVED_LABELS]);

/** Whether only the service may give a thing this label. Below the two prefixes are labels of namespaces and service accounts. */
export function isDerivedLabel(key: string): boolean {
  return key.startsWith(NAMESPACE_LABEL_PREFIX) || key.startsWith(SERVICE_ACCOUNT_LABEL_PREFIX) || KEYS.has(key);
}

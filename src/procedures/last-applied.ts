/** Where kubectl remembers the manifest it applied last. */
export const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

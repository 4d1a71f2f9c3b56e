import { defineErrors } from "../kit/errors.ts";

/** sysexits: a configuration error. */
const CONFIG = 78;

export const errors = defineErrors({
  OPERATOR_CONFIG: {
    means: "An environment variable of the operator is missing or has a value that it cannot use.",
    example: ["VERSION", "is not set"],
    say: (name: string, why: string) => `the environment variable ${name} ${why}`,
    fix: (name: string) => `set ${name} in the operator's Deployment; the published manifest does`,
    exitCode: CONFIG,
  },
  OPERATOR_IN_SYSTEM_NAMESPACE: {
    means: "The operator runs in the namespace whose objects it creates and deletes.",
    example: ["vendor-system"],
    say: (namespace: string) => `the operator must not run in ${namespace}, the namespace it manages`,
    fix: () => "install it in a namespace of its own, such as vendor-operator",
    exitCode: CONFIG,
  },
  SECOND_OPERATOR: {
    means: "Two operators run in one cluster. The second one stops, so that they do not undo each other's changes.",
    example: ["vendor-operator-2", "vendor-operator"],
    say: (own: string, active: string) =>
      `the operator in namespace ${active} already manages this cluster, so the one in ${own} stops`,
    fix: (own: string, active: string) =>
      `remove one of the two: kubectl -n ${own} delete deployment vendor-operator; to move here instead, remove the one in ${active}, then kubectl -n vendor-system delete configmap active-operator`,
    exitCode: CONFIG,
  },
  OPERATOR_CANNOT_SEE: {
    means: "The operator's watch of a kind does not deliver objects that exist.",
    example: ["secrets"],
    say: (plurals: string) => `the operator cannot see ${plurals} in the namespace it manages`,
    fix: () => "use Kubernetes 1.21 or later, and the RBAC of the published manifest; see the log of the operator",
  },
  PRE_DELETE_TIMEOUT: {
    means: "helm uninstall waits until the operator has removed what it installed, and that took too long.",
    example: [300, "Installation default"],
    say: (seconds: number, what: string) => `after ${seconds} seconds the removal still waits for ${what}`,
    fix: () =>
      "see kubectl get vendorstatus and the log of the operator, then run helm uninstall again, with a larger uninstall.timeoutSeconds and --timeout if it only needs longer; or vendorctl uninstall",
  },
  PRE_DELETE_NO_OPERATOR: {
    means: "helm uninstall waits for finalizers that only an operator removes, and none runs.",
    example: ["Installation default", "operator.vendor.io/installation-controller"],
    say: (object: string, finalizers: string) =>
      `${object} has the finalizers ${finalizers}, and no operator runs that would remove them`,
    fix: () =>
      "start the operator (kubectl -n vendor-operator scale deployment vendor-operator --replicas=1) and run helm uninstall again; or vendorctl uninstall, which removes what the operator installed",
  },
  PRE_DELETE_STOPPED: {
    means: "The hook of helm uninstall was ended before everything was removed.",
    example: ["Installation default"],
    say: (what: string) => `stopped while the removal waited for ${what}`,
    fix: () => "run helm uninstall again",
  },
  KIND_NOT_MANAGED: {
    means: "The operator rendered an object of a kind that is not in its list. This is a bug.",
    example: ["Job", "batch/v1"],
    say: (kind: string, apiVersion: string) => `${kind} in ${apiVersion} is not a kind the operator creates`,
    fix: () => "this is a bug in the operator: report it",
  },
  CERTIFICATE_SECRET_UNUSABLE: {
    means: "A Secret with a certificate of yours cannot be used by a component.",
    example: ["vendor-system/vendor-apiserver-certs", "the key does not fit the certificate"],
    say: (secret: string, why: string) => `Secret ${secret} is not ours and cannot be used: ${why}`,
    fix: (secret: string) =>
      `correct it (tls.crt, tls.key and ca.crt that belong together), or delete it and the operator makes its own: kubectl -n ${secret.split("/")[0]} delete secret ${secret.split("/")[1]}`,
  },
  CERTIFICATE_AUTHORITY_BROKEN: {
    means: "The Secret with the operator's certificate authority cannot be read.",
    example: ["vendor-operator/vendor-ca-private", "it has no tls.key"],
    say: (secret: string, why: string) => `the certificate authority in Secret ${secret} cannot be used: ${why}`,
    fix: (secret: string) =>
      `restore it; or delete it, and the operator makes a new authority and rolls every pod: kubectl -n ${secret.split("/")[0]} delete secret ${secret.split("/")[1]}`,
  },
  PULL_SECRET_MISSING: {
    means:
      "The Installation names a pull Secret that the operator's namespace does not have, so images cannot be pulled.",
    example: ["vendor-operator", "registry"],
    say: (namespace: string, name: string) =>
      `spec.imagePullSecrets names Secret ${namespace}/${name}, which does not exist`,
    fix: (namespace: string, name: string) =>
      `create it: kubectl -n ${namespace} create secret docker-registry ${name} …; or remove the name`,
  },
});

/** Failures that trying again does not end: reported at once. */
export const NEEDS_A_PERSON: ReadonlySet<string> = new Set<keyof typeof errors>([
  "CERTIFICATE_SECRET_UNUSABLE",
  "CERTIFICATE_AUTHORITY_BROKEN",
  "PULL_SECRET_MISSING",
  "KIND_NOT_MANAGED",
]);

import { defineErrors } from "../kit/errors.ts";

/** sysexits: a configuration error. */
const CONFIG = 78;

export const errors = defineErrors({
  OPERATOR_CONFIG: {
    args: ["name", "why"],
    say: (name: string, why: string) => `the environment variable ${name} ${why}`,
    fix: (name: string) => `set ${name} in the operator's Deployment; the published manifest does`,
    exitCode: CONFIG,
  },
  OPERATOR_IN_SYSTEM_NAMESPACE: {
    args: ["namespace"],
    say: (namespace: string) => `the operator must not run in ${namespace}, the namespace it manages`,
    fix: () => "install it in a namespace of its own, such as vendor-operator",
    exitCode: CONFIG,
  },
  SECOND_OPERATOR: {
    args: ["own", "active"],
    say: (own: string, active: string) =>
      `the operator in namespace ${active} already manages this cluster, so the one in ${own} stops`,
    fix: (own: string, active: string) =>
      `remove one of the two: kubectl -n ${own} delete deployment vendor-operator; to move here instead, remove the one in ${active}, then kubectl -n vendor-system delete configmap active-operator`,
    exitCode: CONFIG,
  },
  OPERATOR_CANNOT_SEE: {
    args: ["plurals"],
    say: (plurals: string) => `the operator cannot see ${plurals} in the namespace it manages`,
    fix: () => "use Kubernetes 1.21 or later, and the RBAC of the published manifest; see the log of the operator",
  },
  PRE_DELETE_TIMEOUT: {
    args: ["seconds", "what"],
    say: (seconds: number, what: string) => `after ${seconds} seconds the removal still waits for ${what}`,
    fix: () =>
      "see kubectl get vendorstatus and the log of the operator, then run helm uninstall again, with a larger uninstall.timeoutSeconds and --timeout if it only needs longer; or vendorctl uninstall",
  },
  PRE_DELETE_NO_OPERATOR: {
    args: ["object", "finalizers"],
    say: (object: string, finalizers: string) =>
      `${object} has the finalizers ${finalizers}, and no operator runs that would remove them`,
    fix: () =>
      "start the operator (kubectl -n vendor-operator scale deployment vendor-operator --replicas=1) and run helm uninstall again; or vendorctl uninstall, which removes what the operator installed",
  },
  PRE_DELETE_STOPPED: {
    args: ["what"],
    say: (what: string) => `stopped while the removal waited for ${what}`,
    fix: () => "run helm uninstall again",
  },
  KIND_NOT_MANAGED: {
    args: ["kind", "api version"],
    say: (kind: string, apiVersion: string) => `${kind} in ${apiVersion} is not a kind the operator creates`,
    fix: () => "this is a bug in the operator: report it",
  },
  CERTIFICATE_SECRET_UNUSABLE: {
    args: ["secret", "why"],
    say: (secret: string, why: string) => `Secret ${secret} is not ours and cannot be used: ${why}`,
    fix: (secret: string) =>
      `correct it (tls.crt, tls.key and ca.crt that belong together), or delete it and the operator makes its own: kubectl -n ${secret.split("/")[0]} delete secret ${secret.split("/")[1]}`,
  },
  CERTIFICATE_AUTHORITY_BROKEN: {
    args: ["secret", "why"],
    say: (secret: string, why: string) => `the certificate authority in Secret ${secret} cannot be used: ${why}`,
    fix: (secret: string) =>
      `restore it; or delete it, and the operator makes a new authority and rolls every pod: kubectl -n ${secret.split("/")[0]} delete secret ${secret.split("/")[1]}`,
  },
  PULL_SECRET_MISSING: {
    args: ["namespace", "name"],
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

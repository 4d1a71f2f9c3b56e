import { defineErrors } from "../../../../kit/errors.ts";

const CHECK_FAILED = 3;

/** Why a plain manifest does not become an operator's installation. */
export const errors = defineErrors({
  MIGRATE_OPERATOR_NO_MANIFEST: {
    means: "This moves an installation from plain manifests to the operator, and the cluster has none.",
    example: ["operator"],
    say: (method: string) =>
      method === "none" ? "the service is not installed" : `the service is installed by ${method} already`,
    fix: (method) => (method === "none" ? "vendorctl install" : "vendorctl status"),
    exitCode: CHECK_FAILED,
  },
  MIGRATE_OPERATOR_ETCD: {
    means: "The operator keeps everything in the Kubernetes datastore, and this installation is on etcd.",
    example: ["vendor-etcd.yaml"],
    say: (file: string) => `${file} keeps policies, pools and addresses in etcd, which the operator does not read`,
    fix: () => "vendorctl migrate datastore",
    exitCode: CHECK_FAILED,
  },
  MIGRATE_OPERATOR_OTHER_VERSION: {
    means:
      "A plain manifest is migrated by the vendorctl of its own release, so that only one thing changes at a time.",
    example: ["v3.27.5", "v3.31.3"],
    say: (version: string, wanted: string) => `the cluster runs ${version}, and this tool migrates ${wanted}`,
    fix: () => "vendorctl upgrade",
    exitCode: CHECK_FAILED,
  },
  MIGRATE_OPERATOR_PUBLIC: {
    means: "The operator of the public system migrates plain manifests itself, as soon as there is an Installation.",
    say: () =>
      "with --names calico the public operator migrates plain manifests itself, and vendorctl leaves it to that",
    fix: () =>
      "kubectl create -f tigera-operator.yaml, then create an Installation named default; progress: kubectl get tigerastatus",
    exitCode: CHECK_FAILED,
  },
});

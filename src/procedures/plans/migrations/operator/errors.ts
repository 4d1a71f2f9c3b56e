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
  MIGRATE_OPERATOR_CANAL: {
    means:
      "The public operator does not know the overlay manifest: it would install a second network next to it. Migrate to another manifest or keep this one.",
    example: ["canal.yaml"],
    say: (file: string) => `the public operator does not migrate ${file}: it would install a second network next to it`,
    fix: () => "keep the manifest: vendorctl --names calico upgrade",
    exitCode: CHECK_FAILED,
  },
  MIGRATE_OPERATOR_ONE_BY_ONE: {
    means:
      "The public operator moves the nodes itself, in its own order, as many at once as maxUnavailable of the agents' DaemonSet.",
    example: ["--canary"],
    say: (flag: string) =>
      `${flag} has no effect with --names calico: the public operator moves the nodes in its own order`,
    fix: (flag) => `omit ${flag}`,
    exitCode: 2,
  },
  MIGRATE_OPERATOR_NO_FILES: {
    means: "vendorctl ships no files of the public system: they are read from the place that you give.",
    say: () => "the manifests of the public operator are needed, and vendorctl ships none of them",
    fix: () => "vendorctl --names calico migrate operator --manifest-url https://HOST/PATH/v3.31.3",
    exitCode: CHECK_FAILED,
  },
  MIGRATE_OPERATOR_OTHER_FILES: {
    means:
      "The files of the operator and the agents in the cluster must be of one release, so that only one thing changes.",
    example: ["the directory manifests", "v3.30.2", "v3.31.3"],
    say: (from: string, files: string, runs: string) =>
      `the files of ${from} are of ${files}, and the cluster runs ${runs}`,
    fix: (_from, _files, runs) => `give the files of ${runs} with --manifests or --manifest-url`,
    exitCode: CHECK_FAILED,
  },
});

import { defineErrors } from "../../../../kit/errors.ts";

const CHECK_FAILED = 3;

const namesOf = (all: readonly string[]): string =>
  all.length > 5 ? `${all.slice(0, 5).join(", ")} and ${all.length - 5} more` : all.join(", ");

/** Why an installation on etcd does not move to the Kubernetes datastore, or its old data does not go. */
export const errors = defineErrors({
  MIGRATE_DATASTORE_CANAL: {
    means:
      "With canal-etcd.yaml, flannel keeps the nodes' subnets in etcd too, and canal.yaml would give nodes others.",
    say: () => "canal-etcd.yaml is not migrated: flannel has its subnets in etcd, and pods would get other addresses",
    fix: () => "keep etcd, or install the cluster again with canal.yaml",
    exitCode: CHECK_FAILED,
  },
  MIGRATE_DATASTORE_NO_FILES: {
    means: "Manifests of the public system are not built in: they are read from where its release is.",
    say: () => "the manifests of Calico are not built in",
    fix: () => "--manifest-url with the address of the release that runs, its folder manifests in it",
    exitCode: CHECK_FAILED,
  },
  MIGRATE_DATASTORE_OTHER_FILES: {
    means: "Files of another release would upgrade in the same run what they migrate.",
    example: ["https://example.com/v3.31.5", "v3.31.5", "v3.31.3"],
    say: (from: string, version: string, runs: string) =>
      `the manifests at ${from} are of ${version}, and the cluster runs ${runs}`,
    fix: (_from, _version, runs) => `give the manifests of ${runs}, or run vendorctl --names calico upgrade first`,
    exitCode: CHECK_FAILED,
  },
  MIGRATE_DATASTORE_NO_MANIFEST: {
    means: "Only plain manifests can be on etcd, and the cluster has none.",
    example: ["operator"],
    say: (method: string) =>
      method === "none" ? "the service is not installed" : `the service is installed by ${method}, which has no etcd`,
    fix: (method) => (method === "none" ? "vendorctl install" : "vendorctl status"),
    exitCode: CHECK_FAILED,
  },
  MIGRATE_DATASTORE_NOT_ETCD: {
    means: "The agents read the Kubernetes datastore already.",
    say: () => "the service is on the Kubernetes datastore already",
    fix: () => "vendorctl status; to remove old data from etcd: vendorctl migrate datastore --drop-old-data",
    exitCode: CHECK_FAILED,
  },
  MIGRATE_DATASTORE_OTHER_VERSION: {
    means:
      "The datastore is migrated by the vendorctl of the release that runs: only its programs honour the lock, and only one thing changes at a time.",
    example: ["v3.27.5", "v3.31.3"],
    say: (version: string, wanted: string) => `the cluster runs ${version}, and this tool migrates ${wanted}`,
    fix: () => "vendorctl upgrade",
    exitCode: CHECK_FAILED,
  },
  MIGRATE_DATASTORE_ETCD_UNSET: {
    means: "The manifest does not say where etcd is, or the Secret of its certificates is not where it mounts it.",
    example: ["ETCD_ENDPOINTS", "there is none"],
    say: (variable: string, problem: string) => `the agents' ${variable} cannot be read: ${problem}`,
    fix: () => "set etcd_endpoints in ConfigMap vendor-config, as the manifest's head has it, and apply it",
    exitCode: CHECK_FAILED,
  },
  MIGRATE_DATASTORE_LOCKED: {
    means: "Another migration, or a person, has locked etcd: what is in it may be half of something.",
    example: ["https://10.0.0.1:2379"],
    say: (endpoints: string) => `etcd at ${endpoints} is locked already (ClusterInformation datastoreReady is false)`,
    fix: () => "vendorctl history, then vendorctl resume or vendorctl rollback; if no migration runs, set it to true",
    exitCode: CHECK_FAILED,
  },
  MIGRATE_DATASTORE_FOREIGN_NODES: {
    means: "IPAM in etcd has blocks of nodes that Kubernetes does not have. Another cluster may use the same etcd.",
    example: [["node-9"]],
    say: (nodes: readonly string[]) => `blocks in etcd belong to nodes that are not in this cluster: ${namesOf(nodes)}`,
    fix: () =>
      "wait until vendor-kube-controllers have collected them, or delete their BlockAffinity; if another cluster uses this etcd, do not migrate",
    exitCode: CHECK_FAILED,
  },
  MIGRATE_DATASTORE_OCCUPIED: {
    means:
      "The Kubernetes datastore holds objects of the service that etcd has not, or has otherwise. Neither is taken for the right one.",
    example: [["IPPool blue: spec.cidr differs"]],
    say: (objects: readonly string[]) =>
      `the Kubernetes datastore already holds objects that differ from etcd: ${namesOf(objects)}`,
    fix: () => "keep what is right in etcd (vendorctl apply --datastore etcd), and delete the others with kubectl",
    exitCode: CHECK_FAILED,
  },
  MIGRATE_DATASTORE_NOTHING_OLD: {
    means:
      "No etcd is known whose data has moved to this cluster: it was never migrated, or its data is dropped already.",
    say: () => "there is no old data that could be dropped",
    fix: () => "vendorctl history",
    exitCode: CHECK_FAILED,
  },
});

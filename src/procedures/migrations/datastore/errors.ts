import { defineErrors } from "../../../kit/errors.ts";

const CHECK_FAILED = 3;

/** What can go wrong between two datastores, while a run is under way. */
export const errors = defineErrors({
  MIGRATE_DATASTORE_NO_SECRET: {
    means: "The Secret with etcd's certificates, which the manifest's pods mount, is gone.",
    example: ["kube-system/vendor-etcd-secrets"],
    say: (secret: string) => `Secret ${secret} with the certificates of etcd is not there`,
    fix: () => "create it again from the files of etcd, then vendorctl resume",
    exitCode: CHECK_FAILED,
  },
  MIGRATE_DATASTORE_UNKNOWN_KEY: {
    means: "Among the service's resources in etcd is a key of a kind that this release does not have.",
    example: ["/vendor/resources/v3/bgppeers/rack-1"],
    say: (key: string) => `${key} in etcd is of no kind that this release keeps`,
    fix: (key) => `etcdctl get ${key}, and if nothing needs it: etcdctl del ${key}`,
    exitCode: CHECK_FAILED,
  },
  MIGRATE_DATASTORE_NODE_NAMES: {
    means:
      "A node has another name in etcd than in Kubernetes. Blocks, handles and settings name it, and vendorctl renames nothing.",
    example: ["host-1", "node-1.example.com"],
    say: (name: string, called: string) => `Node ${name} in etcd is node ${called} of Kubernetes`,
    fix: () => "calicoctl datastore migrate, which renames nodes; see docs/guide/migrate-datastore.md#calico-clusters",
    exitCode: CHECK_FAILED,
  },
  MIGRATE_DATASTORE_WRITTEN: {
    means:
      "Something was written to etcd past the lock, after the copy was made. Calico's lock is read by its CNI plugin and controllers; calicoctl does not ask.",
    example: [1, ["GlobalNetworkPolicy default.web: spec.order differs"]],
    say: (count: number, first: readonly string[]) =>
      `${count} ${count === 1 ? "object was" : "objects were"} written to the locked etcd after the copy was made: ${first.join("; ")}`,
    fix: () => "stop what writes there, then vendorctl rollback, and migrate again",
    exitCode: CHECK_FAILED,
  },
  MIGRATE_DATASTORE_NO_INFORMATION: {
    means: "The etcd that was asked has no ClusterInformation: it is another etcd, or its data was dropped.",
    example: ["https://10.0.0.1:2379"],
    say: (endpoints: string) => `etcd at ${endpoints} holds no ClusterInformation of the service`,
    fix: () =>
      "check etcd_endpoints in the manifest's ConfigMap; if the old data was dropped, the rollback is not possible",
    exitCode: CHECK_FAILED,
  },
  MIGRATE_DATASTORE_DIFFERS: {
    means: "After objects were copied from one datastore to the other, the two were compared and are not the same.",
    example: [2, "the Kubernetes datastore", ["IPPool blue: spec.cidr differs", "IPAMBlock 10-0-0-0-26: missing"]],
    say: (count: number, where: string, first: readonly string[]) =>
      `${count} ${count === 1 ? "object" : "objects"} of ${where} ${count === 1 ? "is" : "are"} not as in the other datastore: ${first.join("; ")}`,
    fix: () => "see what else writes there and stop it, then vendorctl resume",
    exitCode: CHECK_FAILED,
  },
});

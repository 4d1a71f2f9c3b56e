import { defineErrors } from "../kit/errors.ts";

const CHECK_FAILED = 3;
const USAGE = 64;
const UNREACHABLE = 69;

/** What can be wrong with the etcd datastore. */
export const errors = defineErrors({
  ETCD_ENV: {
    means: "A variable for the etcd datastore is missing or wrong.",
    example: ["ETCD_ENDPOINTS", "the etcd datastore needs the address of at least one etcd"],
    say: (variable: string, problem: string) => `${variable}: ${problem}`,
    fix: () => "correct the ConfigMap of the manifest, then restart the pods",
    exitCode: USAGE,
  },
  ETCD_UNREACHABLE: {
    means: "No member of the etcd that keeps the resources can be reached.",
    example: ["https://10.0.0.1:2379", "connection refused"],
    say: (endpoints: string, problem: string) => `etcd does not answer at ${endpoints}: ${problem}`,
    fix: () => "check the addresses of etcd, and the files of its CA, the client certificate and its key",
    exitCode: UNREACHABLE,
  },
  ETCD_UNANSWERED: {
    means: "The connection to etcd broke, or etcd took too long, after a write was sent. It is not sent again.",
    example: ["https://10.0.0.1:2379", "no answer in 5 seconds"],
    say: (endpoint: string, problem: string) =>
      `etcd at ${endpoint} did not confirm a write, which it may have carried out: ${problem}`,
    fix: () => "read the object again before the next write",
    exitCode: UNREACHABLE,
  },
  ETCD_LOGIN: {
    means: "The etcd has authentication enabled, and the user and password of the program are missing or wrong.",
    example: ["vendor"],
    say: (user?: string) =>
      user === undefined
        ? "etcd asks for a user and a password, and none is set"
        : `etcd does not accept user ${user} with this password`,
    fix: () =>
      "correct etcd-username and etcd-password in Secret vendor-etcd-secrets and restart the pods; for vendorctl, ETCD_USERNAME and ETCD_PASSWORD",
    exitCode: USAGE,
  },
  ETCD_REFUSED: {
    means: "The etcd that keeps the resources does not allow the request.",
    example: ["permission denied"],
    say: (problem: string) => `etcd refused: ${problem}`,
    fix: () => "check that the client certificate, or the user, may read and write the service's keys",
  },
  ETCD_FULL: {
    means: "The database of etcd has reached its quota. What is stored can be read and deleted.",
    example: ["etcdserver: mvcc: database space exceeded"],
    say: (problem: string) => `etcd takes no more writes: ${problem}`,
    fix: () => "compact and defragment etcd, or raise its quota, then: etcdctl alarm disarm",
    exitCode: CHECK_FAILED,
  },
  DATASTORE_LOCKED: {
    means:
      "The datastore is locked, as while it is migrated: no policy, pool or address is written, and new pods wait. Policy stays enforced.",
    example: ["etcd"],
    say: (where: string) => `the datastore in ${where} is locked (ClusterInformation datastoreReady is false)`,
    fix: () => "wait until the migration is over; vendorctl check says whose lock it is, and how it ends",
    exitCode: CHECK_FAILED,
  },
  ETCD_VALUE_BAD: {
    means: "A value in etcd is not a resource of the service.",
    example: ["/vendor/resources/v3/ippools/blue", "it is not JSON"],
    say: (key: string, problem: string) => `the value of ${key} in etcd cannot be read: ${problem}`,
    fix: (key) => `etcdctl get ${key}`,
  },
});

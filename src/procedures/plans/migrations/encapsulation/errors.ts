import { defineErrors } from "../../../../kit/errors.ts";

const CHECK_FAILED = 3;
const USAGE = 64;

/** Why pools keep their encapsulation. */
export const errors = defineErrors({
  MIGRATE_ENCAPSULATION_NOT_INSTALLED: {
    means: "The encapsulation of pools is changed in a running cluster, and the service is not installed.",
    say: () => "the service is not installed",
    fix: () => "set encapsulation of the pools in the Installation, then vendorctl install",
    exitCode: CHECK_FAILED,
  },
  MIGRATE_ENCAPSULATION_NO_POOL: {
    means: "--pool names an IPPool that does not exist.",
    example: ["rack-b", ["default-ipv4-ippool"]],
    say: (pool: string, _have: readonly string[]) => `there is no IPPool ${pool}`,
    fix: (_pool, have) =>
      have.length > 0
        ? `use --pool with one of ${have.join(", ")}, or omit it to change all`
        : "create an IPPool first",
    exitCode: USAGE,
  },
  MIGRATE_ENCAPSULATION_ETCD: {
    means: "Pools of an etcd datastore are not objects that vendorctl can change step by step.",
    say: () => "the pools are in etcd, which has no objects to watch and to roll back",
    fix: () => "migrate to the Kubernetes datastore first; see docs/guide/migrate-operator.md#etcd",
    exitCode: CHECK_FAILED,
  },
});

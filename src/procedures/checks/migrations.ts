import { VERSION_GATES } from "../../api/tables/version-gates.ts";
import { fieldAt } from "../field-at.ts";
import type { Observation, SeenLock } from "../observation.ts";
import { ALWAYS, type Check, fail, OK, ok, skip, some, warn } from "./check.ts";
import { deleteCommand } from "./commands.ts";
import { isHeld } from "./leftovers.ts";

type Locked = Extract<SeenLock, { state: "locked" }>;

export const MIGRATION_CHECKS: readonly Check[] = [
  {
    code: "HOST_ENDPOINTS_BY_HAND",
    title: "Host endpoints are not automatic",
    why: "New nodes have none; automatic host endpoints follow nodes and their labels.",
    fix: "vendorctl migrate host-endpoints",
    rule: "Host endpoints for all interfaces can be created automatically. See docs/guide/host-endpoints.md.",
    group: "versions",
    for: ["running", "upgrade"],
    run: (seen) => {
      const { names } = seen;
      if (seen.v3.served === "none") return skip("v3 resources cannot be read through this API server");
      const old = seen.v3.hostEndpoints.filter(
        ({ metadata, ...rest }) =>
          fieldAt(rest, "spec.interfaceName") === "*" &&
          metadata.labels?.[names.labels.createdBy.key] === undefined &&
          !metadata.name.endsWith(names.hostEndpoints.suffix),
      );
      return warn(some(old.map(({ metadata }) => `${names.kinds.hostEndpoint.kind} ${metadata.name}`)));
    },
  },
  {
    code: "TEMPORARY_UPGRADE_POLICY",
    title: "Temporary upgrade policy still exists",
    why: "It allows all traffic to and from nodes, in spite of other policies. Review its logs and add the policies you need before you delete it.",
    fix: "Review its logs, add the policies you need, then delete it.",
    rule: `${VERSION_GATES.hostEndpointSteps.because} See docs/guide/host-endpoints.md#the-temporary-policy.`,
    group: "versions",
    for: ["running", "upgrade"],
    run: (seen) => {
      if (seen.v3.served === "none") return skip("v3 resources cannot be read through this API server");
      const { temporaryUpgradePolicy } = seen.names.hostEndpoints;
      const there = seen.v3.globalNetworkPolicies.find(({ metadata }) =>
        [temporaryUpgradePolicy, `default.${temporaryUpgradePolicy}`].includes(metadata.name),
      );
      if (!there) return OK;
      const command = deleteCommand(seen.names, "globalNetworkPolicy", there.metadata.name);
      return warn([`${there.kind} ${there.metadata.name}`], command);
    },
  },
  {
    code: "DATASTORE_IS_LOCKED",
    title: "The datastore is locked",
    why: "Nothing is written while the lock holds: new pods get no address, and no policy or pool can be changed.",
    fix: "vendorctl history",
    rule: "datastoreReady of the ClusterInformation is false while a datastore is migrated. See docs/guide/migrate-datastore.md#the-lock.",
    group: "health",
    for: ALWAYS,
    run: (seen, { now }) => {
      const { lock, run } = seen;
      if (lock.state === "open") return OK;
      if (lock.state === "unknown") return skip(lock.why);
      return isLockAtWork(lock, run, now)
        ? warn([lockText(lock)], "vendorctl history")
        : fail([lockText(lock)], unlockCommand(seen, lock));
    },
  },
  {
    code: "SIDECARS_OF_ANOTHER_VERSION",
    title: "Sidecars have an older version",
    why: "They work with newer agents, but get no fixes until their workloads are restarted.",
    fix: "vendorctl migrate sidecars --mesh-version VERSION",
    rule: "The sidecar of application layer policy has the version of the service. See docs/guide/sidecars.md.",
    group: "versions",
    for: ["running", "upgrade"],
    run: (seen, { purpose }) => {
      const { injectors, version } = seen.service;
      if (injectors.length === 0) return skip("no sidecar injector is installed");
      const wanted = purpose === "upgrade" ? seen.tool.version : version;
      const old = injectors.filter((map) => !mentions(map, wanted));
      const lines = old.map(
        ({ metadata }) => `ConfigMap ${metadata.namespace}/${metadata.name} injects a version other than ${wanted}`,
      );
      return lines.length > 0 ? warn(lines) : ok(`${injectors.length} injectors`);
    },
  },
];

/** While the process of its run works, waiting is all there is to do. */
export function isLockAtWork({ run }: Locked, lease: Observation["run"], now: number): boolean {
  return typeof run === "object" && run.outcome === "running" && isHeld(lease, now);
}

/** Who locked it, as far as that is written down. */
export function lockText({ where, writer, run, moved }: Locked): string {
  const by = writer === undefined ? "" : `, by ${writer}`;
  const said = `the datastore in ${where} is locked (datastoreReady: false${by})`;
  if (moved) return `${said}: its data was moved to the Kubernetes datastore, and agents still use etcd`;
  if (run === "unread") return `${said}; whose lock it is cannot be read: you may not list Secrets of the journal`;
  if (!run) return `${said}; no migration of vendorctl holds the lock`;
  const { id, title, outcome, startedAt, at } = run;
  return `${said} by run ${id}, "${title}", started at ${startedAt}, ${outcome}${at ? ` at step "${at}"` : ""}`;
}

export function unlockCommand({ names, service }: Observation, { where, run, moved }: Locked): string {
  const { policyAndOverlay, policyAndNetworking } = names.manifests;
  const file = service.variant === "overlay" ? policyAndOverlay : policyAndNetworking;
  if (moved) return `kubectl apply --server-side --force-conflicts -f ${file}`;
  if (run === "unread") return "vendorctl history";
  if (run?.outcome === "aborted") return `vendorctl rollback --run ${run.id}`;
  if (run) return "vendorctl resume, or to go back: vendorctl rollback";
  if (names.dialect === "calico") return "calicoctl datastore migrate unlock, once no migration is under way";
  const etcd = where === "etcd" ? " --datastore etcd --etcd-endpoints ADDRESSES" : "";
  return `vendorctl patch clusterinformation default -p '{"spec":{"datastoreReady":true}}'${etcd}`;
}

function mentions(map: Observation["service"]["injectors"][number], version: string | undefined): boolean {
  return version !== undefined && JSON.stringify(map["data"] ?? {}).includes(`:${version}`);
}

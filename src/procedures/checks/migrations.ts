import { VERSION_GATES } from "../../api/version-gates.ts";
import { fieldAt } from "../field-at.ts";
import type { Observation } from "../observation.ts";
import { type Check, OK, ok, skip, some, warn } from "./check.ts";
import { deleteCommand } from "./commands.ts";

export const MIGRATION_CHECKS: readonly Check[] = [
  {
    code: "HOST_ENDPOINTS_BY_HAND",
    title: "Host endpoints for all interfaces are kept by hand",
    why: "They cover only the nodes somebody thought of; automatic ones follow the nodes and their labels.",
    fix: "vendorctl migrate host-endpoints",
    rule: "Migrating to automatic host endpoints, in order: label nodes, enable auto creation, delete the old all-interfaces endpoints.",
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
    title: "The temporary policy of an old upgrade is still there",
    why: "It allows everything to and from hosts, whatever other policies were meant to stop.",
    fix: "Review its logs, add the policies that are needed, then delete it.",
    rule: `${VERSION_GATES.hostEndpointSteps.because} If the pre-v3.14 temporary policy was used, review its traffic logs, add any needed global network policies, then delete allow-all-upgrade.`,
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
      return warn([`${there.kind} ${there.metadata.name}`], `review its logs, then: ${command}`);
    },
  },
  {
    code: "SIDECARS_OF_ANOTHER_VERSION",
    title: "Sidecars are injected in an older version",
    why: "They keep working beside newer agents, but get no fixes until their deployments are rolled.",
    fix: "vendorctl migrate sidecars --mesh-version VERSION",
    rule: "Versioning 5: The sidecar for application layer policy is versioned like the rest of the service.",
    group: "versions",
    for: ["running", "upgrade"],
    run: (seen, { purpose }) => {
      const { injectors, version } = seen.service;
      if (injectors.length === 0) return skip("nothing injects sidecars");
      const wanted = purpose === "upgrade" ? seen.tool.version : version;
      const old = injectors.filter((map) => !mentions(map, wanted));
      const lines = old.map(
        ({ metadata }) => `ConfigMap ${metadata.namespace}/${metadata.name} injects another version than ${wanted}`,
      );
      return lines.length > 0 ? warn(lines) : ok(`${injectors.length} injectors`);
    },
  },
];

function mentions(map: Observation["service"]["injectors"][number], version: string | undefined): boolean {
  return version !== undefined && JSON.stringify(map["data"] ?? {}).includes(`:${version}`);
}

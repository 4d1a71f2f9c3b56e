import { VERSION_GATES } from "../../api/tables/version-gates.ts";
import { fieldAt } from "../field-at.ts";
import type { Observation } from "../observation.ts";
import { type Check, OK, ok, skip, some, warn } from "./check.ts";
import { deleteCommand } from "./commands.ts";

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

function mentions(map: Observation["service"]["injectors"][number], version: string | undefined): boolean {
  return version !== undefined && JSON.stringify(map["data"] ?? {}).includes(`:${version}`);
}

import { vendorNames } from "../../api/names.ts";
import { apiAnswers } from "./api-service.ts";
import { reconcileOptional } from "./optional-part.ts";

/** The aggregated v3 API. */
export const reconcileApiServer = reconcileOptional({
  noun: "apiServer",
  component: "apiserver",
  notInstalled: "There is no APIServer named default.",
  requests: ({ apiServers }) => apiServers,
  problems: () => [],
  assess: (hands, now) =>
    apiAnswers(hands, now, { ...vendorNames.groups.served, workload: vendorNames.workloads.apiServer }),
});

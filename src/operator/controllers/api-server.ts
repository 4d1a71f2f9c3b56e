import { vendorNames } from "../../api/names.ts";
import { API_SERVICES } from "../../cluster/kinds.ts";
import { storedKind } from "../managed-kinds.ts";
import type { ReconcileContext } from "../reconcile-context.ts";
import { reconcileOptional } from "./optional-part.ts";

const { group, version } = vendorNames.groups.served;
const NAME = `${version}.${group}`;

/** The aggregated v3 API. */
export const reconcileApiServer = reconcileOptional({
  component: "apiserver",
  kind: storedKind("apiServer"),
  finalizer: vendorNames.finalizers.apiServer,
  workload: vendorNames.workloads.apiServer,
  message: {
    ready: `The API ${group}/${version} answers.`,
    notInstalled: "There is no APIServer named default.",
  },
  requests: ({ apiServers }) => apiServers,
  problems: () => [],
  waitingFor: apiToAnswer,
});

/** The orchestrator asks the API itself, and says here whether it answered. */
function apiToAnswer({ tools }: ReconcileContext): string | undefined {
  const service = tools.live.get(API_SERVICES, { name: NAME });
  const { conditions = [] } = (service?.["status"] ?? {}) as {
    conditions?: { type: string; status: string; message?: string }[];
  };
  const available = conditions.find(({ type }) => type === "Available");
  if (available?.status === "True") return undefined;
  return `APIService ${NAME} to be available${available?.message ? `: ${available.message}` : ""}`;
}

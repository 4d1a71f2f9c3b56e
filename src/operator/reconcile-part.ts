import { withFix } from "../api/protocol/status-message.ts";
import { StatusError } from "../api/status.ts";
import { CodedError } from "../kit/errors.ts";
import { reconcileApiServer } from "./controllers/api-server.ts";
import { reconcileFlowLogs } from "./controllers/flow-logs.ts";
import { reconcileFlowUI } from "./controllers/flow-ui.ts";
import { reconcileInstallation } from "./controllers/installation.ts";
import { reconcileIpPools } from "./controllers/ip-pools.ts";
import { reconcileServiceProxy } from "./controllers/service-proxy.ts";
import { NEEDS_A_PERSON } from "./errors.ts";
import type { Observed } from "./observed.ts";
import { degraded, type Outcome, type Part } from "./outcome.ts";
import type { ReconcileContext } from "./reconcile-context.ts";

const CONTROLLERS: Record<Part, (observed: Observed, hands: ReconcileContext) => Promise<Outcome>> = {
  network: reconcileInstallation,
  ippools: reconcileIpPools,
  apiserver: reconcileApiServer,
  "flow-logs": reconcileFlowLogs,
  "flow-ui": reconcileFlowUI,
  "service-proxy": reconcileServiceProxy,
};

export function reconcilePart(part: Part, observed: Observed, hands: ReconcileContext): Promise<Outcome> {
  return CONTROLLERS[part](observed, hands);
}

/** A server that is busy, restarting or ahead of us is not worth a word until it has been so for a while. */
const PATIENCE = 4;

/** What a failure means for the part, if it is for people to know: a passing one is only tried again. */
export function outcomeOfFailure(error: unknown, failures: number): Outcome | undefined {
  if (error instanceof CodedError) {
    const mine = NEEDS_A_PERSON.has(error.code);
    const message = error.fix ? withFix(`${error.message}.`, error.fix) : `${error.message}.`;
    return mine || failures >= PATIENCE ? degraded({ code: error.code }, capitalised(message), true) : undefined;
  }
  if (error instanceof StatusError) {
    const refused = error.code === 403 || error.code === 422 || error.code === 400;
    const reason = error.code === 403 ? "Forbidden" : "RequestRefused";
    if (refused) return degraded(reason, `The API server refused: ${error.message}`, true);
  }
  if (failures < PATIENCE) return undefined;
  return degraded(
    "RequestFailed",
    `Requests to the API server fail: ${error instanceof Error ? error.message : error}`,
    true,
  );
}

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

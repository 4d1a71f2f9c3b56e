import { vendorNames } from "../api/names.ts";
import { withFix } from "../api/protocol/status-message.ts";
import { endpointOf } from "./effective.ts";
import type { Observed } from "./observed.ts";
import { degraded, type Outcome, progressing } from "./outcome.ts";

const { endpointMap: names, namespaces } = vendorNames;

/**
 * Why nothing may get the address in the endpoint map yet: the API server has not answered the operator there. Whatever needs the address
 * keeps the one it has. Undefined: it answers, or there is no map.
 */
export function endpointOutcome(observed: Pick<Observed, "endpointMap" | "probedEndpoint">): Outcome | undefined {
  const { probedEndpoint: probed } = observed;
  const told = endpointOf(observed.endpointMap);
  if (!told) return undefined;
  const address = `${told.host}:${told.port}`;
  if (!probed || `${probed.host}:${probed.port}` !== address)
    return progressing(`the API server to answer at ${address}`);
  if (probed.failure === undefined) return undefined;
  const map = observed.endpointMap?.metadata;
  const message = `The API server does not answer the operator at ${address}, the address in ConfigMap ${map?.namespace}/${map?.name}, so nothing else gets it: ${probed.failure}.`;
  const fix = `kubectl -n ${map?.namespace ?? namespaces.operator} edit configmap ${map?.name}, and correct ${names.hostKey} and ${names.portKey}; the operator follows by itself.`;
  return degraded("EndpointUnanswered", withFix(message, fix), true);
}

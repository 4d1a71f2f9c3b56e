import type { RenderInputs } from "./inputs.ts";
import { platformOf } from "./platform.ts";

export type EnvVar = { name: string } & ({ value: string } | { valueFrom: object });

export function variable(name: string, value: string | number | undefined): EnvVar[] {
  return value === undefined ? [] : [{ name, value: String(value) }];
}

function fromField(name: string, fieldPath: string): EnvVar {
  return { name, valueFrom: { fieldRef: { fieldPath } } };
}

export const NODE_NAME: EnvVar = fromField("NODENAME", "spec.nodeName");

export const OWN_NAMESPACE: EnvVar = fromField("NAMESPACE", "metadata.namespace");

/** Who the pod is: programs name themselves in leases, events and annotations by it. */
export const POD_IDENTITY: readonly EnvVar[] = [fromField("POD_NAME", "metadata.name"), OWN_NAMESPACE];

/** Health and metrics of a pod in a network of its own answer at the address its probes ask. */
export const HEALTH_ON_POD: EnvVar = fromField("HEALTH_HOST", "status.podIP");

/** For scrapers outside the node; not on addresses the node has for other purposes. */
export const METRICS_ON_NODE: EnvVar = fromField("METRICS_HOST", "status.hostIP");

/** The API server's real address, for pods that can use it. */
export function apiEndpointEnv(
  { apiEndpoint, names, kind }: Pick<RenderInputs, "apiEndpoint" | "names" | "kind">,
  hostNetwork: boolean,
): EnvVar[] {
  if (!apiEndpoint) return [];
  if (!hostNetwork && apiEndpoint.host === platformOf(kind).addressOnlyOnNodes) return [];
  const { hostKey, portKey } = names.endpointMap;
  return [...variable(hostKey, apiEndpoint.host), ...variable(portKey, apiEndpoint.port)];
}

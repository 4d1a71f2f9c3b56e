/** On a node that exists only in the API: its pods are ready by rule and no packet moves, so there is no traffic to measure. */
const SIMULATED_NODE_ANNOTATION = "local.vendor.io/on-paper";

export function isSimulatedNode(annotations: Readonly<Record<string, string>>): boolean {
  return annotations[SIMULATED_NODE_ANNOTATION] !== undefined;
}

export const simulatedNodeAnnotations = (): Record<string, string> => ({ [SIMULATED_NODE_ANNOTATION]: "true" });

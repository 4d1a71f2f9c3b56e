/** On a node that exists only in the API: its pods are ready by rule and no packet moves, so there is no traffic to measure. */
export const ON_PAPER_ANNOTATION = "local.vendor.io/on-paper";

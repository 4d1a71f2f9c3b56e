/** On a node that exists only in the API: its pods are ready by rule and no packet moves, so there is no traffic to measure. */
const ON_PAPER_ANNOTATION = "local.vendor.io/on-paper";

export function isOnPaper(annotations: Readonly<Record<string, string>>): boolean {
  return annotations[ON_PAPER_ANNOTATION] !== undefined;
}

export const onPaperAnnotations = (): Record<string, string> => ({ [ON_PAPER_ANNOTATION]: "true" });

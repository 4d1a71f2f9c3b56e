import type { Session } from "./session.ts";

/** Flags for the chart tool, which must mean the same cluster as we do. */
export function toolConnection({ flags }: Session): string[] {
  const { kubeconfig, context } = flags;
  return [
    ...(kubeconfig === undefined ? [] : ["--kubeconfig", kubeconfig]),
    ...(context === undefined ? [] : ["--kube-context", context]),
  ];
}

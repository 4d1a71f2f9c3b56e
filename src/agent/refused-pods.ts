import type { Clock } from "../kit/clock.ts";
import { CodedError } from "../kit/errors.ts";

/** A pod that cannot be connected, and why. */
export interface RefusedPod {
  /** `NAMESPACE/POD`. */
  pod: string;
  code: string;
  message: string;
}

/** Pods whose ADD failed last, for the node's problems: their own events are read only by who looks for that pod. */
export interface RefusedPods {
  failed(pod: string, error: unknown): void;
  connected(pod: string): void;
  list(): RefusedPod[];
}

/** A runtime tries again within seconds; it no longer tries a pod that is gone. */
const TRIED_WITHIN_MS = 120_000;

export function refusedPods(clock: Clock): RefusedPods {
  const refused = new Map<string, RefusedPod & { at: number }>();
  return {
    failed(pod, error) {
      const { code, message } = error instanceof CodedError ? error : { code: "INTERNAL", message: String(error) };
      refused.set(pod, { pod, code, message, at: clock.now() });
    },
    connected: (pod) => void refused.delete(pod),
    list() {
      for (const [pod, { at }] of refused) if (clock.now() - at > TRIED_WITHIN_MS) refused.delete(pod);
      return [...refused.values()].map(({ at: _, ...one }) => one);
    },
  };
}

import type { KernelFeatures } from "../../kernel/features.ts";
import type { LoadOptions } from "../../kernel/object.ts";
import type { Configuration } from "./objects.ts";

/** What the programs are told about the kernel, and what is done to them where it lacks something. */
export interface Fit {
  configuration: Partial<Configuration>;
  load: Pick<LoadOptions, "missingHelpers" | "shapes">;
}

/** As `NEXT` in C: the stack does it. */
const LEAVE_TO_STACK = -1;

/**
 * Telling a kernel's lack by a constant is enough from 5.5 on: the verifier then removes the branch unseen. Older ones are spared the calls
 * too. Without ring buffers (before 5.8) nobody can be told verdicts; reserving room in one fails, as in a full one.
 */
export function fitToKernel({ redirectPeer, redirectNeighbour, ringBuffer }: KernelFeatures): Fit {
  return {
    configuration: { has_redirect_peer: redirectPeer ? 1 : 0, has_redirect_neigh: redirectNeighbour ? 1 : 0 },
    load: {
      missingHelpers: {
        ...(redirectPeer ? {} : { redirectPeer: LEAVE_TO_STACK }),
        ...(redirectNeighbour ? {} : { redirectNeigh: LEAVE_TO_STACK }),
        ...(ringBuffer ? {} : { ringbufReserve: 0 }),
      },
      shapes: ringBuffer ? {} : { events: { type: "array", keySize: 4, valueSize: 4, maxEntries: 1 } },
    },
  };
}

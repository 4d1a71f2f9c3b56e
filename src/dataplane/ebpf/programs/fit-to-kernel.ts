import type { BpfPort } from "../../../kernel/bpf/bpf-port.ts";
import type { KernelFeatures } from "../../../kernel/bpf/features.ts";
import type { LoadOptions } from "../../../kernel/bpf/object.ts";
import type { Configuration } from "./objects.ts";

/** Load-time constants about the kernel, and what is changed in the programs if it lacks something. */
export interface Fit {
  configuration: Partial<Configuration>;
  load: Pick<LoadOptions, "missingHelpers" | "missingFunctions" | "shapes">;
}

/** As `NEXT` in C: the stack does it. */
const LEAVE_TO_STACK = -1;

/**
 * A constant for a missing feature is enough from 5.5 on: the verifier then removes the branch unseen. Older ones are spared the calls
 * too. Without ring buffers (before 5.8) there are no verdict events; reserving space in one fails, as in a full one.
 */
export function fitToKernel(
  { redirectPeer, redirectNeighbour, ringBuffer }: KernelFeatures,
  bpf: Pick<BpfPort, "kernelFunction" | "kernelField">,
): Fit {
  return {
    configuration: {
      has_redirect_peer: redirectPeer ? 1 : 0,
      has_redirect_neigh: redirectNeighbour ? 1 : 0,
      ...conntrackLookup(bpf),
    },
    load: {
      missingFunctions: "zero",
      missingHelpers: {
        ...(redirectPeer ? {} : { redirectPeer: LEAVE_TO_STACK }),
        ...(redirectNeighbour ? {} : { redirectNeigh: LEAVE_TO_STACK }),
        ...(ringBuffer ? {} : { ringbufReserve: 0 }),
      },
      shapes: ringBuffer ? {} : { events: { type: "array", keySize: 4, valueSize: 4, maxEntries: 1 } },
    },
  };
}

const LOOKUP = ["bpf_skb_ct_lookup", "bpf_ct_release"];

/** Whether programs can ask the kernel's connection tracking, and where in its answer they find what; else nothing. */
export function conntrackLookup(bpf: Pick<BpfPort, "kernelFunction" | "kernelField">): Partial<Configuration> {
  const [tuples, mark, state] = [["tuplehash"], ["mark"], ["proto", "tcp", "state"]].map((fields) =>
    bpf.kernelField("nf_conn", ...fields),
  );
  const callable = LOOKUP.every((name) => bpf.kernelFunction(name) !== undefined);
  if (!callable || tuples === undefined || mark === undefined || state === undefined) return { has_ct_lookup: 0 };
  return { has_ct_lookup: 1, ct_tuples_offset: tuples, ct_mark_offset: mark, ct_tcp_state_offset: state };
}

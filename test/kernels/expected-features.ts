import { release } from "node:os";
import type { KernelFeatures } from "../../src/kernel/bpf/features.ts";

/** What is known of some kernels: a probe that says otherwise is wrong. Of others, and of what is not named, whatever is found is believed. */
const KNOWN: readonly (readonly [RegExp, Partial<KernelFeatures>])[] = [
  [/^5\.10\./, { tcx: false, prefixBatches: false, conntrackLookup: false, ...everywhere() }],
  [/^6\.1\./, { tcx: false, prefixBatches: true, tailCallsWithCalls: true, ...everywhere() }],
  [/^6\.12\./, { tcx: true, prefixBatches: true, tailCallsWithCalls: true, ...everywhere() }],
];

export function expectedFeatures(): Partial<KernelFeatures> {
  return KNOWN.find(([pattern]) => pattern.test(release()))?.[1] ?? {};
}

function everywhere(): Partial<KernelFeatures> {
  return {
    redirectPeer: true,
    redirectNeighbour: true,
    ringBuffer: true,
    mapIterators: true,
    schedCls: true,
    cgroupSockAddr: true,
  };
}

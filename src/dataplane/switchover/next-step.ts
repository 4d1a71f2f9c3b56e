/**
 * The order of a switchover, as one function: given the actual state, what is the next step? All of its input is in the
 * kernel or on disk, so a new agent continues after a kill at any point, and a changed desired data plane reverses it halfway. Pure.
 */

import type { Dataplane, DataplaneState } from "../../api/dataplane.ts";
import type { NatKeepaliveState } from "./nat-keepalive.ts";

export interface SwitchoverState {
  /** Of the programs; undefined where there are none. */
  mode: DataplaneState | undefined;
  /** In this life, whole: what the model says from here on reaches it. */
  programmed: Record<Dataplane, boolean>;
  /** Our nftables filter is in the kernel, of this life or of an earlier one. */
  filter: boolean;
  keep: NatKeepaliveState;
  /** Whether the rollback watchdog is armed. */
  watchdogArmed: boolean;
  /** The API server answers now, by way of the old data plane. */
  apiAnswers: boolean;
  /** The nf_conntrack entries have been imported. */
  importedConntrack: boolean;
  /** The API server was reached, and a service by way of the programs, since they act. */
  confirmed: boolean;
  /** Peers have had the time to hear that clients' addresses must not be sent here any more. */
  peersKnow: boolean;
  proxy: {
    rules: boolean;
    /** On a switch back: they are complete, in every family that services have. */
    serves: boolean;
    /** It has a pod on this node, or had rules here when eBPF began to act. */
    expected: boolean;
    /** They are ours to remove, and no longer needed. */
    ours: boolean;
    /** The programs have acted long enough that nothing is on its way through them. */
    quiet: boolean;
    /** It was waited for long enough. */
    givenUp: boolean;
  };
  drain: {
    /** In this life everything the programs carry was given. */
    given: boolean;
    /** Flows that only the programs can end, or that have not been given yet. */
    left: boolean;
  };
}

export const STEPS = [
  "programEbpf",
  "programNft",
  "keep",
  "openGate",
  "importConntrack",
  "armWatchdog",
  "flip",
  "closeGate",
  "confirm",
  "dropFilter",
  "removeProxyRules",
  "drain",
  "exportAgain",
  "turnOff",
  "removeEbpf",
  "removeNatKeepalive",
] as const;
export type StepName = (typeof STEPS)[number];

/** What is waited for: nothing can be done until it is so, or time is over. */
export type Wait = "api" | "confirmation" | "quiet" | "peers" | "proxy" | "flows";

export type Next = { do: StepName } | { wait: Wait } | "settled";

export function nextStep(wanted: Dataplane, seen: SwitchoverState): Next {
  return wanted === "BPF" ? towardsEbpf(seen) : towardsNft(seen);
}

/** The nftables filter and kube-proxy's rules are removed last, when it is proven that they are not needed. */
function towardsEbpf({ mode, programmed, filter, keep, watchdogArmed, proxy, ...seen }: SwitchoverState): Next {
  if (!programmed.BPF) return { do: "programEbpf" };
  // The nftables filter must follow the model until it is removed.
  if (filter && !programmed.Nftables) return { do: "programNft" };
  if (mode !== "Active") {
    // Without an answer the new data plane could not be confirmed, and would be reverted for nothing.
    if (filter && !watchdogArmed && !seen.apiAnswers) return { wait: "api" };
    if (keep === "absent") return { do: "keep" };
    if (keep === "gated") return { do: "openGate" };
    if (!seen.importedConntrack) return { do: "importConntrack" };
    // Without an old data plane there is nothing to revert to.
    if (filter && !watchdogArmed) return { do: "armWatchdog" };
    return { do: "flip" };
  }
  if (keep !== "gated") return { do: "closeGate" };
  if (watchdogArmed || filter) {
    if (!seen.confirmed) return { wait: "confirmation" };
    return { do: watchdogArmed ? "confirm" : "dropFilter" };
  }
  if (proxy.rules && proxy.ours) return proxy.quiet ? { do: "removeProxyRules" } : { wait: "quiet" };
  return "settled";
}

/** The kernel must be able to carry everything before the programs let go of anything. */
function towardsNft({ mode, programmed, keep, proxy, drain, watchdogArmed, ...seen }: SwitchoverState): Next {
  if (mode === "Active") {
    if (!seen.peersKnow) return { wait: "peers" };
    if (proxy.expected && !proxy.serves && !proxy.givenUp) return { wait: "proxy" };
    if (keep !== "open") return { do: "openGate" };
    if (!programmed.Nftables) return { do: "programNft" };
    return { do: "drain" };
  }
  if (!programmed.Nftables) return { do: "programNft" };
  // A drain in progress must not be turned off.
  if (watchdogArmed) return { do: "confirm" };
  if (mode === "Draining") {
    if (keep !== "open") return { do: "openGate" };
    if (!drain.given) return { do: "exportAgain" };
    return drain.left ? { wait: "flows" } : { do: "turnOff" };
  }
  if (mode === "Off") return { do: "removeEbpf" };
  return keep === "absent" ? "settled" : { do: "removeNatKeepalive" };
}

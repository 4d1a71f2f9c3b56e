import type { Dataplane } from "../api/dataplane.ts";

/** What a data plane counts for flow logs. Both planes keep this contract; the agent (`src/agent/flows`) names the ends and sends them on. */

/** All packets of one interval that have the same key. Addresses and the port are of the side that began, after Services were translated. */
export interface FlowSum {
  /** Texts, as `src/kit/ip.ts` writes them. Empty: merged with others because the table of sums was full. */
  source: string;
  destination: string;
  /** 0: the protocol has none, or ports were merged. */
  destinationPort: number;
  protocol: number;
  /** Of the Service that was asked for, if one was: `NAMESPACE/NAME:PORT`, the port by its name, or by its number where it has none. */
  service: string | undefined;
  verdict: "Allow" | "Deny";
  /** Why the data plane dropped it: a member of the eBPF programs' `enum reason` in lower case, without DROP_ or REJECT_; of nftables the same words. Only with Deny. */
  reason: string | undefined;
  /** What policy was asked where it left its source and where it arrived, as `Verdict.hits` names rules; undefined: not judged on this node. */
  egress: readonly string[] | undefined;
  ingress: readonly string[] | undefined;
  /** IP bytes: without the link's header. */
  packets: number;
  bytes: number;
  replyPackets: number;
  replyBytes: number;
  /** Connections that began and ended within the interval, and that are open at its end. */
  started: number;
  ended: number;
  live: number;
  /** Milliseconds since 1970. */
  lastSeen: number;
}

/**
 * Sums by interval. An interval is a number that only grows, in every life of the agent within one boot of the node. What is of one stays
 * where a killed agent finds it again (the kernel; a file under the run directory) until it is forgotten: so nothing is missed and nothing
 * is counted twice.
 */
export interface FlowAccounting {
  /** Intervals that are complete or being counted, and not forgotten: after a start, those of earlier lives. Ascending. */
  intervals(): Promise<number[]>;
  /** Ends the interval before and counts in this one from here on. Also the first call, which switches counting on. */
  begin(interval: number): Promise<void>;
  /** The sums of an interval that has ended. The same for every call until it is forgotten. */
  read(interval: number): Promise<FlowSum[]>;
  /** They are kept elsewhere now. */
  forget(interval: number): Promise<void>;
  /** What could not be told apart, or was not counted at all, since the start: for the status. */
  shed(): FlowShed;
  /** Counts no more, and forgets everything. */
  stop(): Promise<void>;
}

export interface FlowShed {
  /** Sums that were merged under a coarser key. */
  merged: number;
  /** Packets the programs counted that are in no sum: their entry was evicted. */
  unattributed: number;
}

/** Whoever reads what is counted is told when another data plane is about to count, so that each packet is counted by one. */
export interface FlowSwitchover {
  /** It counts from now on; no packet has passed it yet. */
  entering(dataplane: Dataplane, flows: FlowAccounting): Promise<void>;
  /** The one that entered has every packet from here on. What the other still sees of connections that it began is not taken. */
  entered(): Promise<void>;
  /** No packet passes it any more: what it counted until then is read, and it is stopped. */
  left(dataplane: Dataplane, flows: FlowAccounting): Promise<void>;
}

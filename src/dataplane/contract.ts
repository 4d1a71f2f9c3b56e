/** What the agent may ask of a data plane. Two keep this contract: nftables (`nft/`) and eBPF (`ebpf/`). */
import type { Dataplane } from "../api/dataplane.ts";
import type { ModelDelta } from "../calc/model.ts";
import type { CodedError } from "../kit/errors.ts";
import type { FlowAccounting } from "./flow-sums.ts";

export interface DataplaneDriver {
  readonly kind: Dataplane;
  /** Makes the kernel match the model after this delta. An object that fails stays wanted, is tried again with the next delta, and does not keep others. */
  apply(delta: ModelDelta): Promise<ApplyReport>;
  /** Compares everything with the kernel and mends what differs: after an error, and now and then. */
  resync(): Promise<void>;
  /** Removes what an earlier life of ours left and nothing wants now. Only after a delta that was in sync: before, what is absent may only be late. */
  sweep(): Promise<SweepReport>;
  show(table: TableName): Promise<Table>;
  /** Counts what pods use of the connection tables where that may be too much; those that have their share, and open no connections until some of their own end. */
  checkShares(): Promise<LimitedWorkload[]>;
  /** Counts what passes and what is dropped, for the flow logs; the same object at each call. Only after a delta in sync. */
  flows?(): FlowAccounting;
  /** Lets go; what is in the kernel stays and goes on working. */
  close(): Promise<void>;
  /** Takes everything of ours off the node. */
  remove(): Promise<void>;
}

export interface ApplyReport {
  /** Of every object the delta set, and of every one that was still waiting. */
  objects: ObjectOutcome[];
}

export interface ObjectOutcome {
  /** `interface`: one of the node itself, by its name; each report has all of them. */
  kind: "endpoint" | "hostEndpoint" | "interface" | "policy" | "profile" | "ipSet" | "route" | "service";
  id: string;
  /** Absent: it is in effect. */
  failed?: CodedError;
}

/** A pod that has its share of a connection table of this node. */
export interface LimitedWorkload {
  /** `NAMESPACE/POD`. */
  id: string;
  /** The table of the eBPF programs, or the kernel's; or the ports of the node's address towards one destination. */
  table: "conntrack" | "nf_conntrack" | "source ports";
  entries: number;
  limit: number;
}

/** From here on a pod counts as limited: entries that end and entries that begin would have it come and go. */
export const LIMITED_FROM = 0.95;

export interface SweepReport {
  /** What was removed, one line each. */
  removed: string[];
}

export const TABLES = ["endpoints", "policies", "ip-sets", "routes", "conntrack", "counters"] as const;
export type TableName = (typeof TABLES)[number];

/** Rows are ordered, and the same text for the same state: a test compares them, a person reads them. */
export interface Table {
  columns: string[];
  rows: string[][];
}

import type { Names } from "../api/names.ts";
import type { InventoryItem } from "./plans/upgrade/inventory.ts";

export const PROCEDURES = ["install", "switch", "proxy", "upgrade", "migrate", "flows", "uninstall"] as const;
export type Procedure = (typeof PROCEDURES)[number];

/** What can go wrong while a step runs: nothing; a short wait; traffic may be touched; something may be lost for good. */
export type Risk = "none" | "low" | "medium" | "high";

/**
 * One step, as data: it can be printed, saved, compared and taken up again by another process. What it does is the action of
 * that name (`actions/all.ts`); `inputs` is all the action gets, so everything a plan decided is in it.
 */
export interface Step {
  /** Unique in its plan, and stable: the same decision gives the same id. */
  id: string;
  action: string;
  inputs: Readonly<Record<string, unknown>>;
  /** What, as a person would say it: `Create the endpoint map`. */
  title: string;
  /** Where: `ConfigMap vendor-operator/orchestrator-services-endpoint`, `all nodes`, `your cluster tool`. */
  where: string;
  /** The rule it comes from, in the specification's words. */
  because: string;
  risk: Risk;
  /** `true`, or why there is no undo. */
  reversible: true | string;
}

/** Everything a procedure will do, decided before anything is done. */
export interface Plan {
  apiVersion: "procedures.vendor.io/v1";
  kind: "Plan";
  /** Short and readable; `hash` distinguishes two plans of one id. */
  id: string;
  procedure: Procedure;
  names: Names["dialect"];
  /** As a sentence: `Switch the data plane of cluster X from Nftables to BPF`. */
  title: string;
  /** The command line that made it, without credentials. */
  command: string;
  /** What the plan was decided from; `apply -f` compares it with the cluster (see `fingerprint.ts`). */
  observed: Readonly<Record<string, string>>;
  steps: readonly Step[];
  /** Things to know that no step does: recommendations, what to do elsewhere. */
  notes: readonly string[];
  /** Of an upgrade: what is stored or set and the new release does not carry. */
  inventory?: readonly InventoryItem[];
  /** Of an upgrade: each part with the version that runs and the one that will. */
  components?: readonly Component[];
  /** Of an upgrade: what restarts where, for how long, and what is at risk; an estimate. */
  impact?: Impact;
  /** Of everything above. */
  hash: string;
}

export interface Component {
  component: string;
  current: string;
  target: string;
}

export interface Impact {
  nodes: readonly { node: string; restarts: readonly string[] }[];
  /** Replaced too, wherever they run. */
  deployments: readonly string[];
  /** Nodes whose agents restart at the same time. */
  atOnce: number;
  secondsPerNode: number;
  seconds: number;
  connections: readonly string[];
}

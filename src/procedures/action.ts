import type { Names } from "../api/names.ts";
import type { KubeObject } from "../api/object.ts";
import type { TrafficRow } from "../api/protocol/traffic-report.ts";
import type { Client } from "../cluster/client.ts";
import type { Clock } from "../kit/clock.ts";
import type { ReleaseFiles } from "../releases/release-files.ts";
import type { OtherTools } from "./other-tools.ts";

/** What an action may use. It is stopped by `signal`. */
export interface Work extends Reports {
  client: Client;
  names: Names;
  clock: Clock;
  signal: AbortSignal;
  files: ReleaseFiles;
  tools: OtherTools;
  /** How long a wait may go on without any change of what it waits for; undefined: without end. */
  stallMs?: number;
}

/** How an action reports. These become events of the run, with the step's name; nothing reads their wording. */
export interface Reports {
  /** A line that stays. */
  say(text: string): void;
  /** What the step waits for, until it says anything else: completes the sentence "waiting for". */
  waitingFor(what: string): void;
  /** A figure worth repeating in the run's report. */
  measured(text: string): void;
  /** Records a measurement with the step; the newest figures of a run are its report. */
  keep(figures: readonly TrafficRow[]): Promise<void>;
}

/** For actions called outside a run. */
export const NO_REPORTS: Reports = { say: () => {}, waitingFor: () => {}, measured: () => {}, keep: async () => {} };

/**
 * What a step of one kind does. Any of these may be cut off anywhere and called again by another process, so each must end in the same
 * state whether it runs once or twice. `Before` is written to the journal before the first change: JSON, and all that `undo` needs.
 */
export interface Action<Inputs extends object = object, Before = unknown> {
  /** Changes nothing, only waits: with `--wait=false` a run ends before such steps at its end. */
  waits?: true;
  /** False where the cluster already is as the step wants it; then nothing is done, and nothing is undone. Not asked when a step is taken up again. */
  needed(inputs: Inputs, work: Work): Promise<boolean>;
  /** Reads what undo will need. Called once, before the first `apply`; never again for the same step of the same run. */
  before?(inputs: Inputs, work: Work): Promise<Before>;
  apply(inputs: Inputs, work: Work, before: Before): Promise<void>;
  /** Waits on the cluster (watches, never sleeps) until it shows what the step promised. Throws a coded error where waiting is hopeless. */
  confirm?(inputs: Inputs, work: Work, before: Before): Promise<void>;
  /** What each object the step changes would be, as the server sees it; for `diff`. Nothing is changed. */
  preview?(inputs: Inputs, work: Work): Promise<Preview[]>;
  /** The inverse. Absent only where the step says it is not reversible. */
  undo?(inputs: Inputs, work: Work, before: Before): Promise<void>;
}

/** One object as it is and as a step would have it; undefined where it is not there. */
export interface Preview {
  live: KubeObject | undefined;
  planned: KubeObject | undefined;
}

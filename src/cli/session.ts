import type { Clock } from "../kit/clock.ts";
import type { ClusterCommands } from "./commands/cluster/cluster-commands.ts";
import type { CliConfig } from "./config.ts";
import type { Styled } from "./printable.ts";
import type { Template } from "./template-output.ts";

/** What the commands that change a cluster are asked for, where it is not to do it. */
type Intent = "plan" | "diff" | "can-i" | "can-i --list";

export const NAME_SETS = ["vendor", "calico"] as const;
type NameSetName = (typeof NAME_SETS)[number];

export const OUTPUT_FORMATS = ["table", "json", "yaml", "short", "junit", "wide", "name", "csv"] as const;
type OutputFormat = (typeof OUTPUT_FORMATS)[number] | Template["form"];

/** Flags every command takes, as kubectl spells them. */
export interface GlobalFlags {
  kubeconfig?: string;
  context?: string;
  as?: string;
  asGroup?: string[];
  namespace?: string;
  output: OutputFormat;
  /** Of `-o jsonpath=` and `-o custom-columns=`. */
  template?: string;
  color: boolean;
  quiet?: true;
  /** 8 and above shows where an unexpected failure came from. */
  v: number;
  /** Milliseconds. */
  timeout?: number;
  /** Whose words the cluster's objects are written in. */
  names: NameSetName;
}

/** The outside of one run of vendorctl: where it writes, what it was given, what it drives, and when to stop. */
export interface CliContext {
  config: CliConfig;
  /** Plain text is cleaned of control characters before it is printed; see printable.ts. */
  out(text: string | Styled): void;
  err(text: string | Styled): void;
  signal: AbortSignal;
  /** Asks the user at the terminal; absent without one. */
  prompt?(question: string): Promise<string>;
  /** Everything that comes in on standard input. */
  input?(): Promise<string>;
  /** The command line, as it was given. */
  argv?: readonly string[];
  intent?: Intent;
  /** The time of runs; the system's if left out. */
  clock?: Clock;
  loadClusterCommands(): Promise<ClusterCommands>;
}

/** The context of a command, in addition to its own flags. */
export interface Session extends CliContext {
  flags: GlobalFlags;
}

import type { Command } from "commander";
import { type Budget, DEFAULT_BUDGET } from "../../../procedures/canary/budget.ts";
import type { WaveSize, WavesInputs } from "../../../procedures/plans/node-waves.ts";
import { errors } from "../../errors.ts";
import { completedWith, duration, oneOf, someText } from "../../flags.ts";
import { optionWithDefault } from "../../help.ts";

/** How traffic is measured while something changes. */
export interface TrafficFlags {
  canaryTraffic: "auto" | "off";
  budget: Budget;
}

const BUDGET_TEXT = "connections=0,silence=1s,datagrams=0.1%";

export function addTrafficFlags(command: Command): Command {
  return command
    .option(
      "--canary-traffic <when>",
      "auto: measure canary traffic during the run, on every node where pods can run; off: do not",
      oneOf("--canary-traffic", ["auto", "off"] as const),
      "auto",
    )
    .addOption(
      optionWithDefault("--budget <losses>", "what canary traffic may lose before the run is rolled back", {
        parse: budget("--budget"),
        value: DEFAULT_BUDGET,
        shown: BUDGET_TEXT,
      }),
    );
}

/** One node first, then a few at a time. */
export interface WaveFlags {
  /** `--no-waves`. */
  waves: boolean;
  canary?: string;
  waveSize?: WaveSize;
}

const DEFAULT_WAVE_SIZE: WaveSize = { percent: 25 };

export function addWaveFlags(command: Command, withoutWaves: string): Command {
  return command
    .option(
      "--canary <node>",
      "the node that changes first, alone (default: a ready worker with Service backends)",
      completedWith("nodes", someText("--canary", "a node")),
    )
    .option("--wave-size <nodes>", "nodes per wave after the canary: a number or a share (default: 25%)", waveSize)
    .option("--no-waves", withoutWaves);
}

export function refuseWavesTwice({ waves, canary, waveSize: size }: WaveFlags): void {
  if (waves || (canary === undefined && size === undefined)) return;
  const flag = canary === undefined ? "--wave-size" : "--canary";
  throw errors.USAGE(`${flag} and --no-waves exclude each other`, "omit one of them");
}

/** What a plan of waves is made from; undefined with `--no-waves`. */
export async function wavesInputs(
  { waves, canary, waveSize: size = DEFAULT_WAVE_SIZE }: WaveFlags,
  servingNodes: () => Promise<string[]>,
): Promise<WavesInputs | undefined> {
  if (!waves) return undefined;
  return canary === undefined ? { size, serving: await servingNodes() } : { size, serving: [], canary };
}

function waveSize(text: string): WaveSize {
  const [, number = "", percent] = /^(\d{1,5})(%?)$/.exec(text) ?? [];
  const value = Number(number);
  if (number !== "" && value >= 1 && !(percent && value > 100)) return percent ? { percent: value } : { nodes: value };
  throw errors.BAD_VALUE("--wave-size", text, "a number of nodes such as 5, or a share of them such as 25%");
}

/** What is left out stays as it is by default. */
function budget(flag: string): (text: string) => Budget {
  const expected = "losses such as connections=0,silence=1s,datagrams=0.1%";
  return (text) => {
    const given: Budget = { ...DEFAULT_BUDGET };
    const seen = new Set<string>();
    for (const part of text.split(",")) {
      const [, what = "", value = ""] = /^([a-z]+)=(.+)$/.exec(part) ?? [];
      if (seen.has(what) || !takes(given, what, value)) throw errors.BAD_VALUE(flag, text, expected);
      seen.add(what);
    }
    return given;
  };
}

function takes(budget: Budget, what: string, value: string): boolean {
  if (what === "connections" && /^\d{1,6}$/.test(value)) budget.connections = Number(value);
  else if (what === "silence" && isDuration(value)) budget.silenceMs = duration("--budget")(value);
  else if (what === "datagrams" && /^\d{1,3}(\.\d{1,4})?%$/.test(value) && Number.parseFloat(value) <= 100)
    budget.datagramsPercent = Number.parseFloat(value);
  else return false;
  return true;
}

const isDuration = (value: string) => /^(\d{1,6}(\.\d+)?(ms|s|m))+$/.test(value);

import { readdirSync, readFileSync } from "node:fs";
import type { Command } from "commander";
import { describe, expect, it } from "vitest";
import {
  GoldenFolder,
  goldenText,
  type ShownOptions,
  shownEverywhere,
  UPDATE_HINT,
} from "../../test/support/golden.ts";
import { runVendorNode } from "./commands/node/vendor-node.ts";
import { runVendorProbe } from "./commands/node/vendor-probe.ts";
import { readCliConfig } from "./config.ts";
import { buildProgram } from "./program.ts";
import type { CliContext } from "./session.ts";
import { fakeClusterCommands } from "./testing/fake-context.ts";
import { vendorHelp } from "./vendor-help.ts";

/**
 * The help of every command, and whatever else needs no cluster, at 80 and 160 columns and in a pipe. What commands print of a cluster is in
 * test/cli/golden.test.ts and test/cli/golden-upgrade.test.ts.
 */

const GOLDEN = new URL("../../test/cli/golden/", import.meta.url);
const help = new GoldenFolder(new URL("help/", GOLDEN));
const offline = new GoldenFolder(new URL("offline/", GOLDEN));
const context: CliContext = {
  config: readCliConfig({}, {}),
  out() {},
  err() {},
  signal: new AbortController().signal,
  loadClusterCommands: async () => fakeClusterCommands([]),
};

const isHidden = (command: Command) => (command as Command & { _hidden?: boolean })._hidden === true;
const children = (command: Command) => command.commands.filter((one) => !isHidden(one) && one.name() !== "help");

interface CommandPath {
  words: string[];
  isLeaf: boolean;
}

function pathsBelow(command: Command, words: readonly string[] = []): CommandPath[] {
  const below = children(command).flatMap((child) => pathsBelow(child, [...words, child.name()]));
  return [{ words: [...words], isLeaf: below.length === 0 }, ...below];
}

const ALL = pathsBelow(buildProgram(context));

const writeHelp: ShownOptions["program"] = async (_argv, { out }) => {
  out(vendorHelp());
  return 0;
};

type Row = [prompt: string, argv: string[], options: ShownOptions];
const row = (prompt: string, argv: string[], program?: ShownOptions["program"]): Row => [
  prompt,
  argv,
  { prompt, loadClusterCommands: context.loadClusterCommands, ...(program && { program }) },
];

const HELP: Row[] = [
  ...ALL.map(({ words }) => row(["vendorctl", ...words, "--help"].join(" "), [...words, "--help"])),
  row("vendor --help", [], writeHelp),
  row("vendor node --help", ["--help"], runVendorNode),
  ...["show", "remove", "rescue"].map((name) => row(`vendor node ${name} --help`, [name, "--help"], runVendorNode)),
  row("vendor probe --help", ["--help"], runVendorProbe),
  ...["serve", "connect", "measure"].map((name) =>
    row(`vendor probe ${name} --help`, [name, "--help"], runVendorProbe),
  ),
];

const vendorctl = (line: string): Row => row(`vendorctl ${line}`, line.split(" "));
const OFFLINE: Row[] = [
  "version --client",
  "options",
  "completion bash",
  "completion zsh",
  "completion fish",
  "completion tcsh",
  "explain KUBECONFIG_MISSING",
  "explain VXLAN_PORT_TAKEN",
  "explain EBPF_NEEDS_KUBE_DATASTORE",
  "explain API_CONFLICT",
  "explain NO_SUCH_CODE",
  "chek",
  "switch",
  "switch --to ipvs",
  "switch --to bpf --wave-size none",
  "check --four upgrade",
  "check --pre --for upgrade",
  "proxy enabled",
  "install --set mtu=1400",
  "install --timeout soon",
  "get --kubeconfig /nowhere/kubeconfig tiers",
  "status -o wide",
].map(vendorctl);

function fileOf(prompt: string): string {
  return prompt.replace(" --help", "").replace(/[^\w.=]+/g, "-");
}

function describeGolden(title: string, folder: GoldenFolder, rows: readonly Row[]): void {
  describe(title, () => {
    it.each(rows)("%s", async (prompt, argv, options) => {
      const shown = await shownEverywhere(argv, options);
      const text = goldenText(shown, (same) => same);
      expect(text, UPDATE_HINT).toBe(folder.expected(fileOf(prompt), text));
      expect(shown.flatMap(({ faults }) => faults)).toEqual([]);
    });

    it("has no file that nothing is compared with", () => {
      expect(folder.unused(rows.map(([prompt]) => fileOf(prompt)))).toEqual([]);
    });
  });
}

describeGolden("help is what the golden files show", help, HELP);
describeGolden("what needs no cluster is what the golden files show", offline, OFFLINE);

describe("every command has a golden file of what it does, not only of its help", () => {
  const texts = ["offline/", "cluster/", "upgrade/"].flatMap((name) => {
    const folder = new URL(name, GOLDEN);
    return readdirSync(folder).map((file) => readFileSync(new URL(file, folder), "utf8"));
  });
  const commands = ALL.filter(({ isLeaf }) => isLeaf).map(({ words }) => words.join(" "));

  it.each(commands)("%s", (command) => {
    const line = new RegExp(`^\\$ vendorctl ${command}(?: |$)`, "m");
    expect(
      texts.some((text) => line.test(text)),
      "a case of test/cli/golden.test.ts that runs it",
    ).toBe(true);
  });
});

import type { Command } from "commander";
import { expect, it } from "vitest";
import { readCliConfig } from "./config.ts";
import { buildProgram } from "./program.ts";
import { vendorctl } from "./testing/fake-context.ts";

const world = {
  config: readCliConfig({}, {}),
  out() {},
  err() {},
  signal: new AbortController().signal,
  loadClusterCommands: () => Promise.reject(new Error("no cluster is asked")),
};

function paths(command: Command, before: string[] = []): string[][] {
  return command
    .createHelp()
    .visibleCommands(command)
    .filter((child) => child.name() !== "help")
    .flatMap((child) => {
      const path = [...before, child.name()];
      return [path, ...paths(child, path)];
    });
}

const COMMANDS = paths(buildProgram(world));
const LEAVES = COMMANDS.filter(
  (path) => !COMMANDS.some((other) => other.length > path.length && startsWith(other, path)),
);

function startsWith(other: readonly string[], path: readonly string[]): boolean {
  return path.every((word, index) => other[index] === word);
}

it.each(COMMANDS.map((path) => [path.join(" "), path] as const))("%s has a short text", async (_name, path) => {
  const { out } = await vendorctl([...path.slice(0, -1), "--help"]);
  const line = out.split("\n").find((one) => one.trim().startsWith(`${path.at(-1)} `));
  // One line of 80 columns, as an imperative sentence without a full stop.
  expect(line).toMatch(/^ {2}\S+ +[A-Z].{8,}[^.]$/);
  expect(line?.length).toBeLessThanOrEqual(80);
});

it.each(LEAVES.filter(([name]) => name !== "options").map((path) => [path.join(" "), path] as const))(
  "%s has examples that are its own commands, and its usage",
  async (name, path) => {
    const { out, exit } = await vendorctl([...path, "--help"]);
    expect(exit).toBe(0);
    const [, examples = ""] = /\nExamples:\n(.*?)\n\n[A-Z]/s.exec(out) ?? [];
    expect(examples).toMatch(new RegExp(`vendorctl (plan )?${path[0]}`));
    expect(out).toContain(`\nUsage:\n  vendorctl ${name}`);
    expect(out).toContain('Use "vendorctl options" for the global options.\n');
    expect(out).not.toContain("--kubeconfig <file>");
    expect(out).not.toMatch(/unless|default: [{"]/);
  },
);

it("lists the global options once", async () => {
  const { out } = await vendorctl(["options"]);
  expect(out).toContain("--kubeconfig <file>");
  expect(out).toContain("(default: table)");
});

import { describe, expect, it } from "vitest";
import { commandLine } from "./command-line.ts";

describe("the command that does what was planned", () => {
  it.each([
    [["plan", "switch", "--to", "BPF", "-o", "yaml"], "vendorctl switch --to BPF"],
    [["--no-color", "diff", "switch", "--to=BPF", "--detailed-exitcode"], "vendorctl switch --to=BPF"],
    [["switch", "--to", "BPF", "--dry-run", "server", "-y", "-v=8"], "vendorctl switch --to BPF"],
    [["auth", "can-i", "--list", "switch", "--to", "BPF", "-o", "yaml"], "vendorctl switch --to BPF"],
    [["install", "--dry-run=client", "--set", "a=b c"], "vendorctl install --set 'a=b c'"],
    [["migrate", "host-endpoints", "--context", "it's"], "vendorctl migrate host-endpoints --context 'it'\\''s'"],
  ])("%j", (argv, expected) => {
    expect(commandLine(argv)).toBe(expected);
  });
});

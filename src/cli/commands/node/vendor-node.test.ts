import { describe, expect, it } from "vitest";
import { readCliConfig } from "../../config.ts";
import { fakeClusterCommands } from "../../testing/fake-context.ts";
import { runVendorNode } from "./vendor-node.ts";

async function run(...argv: string[]) {
  let [out, err] = ["", ""];
  const exitCode = await runVendorNode(argv, {
    config: readCliConfig({}, {}),
    out: (text) => {
      out += text;
    },
    err: (text) => {
      err += text;
    },
    signal: new AbortController().signal,
    loadClusterCommands: async () => fakeClusterCommands([]),
  });
  return { exitCode, out, err };
}

describe("vendor node", () => {
  it("names the tables there are when asked for another", async () => {
    const { exitCode, err } = await run("show", "nonsense");
    expect(exitCode).toBe(64);
    expect(err).toMatch(/no table "nonsense" \[AGENT_NO_TABLE\][\s\S]*endpoints, policies, ip-sets/);
  });

  it("takes nothing away unless that is said twice", async () => {
    const { exitCode, err } = await run("remove");
    expect(exitCode).not.toBe(0);
    expect(err).toMatch(/--yes/);
  });

  it("says what it can do", async () => {
    expect((await run("--help")).out).toMatch(/show[\s\S]*remove/);
  });
});

import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readProgramPath } from "./config.ts";
import { toolsOnPath } from "./tools-on-path.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tools-"));
  await writeFile(join(folder, "said"), '#!/bin/sh\ncat; printf "%s|" "$@"; echo problem >&2; exit 3\n');
  await writeFile(join(folder, "slow"), "#!/bin/sh\nexec sleep 60\n");
  await writeFile(join(folder, "plain"), "no program\n");
  for (const name of ["said", "slow"]) await chmod(join(folder, name), 0o755);
});
afterAll(() => rm(folder, { recursive: true }));

describe("tools of other people", () => {
  it("are found on the path, if they can be run", async () => {
    const tools = toolsOnPath(["/nowhere", folder]);
    expect(await tools.find("said")).toBe(join(folder, "said"));
    expect(await tools.find("plain")).toBeUndefined();
    expect(await tools.find("../said")).toBeUndefined();
    expect(await toolsOnPath(readProgramPath()).find("sh")).toMatch(/\/sh$/);
  });

  it("get their arguments as they are, and their input, and answer with their own status", async () => {
    const result = await toolsOnPath([folder]).run("said", ["a b", "$HOME; ls"], { input: "in:" });
    expect(result).toEqual({ exitCode: 3, stdout: "in:a b|$HOME; ls|", stderr: "problem\n" });
  });

  it("are stopped when it takes too long, or when the person stops", async () => {
    await expect(toolsOnPath([folder], 50).run("slow", [])).rejects.toMatchObject({ code: "TOOL_TIMED_OUT" });
    const signal = AbortSignal.timeout(20);
    await expect(toolsOnPath([folder]).run("slow", [], { signal })).rejects.toMatchObject({ name: "AbortError" });
  });

  it("are said to be missing where they are", async () => {
    await expect(toolsOnPath([folder]).run("helm", [])).rejects.toMatchObject({ code: "TOOL_NOT_INSTALLED" });
  });
});

import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { applyChart, type UpgradeStory, upgradeStory } from "../support/upgrade-story.ts";

const TIMEOUT = 120_000;

/** Stands on the PATH as the chart tool, tells us what it was asked, and does what the chart would. */
interface ChartTool {
  calls: { args: string[]; input: string }[];
  answer: { exitCode: number; stderr: string };
  close(): Promise<void>;
}

async function chartTool(story: () => UpgradeStory): Promise<ChartTool> {
  const calls: ChartTool["calls"] = [];
  const tool: ChartTool = { calls, answer: { exitCode: 0, stderr: "" }, close: async () => {} };
  const server: Server = createServer((request, response) => {
    let body = "";
    request.on("data", (part: Buffer) => {
      body += part.toString();
    });
    request.on("end", async () => {
      calls.push(JSON.parse(body) as ChartTool["calls"][number]);
      if (tool.answer.exitCode === 0) await applyChart(story().cluster);
      response.end(JSON.stringify(tool.answer));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const folder = mkdtempSync(join(tmpdir(), "chart-tool-"));
  const script = `#!${process.execPath}
let input = "";
process.stdin.on("data", (part) => (input += part));
process.stdin.on("end", async () => {
  const body = JSON.stringify({ args: process.argv.slice(2), input });
  const { exitCode, stderr } = await (await fetch("http://127.0.0.1:${port}/", { method: "POST", body })).json();
  process.stderr.write(stderr);
  process.exit(exitCode);
});
`;
  writeFileSync(join(folder, "helm"), script);
  chmodSync(join(folder, "helm"), 0o755);
  const path = process.env["PATH"];
  process.env["PATH"] = `${folder}:${path}`;
  tool.close = async () => {
    process.env["PATH"] = path;
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    rmSync(folder, { recursive: true });
  };
  return tool;
}

describe("upgrading a chart's release where the chart tool is", () => {
  let story: UpgradeStory;
  let tool: ChartTool;
  beforeAll(async () => {
    story = await upgradeStory("v3.29", "chart");
    tool = await chartTool(() => story);
  }, TIMEOUT);
  afterAll(async () => {
    await tool.close();
    await story.close();
  });

  it("the definitions come first: the tool never upgrades them. A failure of the tool is told in its words", {
    timeout: TIMEOUT,
  }, async () => {
    tool.answer = { exitCode: 1, stderr: 'Error: repo "vendor" not found\n' };
    const { exit, err } = await story.run("upgrade", "-y");
    expect(exit).toBe(1);
    expect(err).toContain("ok  2/");
    expect(err).toContain('ended with 1: Error: repo "vendor" not found');
    expect(err).toContain("vendorctl resume");
  });

  it("the run goes on where it stood, with the release's own values", { timeout: TIMEOUT }, async () => {
    tool.answer = { exitCode: 0, stderr: "" };
    await story.ok("resume", "-y");
    const { args, input } = tool.calls.at(-1)!;
    expect(args.slice(0, 5)).toEqual(["upgrade", "vendor", "vendor/vendor-operator", "--version", "v3.31.3"]);
    expect(args).toContain("--kubeconfig");
    expect(args.slice(-2)).toEqual(["--values", "-"]);
    expect(input).toBe("installation:\n  enabled: true\n");
    expect(await story.ok("version")).toContain("v3.31.3");
  });

  it("flow logs and their page are enabled, and disabled again", { timeout: TIMEOUT }, async () => {
    await story.ok("flows", "enable", "--ui", "-y");
    expect(await story.ok("flows", "enable", "--ui", "-y")).not.toContain("error");
    await story.ok("flows", "disable", "-y");
    const { exit, err } = await story.run("flows", "disable", "-y");
    expect({ exit, err }).toEqual({ exit: 3, err: expect.stringContaining("[FLOWS_NOT_ENABLED]") });
  });
});

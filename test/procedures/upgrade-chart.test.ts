import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ChartTool, startChartTool } from "../support/chart-tool.ts";
import { type UpgradeScenario, upgradeScenario } from "../support/upgrade-scenario.ts";

describe("upgrading a chart's release where the chart tool is", () => {
  let story: UpgradeScenario;
  let tool: ChartTool;
  const path = process.env["PATH"];
  beforeAll(async () => {
    story = await upgradeScenario("v3.29", "chart");
    tool = await startChartTool(() => story.cluster);
    process.env["PATH"] = `${tool.folder}:${path}`;
  });
  afterAll(async () => {
    process.env["PATH"] = path;
    await tool.close();
    await story.close();
  });

  it("the definitions come first: the tool never upgrades them. A failure of the tool is told in its words", async () => {
    tool.answer = { exitCode: 1, stderr: 'Error: repo "vendor" not found\n' };
    const { exit, err } = await story.run("upgrade", "-y");
    expect(exit).toBe(1);
    expect(err).toMatch(/ok +2\//);
    expect(err).toContain('ended with 1: Error: repo "vendor" not found');
    expect(err).toContain("vendorctl resume");
  });

  it("the run goes on where it stood, with the release's own values", async () => {
    tool.answer = { exitCode: 0, stderr: "" };
    await story.ok("resume", "-y");
    const { args, input } = tool.calls.at(-1)!;
    expect(args.slice(0, 5)).toEqual(["upgrade", "vendor", "vendor/vendor-operator", "--version", "v3.31.3"]);
    expect(args).toContain("--kubeconfig");
    expect(args.slice(-2)).toEqual(["--values", "-"]);
    expect(input).toBe("installation:\n  enabled: true\n");
    expect(await story.ok("version")).toContain("v3.31.3");
  });

  it("flow logs and their page are enabled, and disabled again", async () => {
    await story.ok("flows", "enable", "--ui", "-y");
    expect(await story.ok("flows", "enable", "--ui", "-y")).not.toContain("error");
    await story.ok("flows", "disable", "-y");
    const { exit, err } = await story.run("flows", "disable", "-y");
    expect({ exit, err }).toEqual({ exit: 3, err: expect.stringContaining("[FLOWS_NOT_ENABLED]") });
  });
});

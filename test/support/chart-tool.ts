import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LocalCluster } from "../../src/local/cluster.ts";
import { applyChart } from "./upgrade-scenario.ts";

/** Stands as the chart tool in a folder for the PATH, tells us what it was asked, and does what the chart would. */
export interface ChartTool {
  readonly folder: string;
  readonly calls: { args: string[]; input: string }[];
  answer: { exitCode: number; stderr: string };
  close(): Promise<void>;
}

export async function startChartTool(cluster: () => LocalCluster): Promise<ChartTool> {
  const calls: ChartTool["calls"] = [];
  const folder = mkdtempSync(join(tmpdir(), "chart-tool-"));
  const server: Server = createServer((request, response) => {
    let body = "";
    request.on("data", (part: Buffer) => {
      body += part.toString();
    });
    request.on("end", async () => {
      calls.push(JSON.parse(body) as ChartTool["calls"][number]);
      if (tool.answer.exitCode === 0) await applyChart(cluster());
      response.end(JSON.stringify(tool.answer));
    });
  });
  const tool: ChartTool = {
    folder,
    calls,
    answer: { exitCode: 0, stderr: "" },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      rmSync(folder, { recursive: true });
    },
  };
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  writeFileSync(join(folder, "helm"), scriptFor((server.address() as AddressInfo).port));
  chmodSync(join(folder, "helm"), 0o755);
  return tool;
}

const scriptFor = (port: number) => `#!${process.execPath}
let input = "";
process.stdin.on("data", (part) => (input += part));
process.stdin.on("end", async () => {
  const body = JSON.stringify({ args: process.argv.slice(2), input });
  const { exitCode, stderr } = await (await fetch("http://127.0.0.1:${port}/", { method: "POST", body })).json();
  process.stderr.write(stderr);
  process.exit(exitCode);
});
`;

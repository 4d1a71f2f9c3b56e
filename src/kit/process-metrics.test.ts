import { expect, it } from "vitest";
import { programMetrics } from "./process-metrics.ts";

const sample = (text: string, name: string) =>
  Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, "m").exec(text)?.[1]);

it("a program exports its process under the usual names, as it is at each scrape", () => {
  const metrics = programMetrics();
  metrics.gauge("vendor_example", "An example.").set(1);
  const first = metrics.text();
  expect(first).toMatch(/^vendor_example 1$/m);
  expect(sample(first, "process_resident_memory_bytes")).toBeGreaterThan(1e6);
  expect(sample(first, "process_open_fds")).toBeGreaterThan(2);
  expect(sample(first, "process_max_fds")).toBeGreaterThanOrEqual(sample(first, "process_open_fds"));
  expect(Math.abs(sample(first, "process_start_time_seconds") + process.uptime() - Date.now() / 1000)).toBeLessThan(2);
  expect(first).toContain(`nodejs_version_info{version="${process.version}"} 1`);
  for (const line of first.split("\n").filter((line) => line !== "" && !line.startsWith("#")))
    expect(Number.isFinite(Number(line.split(" ").at(-1))), line).toBe(true);
  const cpu = sample(first, "process_cpu_seconds_total");
  while (sample(metrics.text(), "process_cpu_seconds_total") <= cpu) Math.random();
});

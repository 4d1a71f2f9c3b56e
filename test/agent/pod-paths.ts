import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { parseSnapshot, type TrafficRow, type TrafficSnapshot } from "../../src/api/protocol/traffic-report.ts";
import type { LabPod } from "./node-lab.ts";
import { until } from "./node-lab.ts";

const VENDOR = join(new URL("../..", import.meta.url).pathname, "bin/vendor");
const PORT = 8080;

/** Traffic from each pod to each other one, all the time. */
export interface PodPaths {
  /** What was counted since the beginning, by path, when as much again as now is known to have been answered or not. */
  figures(): Promise<TrafficRow[]>;
  close(): Promise<void>;
}

export async function measurePodPaths(pods: readonly LabPod[]): Promise<PodPaths> {
  const children: ChildProcess[] = [];
  const start = ({ netns }: LabPod, ...args: string[]) => {
    const command = [`--net=/run/netns/${netns.name}`, process.execPath, VENDOR, "probe", ...args];
    const child = spawn("nsenter", command, { stdio: ["ignore", "pipe", "ignore"] });
    children.push(child);
    return child;
  };
  for (const pod of pods) start(pod, "serve", "--tcp", `${PORT}`, "--udp", `${PORT}`);
  const last = new Map<string, TrafficSnapshot>();
  for (const pod of pods) {
    const others = pods.filter((other) => other !== pod);
    const child = start(
      pod,
      "measure",
      ...others.map((other) => `${pod.name}-to-${other.name}=${other.addresses[0]}:${PORT}/${PORT}`),
    );
    let text = "";
    child.stdout!.setEncoding("utf8").on("data", (more: string) => {
      const lines = (text + more).split("\n");
      text = lines.pop() ?? "";
      for (const line of lines) {
        const snapshot = parseSnapshot(line);
        if (snapshot) last.set(pod.name, snapshot);
      }
    });
  }
  const told = () => JSON.stringify([...last.values()]);
  const rows = () => [...last.values()].flatMap((snapshot) => [...snapshot.rows]);
  await until(() => last.size === pods.length && rows().every(({ reached }) => reached), told, 60_000);
  return {
    async figures() {
      const now = new Map([...last].map(([name, { seconds }]) => [name, seconds]));
      // What is under way now is counted as lost when its answer is overdue.
      await until(() => [...last].every(([name, { seconds }]) => seconds >= now.get(name)! + 4), told, 60_000);
      return rows();
    },
    async close() {
      for (const child of children) {
        const gone = new Promise((resolve) => child.once("exit", resolve));
        child.kill("SIGKILL");
        if (child.exitCode === null && child.signalCode === null) await gone;
      }
    },
  };
}

import { realKernel } from "../../src/kernel/kernel.ts";
import { modelFor } from "../pods/cluster.ts";
import { median } from "../run.ts";
import { oneMore, serviceRows } from "./rows.ts";
import { ownCpu, type Served, serveByEbpf, serveByProxy, type Way } from "./ways.ts";

/** What it takes to put services into the kernel. Milliseconds, and of processor time too. */
export interface Programming {
  way: Exclude<Way, "direct">;
  count: number;
  allMs: number;
  allCpuMs: number;
  oneMs: number;
  oneCpuMs: number;
}

const kernel = realKernel();
let namespaces = 0;

/** All services into an empty kernel, then one of them changed, again and again. */
export async function measureProgramming(
  way: Programming["way"],
  count: number,
  changes: number,
): Promise<Programming> {
  const netns = kernel.netns.create(`vt-bench-${process.pid}-p${++namespaces}`);
  const rows = serviceRows(count);
  const delta = { ...modelFor({ count: 0, variant: "idle" }), services: { set: rows, remove: [] } };
  // The pods are not there: only services are measured.
  const alone = { ...delta, endpoints: { set: [], remove: [] } };
  let served: Served | undefined;
  try {
    const cpuBefore = ownCpu();
    const allMs = await milliseconds(async () => {
      served = way === "ebpf" ? await serveByEbpf(netns, alone) : await serveByProxy(way, netns, rows);
    });
    const allCpuMs = (served!.cpu() - cpuBefore) * 1e3;
    const [ones, cpus]: [number[], number[]] = [[], []];
    for (let change = 0; change < changes; change++) {
      const before = served!.cpu();
      ones.push(await milliseconds(() => served!.change(oneMore(change))));
      cpus.push((served!.cpu() - before) * 1e3);
    }
    return { way, count, allMs, allCpuMs, oneMs: median(ones), oneCpuMs: median(cpus) };
  } finally {
    await served?.close();
    netns.close();
    kernel.netns.delete(netns.name);
  }
}

async function milliseconds(act: () => Promise<void>): Promise<number> {
  const started = performance.now();
  await act();
  return performance.now() - started;
}

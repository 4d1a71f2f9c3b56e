import type { ServicePort } from "../../src/calc/model.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import { modelFor } from "../pods/cluster.ts";
import { median } from "../run.ts";
import { type Implementation, type Served, serveByEbpf, serveByProxy } from "./implementations.ts";
import { oneMore, serviceRows } from "./rows.ts";

/** What it takes to put services into the kernel. Milliseconds, and of processor time too. */
export interface Programming {
  way: Exclude<Implementation, "direct">;
  count: number;
  allMs: number;
  allCpuMs: number;
  oneMs: number;
  oneCpuMs: number;
}

const kernel = realKernel();
let namespaces = 0;
/** One more service is written so often, or for so long. */
const PATIENCE_MS = 20_000;

/** All services at once, then one of them changed, again and again. */
export async function measureProgramming(
  way: Programming["way"],
  count: number,
  changes: number,
): Promise<Programming> {
  const netns = kernel.netns.create(`vt-bench-${process.pid}-p${++namespaces}`);
  // The pods are not there: only services are measured.
  const alone = { ...modelFor({ count: 0, variant: "idle" }), endpoints: { set: [], remove: [] } };
  let served: Served | undefined;
  try {
    served = await (way === "ebpf" ? serveByEbpf(netns, alone) : serveByProxy(way, netns));
    const all = await spent(served, serviceRows(count));
    const ones: Spent[] = [];
    const until = performance.now() + PATIENCE_MS;
    while (ones.length < changes && (ones.length === 0 || performance.now() < until)) {
      ones.push(await spent(served, [oneMore(ones.length)]));
    }
    return {
      ...{ way, count, allMs: all.ms, allCpuMs: all.cpuMs },
      ...{ oneMs: median(ones.map(({ ms }) => ms)), oneCpuMs: median(ones.map(({ cpuMs }) => cpuMs)) },
    };
  } finally {
    await served?.close();
    netns.close();
    kernel.netns.delete(netns.name);
  }
}

interface Spent {
  ms: number;
  cpuMs: number;
}

async function spent(served: Served, services: readonly ServicePort[]): Promise<Spent> {
  const [started, cpu] = [performance.now(), served.cpu()];
  await served.write(services);
  return { ms: performance.now() - started, cpuMs: (served.cpu() - cpu) * 1e3 };
}

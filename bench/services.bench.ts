import { fileURLToPath } from "node:url";
import { load } from "./pods/load.ts";
import type { Row } from "./run.ts";
import { type Connecting, type ConnectPlan, measureConnecting } from "./services/connecting.ts";
import type { Implementation } from "./services/implementations.ts";
import { measureProgramming, type Programming } from "./services/programming.ts";

interface Plan {
  counts: ConnectPlan["counts"];
  changes: number;
  connect: Omit<ConnectPlan, "counts">;
}

const FULL: Plan = {
  counts: {
    ebpf: [10, 1_000, 10_000, 30_000],
    nft: [10, 1_000, 10_000, 30_000],
    iptables: [10, 1_000, 10_000, 30_000],
  },
  changes: 50,
  connect: { rounds: 9, warmUp: 50, length: 250 },
};
const QUICK: Plan = {
  counts: { ebpf: [10, 1_000], nft: [10, 1_000], iptables: [10, 1_000] },
  changes: 5,
  connect: { rounds: 4, warmUp: 30, length: 150 },
};

const WAYS: Record<Implementation, string> = {
  direct: "no service",
  ebpf: "eBPF",
  nft: "nftables proxy",
  iptables: "iptables proxy",
};

/** What services cost: putting them into the kernel, and reaching a pod by one instead of by its own address. */
export async function run(): Promise<Row[]> {
  if (process.argv[2] === "load") {
    load();
    process.exit();
  }
  if (process.getuid?.() !== 0) throw new Error("it makes network namespaces and loads programs: run it as root");
  const { counts, changes, connect } = process.argv.includes("--quick") ? QUICK : FULL;
  const started = performance.now();
  const progress = (text: string) =>
    void process.stderr.write(`${((performance.now() - started) / 1e3).toFixed(0).padStart(4)} s  ${text}\n`);
  const programmed: Programming[] = [];
  for (const way of ["ebpf", "nft", "iptables"] as const) {
    for (const count of counts[way]) {
      progress(`writing: ${way}, ${count} services`);
      programmed.push(await measureProgramming(way, count, changes));
    }
  }
  const connected = await measureConnecting(fileURLToPath(import.meta.url), { ...connect, counts }, progress);
  return [...programmingRows(programmed), ...connectingRows(connected)];
}

function programmingRows(results: readonly Programming[]): Row[] {
  const figures = [
    ["all of them, time", "allMs"],
    ["all of them, processor", "allCpuMs"],
    ["one more, time", "oneMs"],
    ["one more, processor", "oneCpuMs"],
  ] as const;
  return figures.flatMap(([title, figure]) =>
    results.map(({ way, count, ...result }) => {
      const proxy = way === "ebpf" ? results.find((one) => one.way === "iptables" && one.count === count) : undefined;
      const beside = proxy && { name: WAYS.iptables, value: proxy[figure] };
      return { name: `write ${count} services, ${title}, ${WAYS[way]}`, value: result[figure], unit: "ms", beside };
    }),
  );
}

function connectingRows(results: readonly Connecting[]): Row[] {
  const figures = [
    ["connect, p50", "p50", "us"],
    ["connect, p99", "p99", "us"],
    ["connections one after the other", "perSecond", "1/s"],
  ] as const;
  const direct = results.find(({ way }) => way === "direct")!;
  return figures.flatMap(([title, figure, unit]) =>
    results.map(({ way, count, ...result }) => {
      const proxy = way === "ebpf" ? results.find((one) => one.way === "iptables" && one.count === count) : undefined;
      const other = proxy ?? (way === "direct" ? undefined : direct);
      const beside = other && { name: WAYS[other.way], value: other[figure] };
      const where = way === "direct" ? WAYS.direct : `${count} services, ${WAYS[way]}`;
      return { name: `${title}, ${where}`, value: result[figure], unit, beside };
    }),
  );
}

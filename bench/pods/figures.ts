import type { Row } from "../run.ts";
import type { DataplaneName } from "./bench-node.ts";
import { percentile, type ReactionResult } from "./reaction.ts";
import { type Figure, summary, type TrafficResult } from "./traffic.ts";

export const DATAPLANES: Record<DataplaneName, string> = {
  plain: "no filter",
  ebpf: "eBPF",
  nft: "nftables",
  iptables: "iptables",
  ebpfNoShare: "eBPF that does not count connections of pods",
  nftNoShare: "nftables that does not count connections of pods",
  ebpfFlows: "eBPF with flow logs",
  nftFlows: "nftables with flow logs",
};

export const FIGURES: Record<Figure, { name: string; unit: string; digits: number }> = {
  crr: { name: "connections: connect, request, close", unit: "1/s", digits: 0 },
  rr: { name: "requests on one connection", unit: "1/s", digits: 0 },
  gbps: { name: "throughput of one stream", unit: "Gbit/s", digits: 1 },
  cpu: { name: "processor time", unit: "ms/Gbit", digits: 1 },
};

export const REACTIONS = {
  enforced: "policy created to enforced",
  lifted: "policy deleted to first packet",
  firstReply: "pod created to first reply",
} as const;

/** What we said we would reach, and what this run reached: the worst over all numbers of policies, by medians and by best rounds. */
export interface Aim {
  name: string;
  least: number;
  median: number;
  best: number;
}

type Variant = "idle" | "applying";

export function find(
  results: readonly TrafficResult[],
  plane: DataplaneName,
  count: number,
  variant: Variant,
): TrafficResult | undefined {
  if (plane === "plain") return results.find((one) => one.plane === plane);
  return results.find(
    ({ plane: is, policies }) => is === plane && policies.count === count && policies.variant === variant,
  );
}

export function countsOf(results: readonly TrafficResult[]): number[] {
  return [...new Set(results.map(({ policies }) => policies.count))].filter((count) => count > 0);
}

/** The plain node stands beside both. */
export function variantsOf(results: readonly TrafficResult[]): Variant[] {
  return [...new Set(results.filter(({ plane }) => plane !== "plain").map(({ policies }) => policies.variant))].sort();
}

export function figureOf(result: TrafficResult, figure: Figure, of: "median" | "best" = "median"): number {
  return summary(result, figure)[of] * (figure === "cpu" ? 1e3 : 1);
}

export function aimsOf(results: readonly TrafficResult[]): Aim[] {
  const counts = countsOf(results);
  const worst = (figure: Figure, beside: DataplaneName, of: "median" | "best", variant: Variant) =>
    Math.min(
      ...counts.map((count) => {
        const [ours, theirs] = [find(results, "ebpf", count, variant)!, find(results, beside, count, variant)!];
        return figureOf(ours, figure, of) / figureOf(theirs, figure, of);
      }),
    );
  const flat = (of: "median" | "best", variant: Variant) => {
    const rates = counts.map((count) => figureOf(find(results, "ebpf", count, variant)!, "crr", of));
    return rates.at(-1)! / rates[0]!;
  };
  const aim = (name: string, least: number, ratio: (of: "median" | "best") => number): Aim => {
    return { name, least, median: ratio("median"), best: ratio("best") };
  };
  const share = (plane: "ebpf" | "nft", figure: Figure, of: "median" | "best") => {
    const without = results.find((one) => one.plane === `${plane}NoShare`)!;
    const { count, variant } = without.policies;
    return figureOf(find(results, plane, count, variant)!, figure, of) / figureOf(without, figure, of);
  };
  const shares = (["ebpf", "nft"] as const).flatMap((plane) =>
    (["crr", "rr"] as const).map((figure) =>
      aim(`${FIGURES[figure].name}, ${DATAPLANES[plane]} to not counting them`, 0.98, (of) => share(plane, figure, of)),
    ),
  );
  const ofPolicies = variantsOf(results).flatMap((variant) => [
    aim(`connections, eBPF to nftables, policies ${variant}`, 1.15, (of) => worst("crr", "nft", of, variant)),
    aim(`connections, eBPF to iptables, policies ${variant}`, 1.15, (of) => worst("crr", "iptables", of, variant)),
    aim(`throughput, eBPF to no filter, policies ${variant}`, 0.95, (of) => worst("gbps", "plain", of, variant)),
    aim(`connections, eBPF, ${counts.at(-1)} policies to ${counts[0]}, ${variant}`, 0.95, (of) => flat(of, variant)),
  ]);
  return [...ofPolicies, ...shares];
}

export function rowsOf(results: readonly TrafficResult[], reactions: readonly ReactionResult[]): Row[] {
  return [...trafficRows(results), ...reactionRows(reactions), ...aimsOf(results).map(aimRow)];
}

function trafficRows(results: readonly TrafficResult[]): Row[] {
  const besides = ["nft", "iptables", "plain"] as const;
  return (Object.keys(FIGURES) as Figure[]).flatMap((figure) =>
    variantsOf(results).flatMap((variant) =>
      countsOf(results).flatMap((count) =>
        besides.map((plane): Row => {
          const value = figureOf(find(results, "ebpf", count, variant)!, figure);
          const beside = { name: DATAPLANES[plane], value: figureOf(find(results, plane, count, variant)!, figure) };
          return { name: `${FIGURES[figure].name}, ${count} ${variant}`, value, unit: FIGURES[figure].unit, beside };
        }),
      ),
    ),
  );
}

function reactionRows(reactions: readonly ReactionResult[]): Row[] {
  return reactions.flatMap((one) =>
    (Object.keys(REACTIONS) as (keyof typeof REACTIONS)[]).flatMap((what) =>
      [0.5, 0.99].map((share): Row => {
        const name = `${REACTIONS[what]}, ${DATAPLANES[one.plane]}, ${one.count} policies, p${share * 100}`;
        return { name, value: percentile(one[what], share), unit: "ms" };
      }),
    ),
  );
}

function aimRow({ name, least, median, best }: Aim): Row {
  return {
    name: `${median >= least ? "reached" : best >= least ? "reached in the best rounds" : "MISSED"}: ${name}`,
    value: median,
    unit: `times, best ${best.toFixed(2)}`,
    beside: { name: "aim", value: least },
  };
}

import { fileURLToPath } from "node:url";
import { DATAPLANES, FIGURES, figureOf } from "../pods/figures.ts";
import { type Figure, measureTraffic, type TrafficPlan } from "../pods/traffic.ts";
import type { Row } from "../run.ts";

const POLICIES = { count: 10, variant: "applying" } as const;
const PAIRS = [
  ["ebpf", "ebpfFlows"],
  ["nft", "nftFlows"],
] as const;
const COMPARED: readonly Figure[] = ["crr", "rr", "gbps"];

/** What counting costs two pods that speak: each data plane with flow logs next to the same without, round after round through all of them. */
export async function planeRows(plan: Omit<TrafficPlan, "counts" | "variants">): Promise<Row[]> {
  const program = fileURLToPath(import.meta.url);
  const traffic = { ...plan, counts: [POLICIES.count], variants: [POLICIES.variant] };
  const configurations = PAIRS.flat().map((plane) => ({ plane, policies: POLICIES }));
  const { results } = await measureTraffic(program, traffic, () => {}, configurations);
  const of = (plane: string, figure: Figure) => figureOf(results.find((one) => one.plane === plane)!, figure);
  return PAIRS.flatMap(([without, flows]) =>
    COMPARED.map((figure) => ({
      name: `${DATAPLANES[flows]}, ${FIGURES[figure].name}`,
      ...{ value: of(flows, figure), unit: FIGURES[figure].unit },
      beside: { name: "without", value: of(without, figure) },
    })),
  );
}

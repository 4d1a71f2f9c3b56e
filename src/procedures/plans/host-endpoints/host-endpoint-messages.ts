import type { BlockedPort, BlockedTraffic, PolicyReview, Simulation } from "./host-endpoint-simulation.ts";

/** The simulation for a person, the dangerous first. */
export function simulationSentences({ bites, cuts, opens }: Simulation): string[] {
  if (bites.length === 0 && cuts.length === 0 && opens.length === 0) {
    return ["Simulation: no policy would start to apply to nodes."];
  }
  return [
    ...grouped(cuts).map((sentence) => `Simulation: ${sentence}`),
    ...bites.map((bite) => `Simulation: ${biteSentence(bite)}`),
    ...(opens.length > 0
      ? [
          `Simulation: ${few(opens)} ${opens.length === 1 ? "has an endpoint" : "have endpoints"} without a profile, which denies what no policy allows; the automatic endpoint allows it.`,
        ]
      : []),
  ];
}

function biteSentence({ policy, tier, selector, directions, traffic, nodes }: BlockedPort): string {
  const where = tier === "default" ? "" : ` of tier ${tier}`;
  return `policy ${policy}${where} (${selector}) would start to decide ${directions.join(" and ").toLowerCase()} of ${traffic} traffic on ${few(nodes)}.`;
}

/** One sentence for all nodes that lose the same thing by the same policy. */
function grouped(cuts: readonly BlockedTraffic[]): string[] {
  const groups = new Map<string, { cut: BlockedTraffic; nodes: string[] }>();
  for (const cut of cuts) {
    const key = [cut.direction, cut.what, cut.protocol, cut.port, cut.by].join(" ");
    const group = groups.get(key) ?? { cut, nodes: [] };
    group.nodes.push(cut.node);
    groups.set(key, group);
  }
  return [...groups.values()].map(({ cut: { direction, what, protocol, port, by }, nodes }) => {
    const way = direction === "Ingress" ? "to" : "from";
    return `${what} (${protocol} ${port}) ${way} ${few(nodes)} would be denied by ${by}.`;
  });
}

/** What the temporary policy still does. */
export function temporaryPolicySentences(name: string, review: PolicyReview | undefined, goes: boolean): string[] {
  if (review === undefined) return [];
  const others =
    review.others.length === 0 ? "no other policy applies there" : `${review.others.join(", ")} would apply there`;
  const holds =
    review.nodes.length === 0
      ? `${name} applies to no node.`
      : `${name} still allows all traffic on ${few(review.nodes)}; ${others}.`;
  const cuts = grouped(review.cuts).map((sentence) => `Without ${name}: ${sentence}`);
  const what = goes
    ? `It is deleted at the end; review its logs first.`
    : `Review its logs, add the policies you need, then run this again with --delete-temporary-policy.`;
  return [`${holds} ${what}`, ...cuts];
}

function few(names: readonly string[]): string {
  return names.length <= 3 ? names.join(", ") : `${names.slice(0, 2).join(", ")} and ${names.length - 2} more nodes`;
}

import { orMake } from "../../calc/or-make.ts";

/** One peer on one port, by their names. */
export interface RuleAtom {
  peer: string;
  port: string;
}

/** All of these peers on all of these ports. */
export interface JoinedRule {
  peers: readonly string[];
  ports: readonly string[];
}

/**
 * Joins what differs in one place: the ports of one peer, then peers of the same ports; or the other way round, if that makes fewer rules. No
 * rule allows a peer a port that is not among the atoms.
 */
export function joinedRules(atoms: readonly RuleAtom[]): JoinedRule[] {
  const byPorts = grouped(atoms.map(({ peer, port }) => [peer, port])).map(([peers, ports]) => ({ peers, ports }));
  const byPeers = grouped(atoms.map(({ peer, port }) => [port, peer])).map(([ports, peers]) => ({ peers, ports }));
  return byPeers.length < byPorts.length ? byPeers : byPorts;
}

/** Names that have the same others, each group with these. */
function grouped(pairs: readonly (readonly [string, string])[]): [string[], string[]][] {
  const othersOf = new Map<string, Set<string>>();
  for (const [one, other] of pairs) orMake(othersOf, one, () => new Set()).add(other);
  const groups = new Map<string, [string[], string[]]>();
  for (const [one, others] of othersOf) {
    const sorted = [...others].sort();
    orMake(groups, JSON.stringify(sorted), (): [string[], string[]] => [[], sorted])[0].push(one);
  }
  return [...groups.values()].map(([ones, others]) => [ones.sort(), others]);
}

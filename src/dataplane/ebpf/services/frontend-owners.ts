import type { ServiceRow } from "./service-rows.ts";

interface Claim {
  readonly id: string;
  readonly rank: number;
}

/**
 * Which service owns an address and port that more than one claims. The same on every node, in whatever order they came: by kind of
 * address, then by the services' names.
 */
export class FrontendOwners {
  private readonly claims = new Map<string, readonly Claim[]>();

  /** Replaces what a service wants by what it wants now; the services whose addresses that may have given or taken. */
  change(before: ServiceRow | undefined, after: ServiceRow | undefined): Set<string> {
    const touched = new Set<string>();
    for (const { key } of before?.frontends ?? []) {
      const left = this.claims.get(key)!.filter(({ id }) => id !== before!.id);
      if (left.length > 0) this.claims.set(key, left);
      else this.claims.delete(key);
      for (const { id } of left) touched.add(id);
    }
    for (const { key, rank } of after?.frontends ?? []) {
      const others = this.claims.get(key) ?? [];
      const claim = { id: after!.id, rank };
      this.claims.set(key, others.length === 0 ? [claim] : [...others, claim].sort(byRank));
      for (const { id } of others) touched.add(id);
    }
    return touched;
  }

  winner(key: string): string | undefined {
    return this.claims.get(key)?.[0]?.id;
  }
}

function byRank(a: Claim, b: Claim): number {
  if (a.rank !== b.rank) return a.rank - b.rank;
  return a.id < b.id ? -1 : 1;
}

import { formatCidr, parseAddress } from "../../kit/ip.ts";

/** Prefixes that hold these addresses and no others: two halves that are both there become one. By family, then by address. */
export function joinedPrefixes(addresses: Iterable<string>): string[] {
  const parsed = [...addresses].flatMap((text) => parseAddress(text) ?? []);
  return [...new Set(parsed.map(({ family }) => family))]
    .sort((a, b) => a.bits - b.bits)
    .flatMap((family) => {
      let bases = new Set(parsed.filter((one) => one.family === family).map(({ value }) => value));
      const found: { base: bigint; length: number }[] = [];
      for (let length = family.bits; bases.size > 0; length--) {
        const half = 1n << BigInt(family.bits - length);
        const whole = [...bases].filter((base) => (base & half) === 0n && bases.has(base | half));
        const joined = new Set(whole.flatMap((base) => [base, base | half]));
        for (const base of bases) if (!joined.has(base)) found.push({ base, length });
        bases = new Set(whole);
      }
      return found
        .sort((a, b) => (a.base < b.base ? -1 : 1))
        .map(({ base, length }) => formatCidr({ family, base, length, masked: true }));
    });
}

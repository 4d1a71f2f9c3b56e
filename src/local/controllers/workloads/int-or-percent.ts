import type { IntOrString } from "../workload-types.ts";

/** `3` or `"25%"` of a total. */
export function scaled(value: IntOrString | undefined, total: number, round: "up" | "down", fallback = 0): number {
  if (value === undefined) return fallback;
  if (typeof value === "number") return value;
  if (!value.endsWith("%")) return Number(value) || fallback;
  const share = (Number(value.slice(0, -1)) * total) / 100;
  return round === "up" ? Math.ceil(share) : Math.floor(share);
}

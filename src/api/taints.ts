export interface Taint {
  key: string;
  value?: string;
  effect: "NoSchedule" | "PreferNoSchedule" | "NoExecute";
  timeAdded?: string;
}

export interface Toleration {
  key?: string;
  operator?: "Exists" | "Equal";
  value?: string;
  effect?: string;
  tolerationSeconds?: number;
}

/** The first taint of these effects that keeps a pod with these tolerations away. */
export function firstUntolerated(
  tolerations: readonly Toleration[] = [],
  taints: readonly Taint[] = [],
  effects: readonly Taint["effect"][] = ["NoSchedule", "NoExecute"],
): Taint | undefined {
  return taints.find(
    (taint) => effects.includes(taint.effect) && !tolerations.some((toleration) => toleratesTaint(toleration, taint)),
  );
}

export function toleratesTaint({ key, operator = "Equal", value = "", effect }: Toleration, taint: Taint): boolean {
  if (effect && effect !== taint.effect) return false;
  if (!key) return operator === "Exists";
  if (key !== taint.key) return false;
  return operator === "Exists" || value === (taint.value ?? "");
}

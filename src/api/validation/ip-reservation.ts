import type { IPReservation } from "../resources/ip-reservation.ts";
import type { Problem } from "./problem.ts";
import { nameProblems, netProblems } from "./values.ts";

export function ipReservationProblems({ metadata, spec }: IPReservation): Problem[] {
  return [
    ...nameProblems(metadata.name, "metadata.name", { dots: true }),
    ...netProblems(spec.reservedCIDRs, "spec.reservedCIDRs", true),
  ];
}

import type { Explanation } from "../../api/validation/problem.ts";
import { API_ADDRESS_CHECKS } from "./api-address.ts";
import type { Check, Purpose } from "./check.ts";
import { HEALTH_CHECKS } from "./health.ts";
import { INSTALLATION_CHECKS } from "./installation.ts";
import { LEFTOVER_CHECKS } from "./leftovers.ts";
import { MIGRATION_CHECKS } from "./migrations.ts";
import { NETWORK_CHECKS } from "./network.ts";
import { NOT_CARRIED_CHECKS } from "./not-carried.ts";
import { PLATFORM_CHECKS } from "./platform.ts";
import { ROLLOUT_CHECKS } from "./rollout.ts";
import { SERVICE_PROXY_CHECKS } from "./service-proxy.ts";
import { VERSION_CHECKS } from "./versions.ts";

/** Every check there is, in the order people read them. */
export const CHECKS: readonly Check[] = [
  ...PLATFORM_CHECKS,
  ...NETWORK_CHECKS,
  ...API_ADDRESS_CHECKS,
  ...SERVICE_PROXY_CHECKS,
  ...INSTALLATION_CHECKS,
  ...VERSION_CHECKS,
  ...NOT_CARRIED_CHECKS,
  ...MIGRATION_CHECKS,
  ...ROLLOUT_CHECKS,
  ...HEALTH_CHECKS,
  ...LEFTOVER_CHECKS,
];

export function checksFor(purpose: Purpose): Check[] {
  return CHECKS.filter((check) => check.for.includes(purpose));
}

/** What `explain` says of a check's code. */
export function checkExplanation(code: string): Explanation | undefined {
  return CHECKS.find((check) => check.code === code);
}

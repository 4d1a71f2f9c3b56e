import { type BgpPlaces, bgpPlaces } from "./bird-control.ts";

/** Every variable `vendor bgp` reads, and what it is. */
export const BGP_VARIABLES = {
  RUN_DIR:
    "directory of the agent's sockets; BIRD's configuration and control socket are in bgp below it (default: /var/run/vendor)",
} as const;

export function readBgpProgramConfig(
  env: Readonly<Partial<Record<keyof typeof BGP_VARIABLES, string | undefined>>>,
): BgpPlaces {
  return bgpPlaces(env["RUN_DIR"] || "/var/run/vendor");
}

import { LOOPBACK } from "../../cluster/program.ts";
import { flag, number, required } from "../env-values.ts";
import { type NetConf, parseNetConf } from "./net-conf.ts";

const HEALTH_PORT = 9098;

/** Every variable `vendor overlay` reads, and what it is. */
export const OVERLAY_VARIABLES = {
  NODENAME: "name of the node (required)",
  NET_CONF: "net-conf.json: Network, EnableIPv4, IPv6Network, EnableIPv6 and Backend (required)",
  IP_MASQ: "true: packets from pods that leave the overlay's networks take the node's address (default: true)",
  HEALTH_HOST: `address of /livez and /readyz (default: ${LOOPBACK})`,
  HEALTH_PORT: `port of /livez and /readyz (default: ${HEALTH_PORT})`,
  RUN_DIR: "directory of the file with the node's prefix and MTU (default: /var/run/vendor)",
} as const;

export interface OverlayConfig {
  nodeName: string;
  conf: NetConf;
  masquerade: boolean;
  healthHost: string;
  healthPort: number;
  run: string;
}

export function readOverlayConfig(
  env: Readonly<Partial<Record<keyof typeof OVERLAY_VARIABLES, string | undefined>>>,
): OverlayConfig {
  return {
    nodeName: required(env, "NODENAME", "the name of the node this runs on"),
    conf: parseNetConf(required(env, "NET_CONF", "the content of net-conf.json")),
    masquerade: flag(env, "IP_MASQ", true),
    healthHost: env["HEALTH_HOST"] || LOOPBACK,
    healthPort: number(env, "HEALTH_PORT", HEALTH_PORT, 65_535),
    run: env["RUN_DIR"] || "/var/run/vendor",
  };
}

import { LOOPBACK } from "../cluster/program.ts";
import { errors } from "./errors.ts";

type Env = Readonly<Record<string, string | undefined>>;

export interface FlowsConfig {
  port: number;
  healthHost: string;
  healthPort: number;
}

export function readFlowsConfig(env: Env, port: number): FlowsConfig {
  return {
    healthHost: env["HEALTH_HOST"] || LOOPBACK,
    port: portOf(env, "PORT", port),
    healthPort: portOf(env, "HEALTH_PORT", 8080),
  };
}

function portOf(env: Env, name: string, otherwise: number): number {
  const text = env[name];
  if (!text) return otherwise;
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1 || value > 65535) throw errors.FLOWS_PORT_BAD(name, text);
  return value;
}
